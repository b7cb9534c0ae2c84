// SPDX-License-Identifier: Apache-2.0
//! Functions of libc that change the program's mappings: what is known of its memory is forgotten.
//! They may be called before the library is ready, from the allocator that dlsym calls.

use crate::calls::forwarded::{forwarded, nothing};
use crate::stream::accessible_memory;
use core::ffi::{c_int, c_long, c_void};

/// System calls that change mappings.
pub fn observe(number: c_long) {
    match number {
        libc::SYS_mmap
        | libc::SYS_munmap
        | libc::SYS_mremap
        | libc::SYS_mprotect
        | libc::SYS_shmat
        | libc::SYS_shmdt
        | libc::SYS_brk
        | libc::SYS_remap_file_pages => accessible_memory::changed(),
        libc::SYS_pkey_mprotect | libc::SYS_madvise | libc::SYS_process_madvise => {
            accessible_memory::stop()
        }
        _ => {}
    }
}

/// Pages that fault, which /proc/self/maps does not show (Linux 6.13).
const GUARD_INSTALL: c_int = 102;

// Another thread may have found memory as it was, in between: what is known is forgotten twice.
forwarded! {
    fn mmap(address: *mut c_void, length: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void = SYS_mmap, accessible_memory::changed, accessible_memory::changed;
    fn mmap64(address: *mut c_void, length: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void = SYS_mmap, accessible_memory::changed, accessible_memory::changed;
    fn munmap(address: *mut c_void, length: usize) -> c_int = SYS_munmap, accessible_memory::changed, accessible_memory::changed;
    fn mremap(address: *mut c_void, old: usize, new: usize, flags: c_int, place: *mut c_void) -> *mut c_void = SYS_mremap, accessible_memory::changed, accessible_memory::changed;
    fn mprotect(address: *mut c_void, length: usize, protection: c_int) -> c_int = SYS_mprotect, accessible_memory::changed, accessible_memory::changed;
    fn pkey_mprotect(address: *mut c_void, length: usize, protection: c_int, key: c_int) -> c_int = SYS_pkey_mprotect, accessible_memory::stop, accessible_memory::stop;
    fn shmat(number: c_int, address: *const c_void, flags: c_int) -> *mut c_void = SYS_shmat, accessible_memory::changed, accessible_memory::changed;
    fn shmdt(address: *const c_void) -> c_int = SYS_shmdt, accessible_memory::changed, accessible_memory::changed;
    fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int = SYS_madvise, if advice == GUARD_INSTALL { accessible_memory::stop } else { nothing }, nothing;
}
