// SPDX-License-Identifier: Apache-2.0
//! The next definitions of the table's functions: libc's, or those of a layer below.

use crate::types::*;
use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// What a caller gets from a function that this libc does not have.
trait Missing {
    const RESULT: Self;
}

impl Missing for c_int {
    const RESULT: Self = -1;
}

impl Missing for ssize_t {
    const RESULT: Self = -1;
}

impl Missing for () {
    const RESULT: Self = ();
}

impl Missing for *mut FILE {
    const RESULT: Self = core::ptr::null_mut();
}

pub use crate::next_definition::{errno, next, set_errno, system_call};

/// What stands in for a function that is not found: nothing, or the system call that it is.
macro_rules! missing {
    ($name:ident($($argument:ident: $type:ty),*) -> $result:ty) => {
        /// # Safety
        /// Nothing is required: only the type of the function is unsafe.
        pub unsafe extern "C" fn $name($(_: $type),*) -> $result {
            set_errno(libc::ENOSYS);
            <$result as Missing>::RESULT
        }
    };
    ($name:ident($($argument:ident: $type:ty),*) -> $result:ty = $number:ident) => {
        /// # Safety
        /// As the system call.
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            let mut arguments = [0; 6];
            for (place, argument) in arguments.iter_mut().zip([$($argument as usize),*]) {
                *place = argument;
            }
            // SAFETY: the program's own call.
            (unsafe { system_call(libc::$number, arguments) }) as $result
        }
    };
}

macro_rules! forward {
    ([] $(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty $(= $number:ident)?;)*) => {
        /// The pointers. Each begins at a resolver, so that a call before any constructor
        /// of ours finds its way.
        #[allow(non_upper_case_globals, reason = "named as the functions are")]
        mod pointer {
            use super::*;
            $(pub static $name: AtomicPtr<c_void> =
                AtomicPtr::new(super::resolver::$name as *mut c_void);)*
        }

        #[allow(non_upper_case_globals, reason = "named as the functions are")]
        mod name {
            use super::*;
            $(pub const $name: &CStr = c_string(concat!(stringify!($name), "\0"));)*
        }

        mod resolver {
            use super::*;
            $(/// # Safety
            /// As libc's function of this name.
            pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                pointer::$name.store(find(name::$name, missing::$name as *mut c_void), Relaxed);
                // SAFETY: the caller's own arguments.
                unsafe { function::$name($($argument),*) }
            })*
        }

        mod missing {
            use super::*;
            $(missing! { $name($($argument: $type),*) -> $result $(= $number)? })*
        }

        pub mod function {
            use super::*;
            $(
                /// Calls the next definition.
                ///
                /// # Safety
                /// As libc's function of this name.
                #[inline]
                pub unsafe fn $name($($argument: $type),*) -> $result {
                    // SAFETY: the pointer is the resolver, the next definition, or the stand-in
                    // for a missing one: all have this type.
                    unsafe {
                        let function: unsafe extern "C" fn($($type),*) -> $result =
                            core::mem::transmute(pointer::$name.load(Relaxed));
                        function($($argument),*)
                    }
                }
            )*
        }

        /// Looks up the next definitions of all functions of the group.
        pub fn resolve() {
            $(pointer::$name.store(find(name::$name, missing::$name as *mut c_void), Relaxed);)*
        }
    };
}

const fn c_string(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"",
    }
}

/// Not inlined: `resolve` calls it once per function.
#[inline(never)]
fn find(name: &CStr, missing: *mut c_void) -> *mut c_void {
    let found = next(name);
    if found.is_null() { missing } else { found }
}

macro_rules! groups {
    ($($name:ident)*) => {
        $(
            pub mod $name {
                use super::*;
                symbols! { [forward] [] [$name] }
            }
            pub use $name::function::*;
        )*
    };
}

groups! { bytes connections descriptors streams waiting options }

/// The functions that are observed, and `syscall`.
pub mod observed {
    use super::*;

    mod table {
        use super::*;
        observed_symbols!([forward]);
    }
    pub use table::function;

    /// Looks up the next definitions of them all.
    pub fn resolve() {
        table::resolve();
        crate::naked::next_syscall();
    }
}
pub use observed::function::*;

pub mod routed {
    /// Looks up the next `syscall`.
    pub fn resolve() {
        crate::naked::next_syscall();
    }
}

pub mod programs {
    /// Looks up the next functions that start programs.
    pub fn resolve() {
        crate::naked::programs::resolve();
    }
}

pub mod formatted {
    /// Looks up the next functions that write what they format.
    pub fn resolve() {
        crate::formatted::resolve();
    }
}

pub mod vfork {
    /// Looks up the next `vfork`.
    pub fn resolve() {
        crate::naked::next_vfork();
    }
}
