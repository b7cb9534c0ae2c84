# SPDX-License-Identifier: Apache-2.0
"""libtare_link.so keeps the rules of libraries in other people's programs."""

from tests import test_library_rules as rules
from tests.hook import table

from tare.native import native

SOURCE = table.ROOT / "crates" / "link" / "preload" / "src" / "lib.rs"
PROGRAMS = "fork daemon forkpty execve execv execvp execvpe execl execlp execle fexecve execveat"
MAPPINGS = "mmap mmap64 munmap mremap mprotect pkey_mprotect shmat shmdt madvise"
RIGHTS = (
    "setuid setgid seteuid setegid setreuid setregid setresuid setresgid setfsuid setfsgid"
    " setgroups initgroups capset unshare setns _exit _Exit _Fork"
)
FORMATTED = "dprintf vdprintf __dprintf_chk __vdprintf_chk syscall prctl"
URING = "io_uring_setup io_uring_queue_init io_uring_queue_init_params io_uring_queue_init_mem"
OTHERS = f"{PROGRAMS} {MAPPINGS} {RIGHTS} {FORMATTED} {URING} posix_spawn posix_spawnp system popen"
LINK = rules.Library(
    native("lib", "libtare_link.so"), frozenset(table.symbols(SOURCE)) | {*OTHERS.split()}
)


def test_it_keeps_the_rules_of_all_libraries() -> None:
    rules.test_it_needs_nothing_but_libc(LINK)
    rules.test_it_exports_its_table_and_nothing_else(LINK)
    rules.test_no_symbol_is_newer_than_the_oldest_glibc(LINK)
    rules.test_it_is_small(LINK)
    rules.test_thread_state_is_initial_exec(LINK)
