// SPDX-License-Identifier: Apache-2.0
//! io_uring moves bytes of connections without a call that the library sees. So programs get the error
//! of a kernel without it, and use epoll.

use crate::state;
use core::ffi::{CStr, c_int, c_long};
use tare_interpose::real;

/// As the system call, in a linked program.
pub extern "C" fn refuse(
    _: c_long,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
) -> c_long {
    real::set_errno(libc::ENOSYS);
    -1
}

type Function = unsafe extern "C" fn(usize, usize, usize, usize, usize) -> c_int;

/// As liburing's function of this name, which returns errors as negative numbers.
///
/// # Safety
/// As that function.
unsafe fn set_up(name: &CStr, arguments: [usize; 5]) -> c_int {
    let next = if state::statistics().is_none() { real::next(name) } else { core::ptr::null_mut() };
    if next.is_null() {
        return -libc::ENOSYS;
    }
    let [first, second, third, fourth, fifth] = arguments;
    // SAFETY: a function with at most these arguments; the caller promises the rest.
    unsafe {
        let next: Function = core::mem::transmute(next);
        next(first, second, third, fourth, fifth)
    }
}

macro_rules! liburing {
    ($($name:ident)*) => {
        $(
            /// # Safety
            /// As liburing's.
            #[cfg_attr(not(test), unsafe(no_mangle))]
            pub unsafe extern "C" fn $name(
                first: usize, second: usize, third: usize, fourth: usize, fifth: usize,
            ) -> c_int {
                let name = concat!(stringify!($name), "\0").as_bytes();
                // SAFETY: the program's own arguments.
                CStr::from_bytes_with_nul(name).map_or(-libc::ENOSYS, |name| unsafe {
                    set_up(name, [first, second, third, fourth, fifth])
                })
            }
        )*
    };
}

liburing! { io_uring_setup io_uring_queue_init io_uring_queue_init_params io_uring_queue_init_mem }
