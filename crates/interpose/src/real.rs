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

pub use crate::naked::system_call;

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
            (unsafe { crate::naked::system_call(libc::$number, arguments) }) as $result
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

pub mod vfork {
    /// Looks up the next `vfork`.
    pub fn resolve() {
        crate::naked::next_vfork();
    }
}
