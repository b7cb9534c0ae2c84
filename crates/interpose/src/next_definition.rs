// SPDX-License-Identifier: Apache-2.0
//! Finds the next definition of a function, and does what the program's call of it does to errno.

use crate::types::{c_char, c_int, c_long, c_void};
use core::ffi::CStr;
use tare_shm::syscall::{self, Errno};

/// The next definition of `name`, or null.
pub fn next(name: &CStr) -> *mut c_void {
    // SAFETY: `name` is terminated. dlsym may be entered again from the allocator that it
    // calls: its lock is recursive.
    unsafe {
        let Linked { dlsym: Some(dlsym), dlerror: Some(dlerror) } = tare_linked else {
            return core::ptr::null_mut();
        };
        let found = dlsym(libc::RTLD_NEXT, name.as_ptr());
        if found.is_null() {
            // The program is not to find our error waiting for it.
            dlerror();
        }
        found
    }
}

#[cfg(target_env = "gnu")]
mod linked {
    use super::{c_char, c_void};

    // They moved to libc.so with version 2.34, which older systems refuse to load.
    #[cfg(target_arch = "x86_64")]
    core::arch::global_asm!(
        ".symver dlsym, dlsym@GLIBC_2.2.5",
        ".symver dlerror, dlerror@GLIBC_2.2.5"
    );
    #[cfg(target_arch = "aarch64")]
    core::arch::global_asm!(
        ".symver dlsym, dlsym@GLIBC_2.17",
        ".symver dlerror, dlerror@GLIBC_2.17"
    );
    // A program that a library is statically linked into may be without them.
    core::arch::global_asm!(
        ".weak dlsym",
        ".weak dlerror",
        ".section .data.rel.ro.tare_linked,\"aw\"",
        ".p2align 3",
        ".globl tare_linked",
        ".hidden tare_linked",
        "tare_linked:",
        ".quad dlsym",
        ".quad dlerror",
        ".previous",
    );

    type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
    type Dlerror = unsafe extern "C" fn() -> *mut c_char;

    #[repr(C)]
    pub struct Linked {
        pub dlsym: Option<Dlsym>,
        pub dlerror: Option<Dlerror>,
    }

    unsafe extern "C" {
        pub safe static tare_linked: Linked;
    }
}
use linked::{Linked, tare_linked};

/// Sets the calling thread's errno.
pub fn set_errno(value: c_int) {
    // SAFETY: glibc's pointer to the thread's own errno is always valid.
    unsafe { *libc::__errno_location() = value }
}

/// The calling thread's errno.
pub fn errno() -> c_int {
    // SAFETY: glibc's pointer to the thread's own errno is always valid.
    unsafe { *libc::__errno_location() }
}

/// Makes a system call of the program's, as libc's `syscall` does.
///
/// # Safety
/// As of that.
pub unsafe fn system_call(number: c_long, arguments: [usize; 6]) -> c_long {
    // SAFETY: the program's own call, as the caller promises.
    match unsafe { syscall::call_for_program(number, arguments) } {
        Ok(result) => result as c_long,
        Err(Errno(error)) => {
            set_errno(error);
            -1
        }
    }
}
