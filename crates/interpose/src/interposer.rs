// SPDX-License-Identifier: Apache-2.0
use crate::types::*;

macro_rules! methods {
    ([] $(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        /// What a library does in place of the table's functions: by default, nothing but
        /// call the next definition.
        ///
        /// No value with a destructor, no lock and no half-written record may be alive
        /// across such a call: pthread_cancel ends the thread inside it.
        pub trait Interposer {
            $(
                /// # Safety
                /// As libc's function of this name.
                #[inline]
                unsafe fn $name($($argument: $type),*) -> $result {
                    // SAFETY: the caller's own arguments.
                    unsafe { crate::real::$name($($argument),*) }
                }
            )*
        }
    };
}

symbols! { [methods] [] [bytes connections descriptors streams waiting options] }

/// Sees the number and the first arguments of system calls that the program makes by `syscall` or
/// by a function of `observed_symbols!`, before they are made. It cannot change them.
pub trait Observer {
    fn observe(number: c_long, first: usize, second: usize, third: usize);
}

/// Knows when the program is about to start another one, or to copy itself.
pub trait Starter {
    /// Before a function of the group `programs`: a fork keeps this program beside its copy.
    fn before_fork();
    /// Another program starts, in this process or in one that has the same descriptors.
    fn before_exec();
    /// The same, and any descriptor may become the other program's.
    fn before_spawn();
}

/// Knows when the program is about to write what it formats.
pub trait Formatter {
    /// Before a function of the group `formatted`, which writes to `fd` inside libc.
    fn before_format(fd: c_int);
}

/// Answers system calls that the program makes by `syscall`, in place of the kernel.
pub trait Router {
    /// The function that makes system call `number`, with the arguments of `syscall`; null for
    /// libc's. Those that return twice must be libc's.
    fn route(number: c_long) -> *const c_void;
}

#[doc(hidden)]
#[macro_export]
macro_rules! export_each {
    ([$interposer:ident] $(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(
            /// # Safety
            /// As libc's.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                // SAFETY: the caller's own arguments.
                unsafe { <$interposer as $crate::Interposer>::$name($($argument),*) }
            }
        )*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! export_each_observed {
    ([$observer:ident] $(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $number:ident;)*) => {
        $(
            /// # Safety
            /// As libc's.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                let [first, second, third, ..] = [$($argument as usize),*, 0, 0];
                <$observer as $crate::Observer>::observe(libc::$number, first, second, third);
                // SAFETY: the caller's own arguments.
                unsafe { $crate::real::$name($($argument),*) }
            }
        )*
    };
}

/// Exports groups of functions, and makes a function `resolve` that looks up the next definitions
/// of them all. For a preload library, once, under `cfg(not(test))`.
///
/// A group is one of [`symbols!`](crate::symbols), which `$library` replaces as an [`Interposer`];
/// `observed`, the functions of `observed_symbols!` and `syscall`, which it sees as an [`Observer`];
/// `vfork`, for a library that keeps what a child of vfork must not change
/// ([`ThreadBlock::is_borrowed`](crate::ThreadBlock::is_borrowed)); `programs`, what starts other
/// programs, of which it knows as a [`Starter`]; `formatted`, `dprintf` and its like, of which it
/// knows as a [`Formatter`]; or `routed`, `syscall`, which it answers as a [`Router`].
#[macro_export]
macro_rules! export {
    ($library:ident: $($group:ident)*) => {
        mod exported {
            use super::$library;
            use $crate::types::*;
            $($crate::export_group! { $group $library })*

            /// dlsym must not be needed in a signal handler, or under a seccomp filter, later.
            pub fn resolve() {
                $($crate::real::$group::resolve();)*
            }
        }
        use exported::resolve;
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! export_group {
    (vfork $library:ident) => {
        $crate::export_vfork! {}
    };
    (programs $library:ident) => {
        $crate::export_programs! { $library }
    };
    (formatted $library:ident) => {
        $crate::export_all_formatted! { $library }
    };
    (routed $library:ident) => {
        $crate::export_routed_syscall! { $library }
    };
    (observed $library:ident) => {
        $crate::observed_symbols! { [$crate::export_each_observed] $library }
        $crate::export_syscall! { $library }
    };
    ($group:ident $library:ident) => {
        $crate::symbols! { [$crate::export_each] [$library] [$group] }
    };
}
