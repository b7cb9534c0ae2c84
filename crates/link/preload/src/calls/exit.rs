// SPDX-License-Identifier: Apache-2.0
//! Calls that end the program.

use crate::calls::forwarded::{forwarded, nothing};
use crate::lifecycle::delivery::end;
use core::ffi::{c_int, c_void};
use tare_interpose::real;

forwarded! {
    fn _exit(status: c_int) -> c_int = SYS_exit_group, end, nothing;
    fn _Exit(status: c_int) -> c_int = SYS_exit_group, end, nothing;
}

/// Has `end` called by quick_exit, after the program's own functions.
pub fn watch() {
    type Register = unsafe extern "C" fn(unsafe extern "C" fn(*mut c_void), *mut c_void) -> c_int;
    extern "C" fn at_quick_exit(_: *mut c_void) {
        end();
    }
    let register = real::next(c"__cxa_at_quick_exit");
    if !register.is_null() {
        // SAFETY: libc's function of this type; the library is never unloaded.
        unsafe {
            let register: Register = core::mem::transmute(register);
            register(at_quick_exit, core::ptr::null_mut());
        }
    }
}
