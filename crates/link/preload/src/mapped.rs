// SPDX-License-Identifier: Apache-2.0
//! Functions of libc that change the program's mappings: what is known of its memory is forgotten.
//! They may be called before the library is ready, from the allocator that dlsym calls.

use crate::memory;
use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;
use tare_interpose::real;

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
        | libc::SYS_remap_file_pages => memory::changed(),
        libc::SYS_pkey_mprotect | libc::SYS_madvise | libc::SYS_process_madvise => memory::stop(),
        _ => {}
    }
}

/// Pages that fault, which /proc/self/maps does not show (Linux 6.13).
const GUARD_INSTALL: c_int = 102;

fn nothing() {}

fn padded<const COUNT: usize>(some: [usize; COUNT]) -> [usize; 6] {
    core::array::from_fn(|place| some.get(place).copied().unwrap_or(0))
}

macro_rules! mappings {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $number:ident, $changed:expr;)*) => {
        mod next {
            use super::*;
            $(
                #[allow(non_upper_case_globals, reason = "the names are libc's")]
                pub static $name: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
            )*
        }

        pub fn resolve() {
            $(
                let name = concat!(stringify!($name), "\0").as_bytes();
                if let Ok(name) = core::ffi::CStr::from_bytes_with_nul(name) {
                    next::$name.store(real::next(name), Relaxed);
                }
            )*
        }

        $(
            /// # Safety
            /// As libc's.
            #[cfg_attr(not(test), unsafe(no_mangle))]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                let change: fn() = $changed;
                change();
                let next = next::$name.load(Relaxed);
                // SAFETY: the program's own call, of libc's function of this type or of the kernel.
                let result = unsafe {
                    if next.is_null() {
                        real::system_call(libc::$number, padded([$($argument as usize),*])) as $result
                    } else {
                        let next: unsafe extern "C" fn($($type),*) -> $result =
                            core::mem::transmute(next);
                        next($($argument),*)
                    }
                };
                // Another thread may have found it as it was, in between.
                change();
                result
            }
        )*
    };
}

mappings! {
    fn mmap(address: *mut c_void, length: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void = SYS_mmap, memory::changed;
    fn mmap64(address: *mut c_void, length: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void = SYS_mmap, memory::changed;
    fn munmap(address: *mut c_void, length: usize) -> c_int = SYS_munmap, memory::changed;
    fn mremap(address: *mut c_void, old: usize, new: usize, flags: c_int, place: *mut c_void) -> *mut c_void = SYS_mremap, memory::changed;
    fn mprotect(address: *mut c_void, length: usize, protection: c_int) -> c_int = SYS_mprotect, memory::changed;
    fn pkey_mprotect(address: *mut c_void, length: usize, protection: c_int, key: c_int) -> c_int = SYS_pkey_mprotect, memory::stop;
    fn shmat(number: c_int, address: *const c_void, flags: c_int) -> *mut c_void = SYS_shmat, memory::changed;
    fn shmdt(address: *const c_void) -> c_int = SYS_shmdt, memory::changed;
    fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int = SYS_madvise, if advice == GUARD_INSTALL { memory::stop } else { nothing };
}
