# SPDX-License-Identifier: Apache-2.0
"""fuse_names_root_as_owner.py FOLDER: mounts a file system of FUSE there as user nobody, which says
that root owns its files; prints whether tare trusts the folder."""

import os
import sys
from pathlib import Path

from tests.hostile.attacks.hanging_files import become_nobody, mount, serve

from tare.errors import InputError
from tare.lab.result.file_ownership import known_users, require_trusted

if __name__ == "__main__":
    device = mount(sys.argv[1])
    server = os.fork()
    if server == 0:
        become_nobody()
        serve(device, owner=0)
    try:
        assert Path(sys.argv[1]).stat().st_uid == 0
        print(require_trusted(known_users(), Path(sys.argv[1])))
    except InputError as error:
        print(error)
    finally:
        os.close(device)
        os.kill(server, 9)
