# SPDX-License-Identifier: Apache-2.0
"""bash: a connection, pipes, a coprocess, process substitution, a trap."""

from pathlib import Path

from tests.hook.programs.ways import free_port, need, same
from tests.hook.programs.web import web

BASH = """
set -u
exec 3<>/dev/tcp/127.0.0.1/$1
printf 'GET /page HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n' >&3
read -r status <&3
echo "$status"
cat <&3 | tail -n 3
exec 3>&-
echo here | while read -r line; do echo "$line"; done
coproc cat
echo "to the coprocess" >&"${COPROC[1]}"
read -r line <&"${COPROC[0]}"
echo "$line"
diff <(seq 5) <(seq 5) && echo same
trap 'echo trapped' USR1
kill -USR1 $$
ls /proc/self/fd/2 >/dev/null
exit 9
"""


def test_bash(readable: Path) -> None:
    need("bash")
    (readable / "program.sh").write_text(BASH)
    port = free_port()
    with web(readable, port):
        behaviour = same(["bash", "program.sh", str(port)], readable)
    assert behaviour.code == 9
    assert "HTTP/1.1 200 OK" in behaviour.out
