// SPDX-License-Identifier: Apache-2.0
//! Functions of libc that the library sees and forwards, beyond the table of `tare_interpose`. They
//! may be called before the library is ready, from the allocator that dlsym calls.

pub fn nothing() {}

pub fn padded<const COUNT: usize>(some: [usize; COUNT]) -> [usize; 6] {
    core::array::from_fn(|place| some.get(place).copied().unwrap_or(0))
}

/// Exports functions `fn NAME(ARGUMENTS) -> RESULT = SYSTEM_CALL, BEFORE, AFTER;` and defines
/// `resolve`, which finds their next definitions. Without a next definition the kernel is called.
macro_rules! forwarded {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty
        = $number:ident, $before:expr, $after:expr;)*) => {
        mod next {
            use super::*;
            $(
                #[allow(non_upper_case_globals, reason = "the names are libc's")]
                pub static $name: core::sync::atomic::AtomicPtr<c_void> =
                    core::sync::atomic::AtomicPtr::new(core::ptr::null_mut());
            )*
        }

        pub fn resolve() {
            $(
                let name = concat!(stringify!($name), "\0").as_bytes();
                if let Ok(name) = core::ffi::CStr::from_bytes_with_nul(name) {
                    let next = tare_interpose::real::next(name);
                    next::$name.store(next, core::sync::atomic::Ordering::Relaxed);
                }
            )*
        }

        $(
            /// # Safety
            /// As libc's.
            #[allow(non_snake_case, reason = "the names are libc's")]
            #[cfg_attr(not(test), unsafe(no_mangle))]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                let before: fn() = $before;
                before();
                let next = next::$name.load(core::sync::atomic::Ordering::Relaxed);
                // SAFETY: the program's own call, of libc's function of this type or of the kernel.
                let result = unsafe {
                    if next.is_null() {
                        let arguments = $crate::calls::forwarded::padded([$($argument as usize),*]);
                        tare_interpose::real::system_call(libc::$number, arguments) as $result
                    } else {
                        let next: unsafe extern "C" fn($($type),*) -> $result =
                            core::mem::transmute(next);
                        next($($argument),*)
                    }
                };
                let after: fn() = $after;
                after();
                result
            }
        )*
    };
}
pub(crate) use forwarded;
