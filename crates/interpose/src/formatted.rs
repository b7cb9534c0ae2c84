// SPDX-License-Identifier: Apache-2.0
//! The functions that write what they format. Two are variadic: all are entered by a jump.

use crate::naked::once;
use crate::types::c_void;
use core::sync::atomic::AtomicPtr;

macro_rules! formatted {
    ($($name:ident)*) => {
        $(
            /// The next definition.
            pub extern "C" fn $name() -> *mut c_void {
                static NEXT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
                let name = concat!(stringify!($name), "\0");
                match core::ffi::CStr::from_bytes_with_nul(name.as_bytes()) {
                    Ok(name) => once(&NEXT, name),
                    Err(_) => core::ptr::null_mut(),
                }
            }
        )*

        pub fn resolve() {
            $($name();)*
        }
    };
}

formatted! { dprintf vdprintf __dprintf_chk __vdprintf_chk }

/// Exports the functions that write what they format, with a function of `$library` ahead, which gets
/// the descriptor.
#[doc(hidden)]
#[macro_export]
macro_rules! export_all_formatted {
    ($library:ident) => {
        extern "C" fn before_format(fd: core::ffi::c_int) {
            <$library as $crate::Formatter>::before_format(fd);
        }

        $crate::export_formatted! { before_format: dprintf vdprintf __dprintf_chk __vdprintf_chk }
    };
}

/// Arguments may be in any register of the calling convention, also in those of floating point.
#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
#[macro_export]
macro_rules! export_formatted {
    ($before:ident: $($name:ident)*) => {
        $(
            /// # Safety
            /// As libc's.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() -> core::ffi::c_int {
                core::arch::naked_asm!(
                    "lea r11, [rip + {next}]",
                    "jmp {enter}",
                    next = sym $crate::formatted::$name,
                    enter = sym enter_formatted,
                )
            }
        )*

        /// Calls `$before`, then the function in r11, and jumps to the function that this returns.
        #[unsafe(naked)]
        unsafe extern "C" fn enter_formatted() -> core::ffi::c_int {
            core::arch::naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "push rax",
                "sub rsp, 144",
                "movups [rsp], xmm0",
                "movups [rsp + 16], xmm1",
                "movups [rsp + 32], xmm2",
                "movups [rsp + 48], xmm3",
                "movups [rsp + 64], xmm4",
                "movups [rsp + 80], xmm5",
                "movups [rsp + 96], xmm6",
                "movups [rsp + 112], xmm7",
                "mov [rsp + 128], r11",
                "call {before}",
                "call [rsp + 128]",
                "mov r11, rax",
                "movups xmm0, [rsp]",
                "movups xmm1, [rsp + 16]",
                "movups xmm2, [rsp + 32]",
                "movups xmm3, [rsp + 48]",
                "movups xmm4, [rsp + 64]",
                "movups xmm5, [rsp + 80]",
                "movups xmm6, [rsp + 96]",
                "movups xmm7, [rsp + 112]",
                "add rsp, 144",
                "pop rax",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp r11",
                before = sym $before,
            )
        }
    };
}

/// As on x86-64; the function is in x16.
#[cfg(target_arch = "aarch64")]
#[doc(hidden)]
#[macro_export]
macro_rules! export_formatted {
    ($before:ident: $($name:ident)*) => {
        $(
            /// # Safety
            /// As libc's.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() -> core::ffi::c_int {
                core::arch::naked_asm!(
                    "adrp x16, {next}",
                    "add x16, x16, :lo12:{next}",
                    "b {enter}",
                    next = sym $crate::formatted::$name,
                    enter = sym enter_formatted,
                )
            }
        )*

        /// Calls `$before`, then the function in x16, and jumps to the function that this returns.
        #[unsafe(naked)]
        unsafe extern "C" fn enter_formatted() -> core::ffi::c_int {
            core::arch::naked_asm!(
                "stp x29, x30, [sp, #-224]!",
                "stp x0, x1, [sp, #16]",
                "stp x2, x3, [sp, #32]",
                "stp x4, x5, [sp, #48]",
                "stp x6, x7, [sp, #64]",
                "str x16, [sp, #80]",
                "stp q0, q1, [sp, #96]",
                "stp q2, q3, [sp, #128]",
                "stp q4, q5, [sp, #160]",
                "stp q6, q7, [sp, #192]",
                "bl {before}",
                "ldr x16, [sp, #80]",
                "blr x16",
                "mov x16, x0",
                "ldp q6, q7, [sp, #192]",
                "ldp q4, q5, [sp, #160]",
                "ldp q2, q3, [sp, #128]",
                "ldp q0, q1, [sp, #96]",
                "ldp x6, x7, [sp, #64]",
                "ldp x4, x5, [sp, #48]",
                "ldp x2, x3, [sp, #32]",
                "ldp x0, x1, [sp, #16]",
                "ldp x29, x30, [sp], #224",
                "br x16",
                before = sym $before,
            )
        }
    };
}
