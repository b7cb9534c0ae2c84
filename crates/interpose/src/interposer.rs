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

symbols!([methods]);

/// Sees the number and the first arguments of system calls that the program makes by `syscall` or
/// by a function of `observed_symbols!`, before they are made. It cannot change them.
pub trait Observer {
    fn observe(number: c_long, first: usize, second: usize, third: usize);
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

/// Exports the functions of the table and `vfork`, as `$interposer` ([`Interposer`]) has them, and
/// what [`export_observed!`] does. For a preload library, once, under `cfg(not(test))`.
#[macro_export]
macro_rules! export {
    ($interposer:ident) => {
        mod exported {
            use super::$interposer;
            use $crate::types::*;
            $crate::symbols! { [$crate::export_each] $interposer }
            $crate::export_vfork! {}
        }
        $crate::export_observed! { $interposer }
    };
}

/// Exports `syscall` and the functions of `observed_symbols!`, which `$observer` ([`Observer`])
/// sees.
#[macro_export]
macro_rules! export_observed {
    ($observer:ident) => {
        mod observed {
            use super::$observer;
            use $crate::types::*;
            $crate::observed_symbols! { [$crate::export_each_observed] $observer }
            $crate::export_syscall! { $observer }
        }
    };
}
