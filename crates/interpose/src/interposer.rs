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

            /// Sees the number and the first arguments of a call of `syscall`, which goes on
            /// untouched.
            fn observe_syscall(number: c_long, first: usize, second: usize, third: usize) {
                let _ = (number, first, second, third);
            }
        }
    };
}

symbols!([methods]);

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

/// Exports the functions of the table, `vfork` and `syscall`, as `$interposer`
/// ([`Interposer`]) has them. For a preload library, once, under `cfg(not(test))`.
#[macro_export]
macro_rules! export {
    ($interposer:ident) => {
        mod exported {
            use super::$interposer;
            use $crate::types::*;
            $crate::symbols! { [$crate::export_each] $interposer }
            $crate::export_naked! { $interposer }
        }
    };
}
