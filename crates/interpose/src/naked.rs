// SPDX-License-Identifier: Apache-2.0
//! The functions that must not have a frame of ours.
//!
//! `vfork` returns twice on one stack: the child's calls overwrite what lies below the
//! caller's frame, so the return address waits in the thread block, where a flag also says
//! that the thread is now the child. `syscall` may itself be such a call, so it is entered by
//! a jump.

use crate::next_definition::{next, system_call};
use crate::thread::note_process;
use crate::types::{c_long, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// `static AtomicPtr` that holds the next definition of a function once it was asked for.
pub(crate) fn once(pointer: &AtomicPtr<c_void>, name: &core::ffi::CStr) -> *mut c_void {
    let known = pointer.load(Relaxed);
    if !known.is_null() {
        return known;
    }
    let found = next(name);
    pointer.store(found, Relaxed);
    found
}

static VFORK: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static SYSCALL: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// The next `vfork`, for a call at once: who the parent is must be known before it has a child.
pub extern "C" fn next_vfork() -> *mut c_void {
    note_process();
    once(&VFORK, c"vfork")
}

/// The next `syscall`.
pub extern "C" fn next_syscall() -> *mut c_void {
    let next = once(&SYSCALL, c"syscall");
    if next.is_null() { missing_syscall as *mut c_void } else { next }
}

/// In a program without dlsym.
///
/// # Safety
/// As libc's `syscall`.
unsafe extern "C" fn missing_syscall(
    number: c_long,
    first: usize,
    second: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
    sixth: usize,
) -> c_long {
    // SAFETY: the program's own call.
    unsafe { system_call(number, [first, second, third, fourth, fifth, sixth]) }
}

/// A function with the arguments of `syscall`.
pub type SystemCall =
    unsafe extern "C" fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long;

/// Makes a system call of the program's by the next `syscall`: the program may have forbidden
/// those that are made elsewhere.
///
/// # Safety
/// As of that.
pub unsafe fn next_system_call(number: c_long, arguments: [usize; 6]) -> c_long {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    // SAFETY: libc's `syscall`, or `missing_syscall`, takes these; the caller promises the rest.
    unsafe {
        let next: SystemCall = core::mem::transmute(next_syscall());
        next(number, first, second, third, fourth, fifth, sixth)
    }
}

/// The functions that start programs; some are variadic, so they are entered by a jump.
#[doc(hidden)]
pub mod programs {
    use super::*;

    macro_rules! programs {
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

    programs! {
        fork daemon forkpty
        execve execv execvp execvpe execl execlp execle fexecve execveat
        posix_spawn posix_spawnp system popen
    }
}

/// Exports the functions that start programs, with a function of `$library` ahead.
#[doc(hidden)]
#[macro_export]
macro_rules! export_programs {
    ($library:ident) => {
        extern "C" fn before_fork() {
            <$library as $crate::Starter>::before_fork();
        }

        extern "C" fn before_exec() {
            <$library as $crate::Starter>::before_exec();
        }

        extern "C" fn before_spawn() {
            <$library as $crate::Starter>::before_spawn();
        }

        $crate::export_program! { before_fork: fork daemon forkpty }
        $crate::export_program! { before_exec: execve execv execvp execvpe execl execlp execle }
        $crate::export_program! { before_exec: fexecve execveat system popen }
        $crate::export_program! { before_spawn: posix_spawn posix_spawnp }
    };
}

#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
#[macro_export]
macro_rules! export_program {
    ($before:ident: $($name:ident)*) => {
        $(
            /// # Safety
            /// As libc's.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() -> core::ffi::c_int {
                core::arch::naked_asm!(
                    "push rdi",
                    "push rsi",
                    "push rdx",
                    "push rcx",
                    "push r8",
                    "push r9",
                    "push rax",
                    "call {before}",
                    "call {next}",
                    "mov r11, rax",
                    "pop rax",
                    "pop r9",
                    "pop r8",
                    "pop rcx",
                    "pop rdx",
                    "pop rsi",
                    "pop rdi",
                    "jmp r11",
                    before = sym $before,
                    next = sym $crate::naked::programs::$name,
                )
            }
        )*
    };
}

#[cfg(target_arch = "aarch64")]
#[doc(hidden)]
#[macro_export]
macro_rules! export_program {
    ($before:ident: $($name:ident)*) => {
        $(
            /// # Safety
            /// As libc's.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() -> core::ffi::c_int {
                core::arch::naked_asm!(
                    "stp x29, x30, [sp, #-80]!",
                    "stp x0, x1, [sp, #16]",
                    "stp x2, x3, [sp, #32]",
                    "stp x4, x5, [sp, #48]",
                    "stp x6, x7, [sp, #64]",
                    "bl {before}",
                    "bl {next}",
                    "mov x16, x0",
                    "ldp x6, x7, [sp, #64]",
                    "ldp x4, x5, [sp, #48]",
                    "ldp x2, x3, [sp, #32]",
                    "ldp x0, x1, [sp, #16]",
                    "ldp x29, x30, [sp], #80",
                    "br x16",
                    before = sym $before,
                    next = sym $crate::naked::programs::$name,
                )
            }
        )*
    };
}

/// Exports `syscall`, made by the function that `<$router>::route` names.
#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
#[macro_export]
macro_rules! export_routed_syscall {
    ($router:ident) => {
        /// # Safety
        /// As libc's.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn syscall() -> core::ffi::c_long {
            core::arch::naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "sub rsp, 8",
                "call {route}",
                "add rsp, 8",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp rax",
                route = sym route,
            )
        }

        extern "C" fn route(number: core::ffi::c_long) -> *const core::ffi::c_void {
            let routed = <$router as $crate::Router>::route(number);
            if routed.is_null() { $crate::naked::next_syscall().cast_const() } else { routed }
        }
    };
}

/// As on x86-64.
#[cfg(target_arch = "aarch64")]
#[doc(hidden)]
#[macro_export]
macro_rules! export_routed_syscall {
    ($router:ident) => {
        /// # Safety
        /// As libc's.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn syscall() -> core::ffi::c_long {
            core::arch::naked_asm!(
                "stp x29, x30, [sp, #-80]!",
                "stp x0, x1, [sp, #16]",
                "stp x2, x3, [sp, #32]",
                "stp x4, x5, [sp, #48]",
                "str x6, [sp, #64]",
                "bl {route}",
                "mov x16, x0",
                "ldr x6, [sp, #64]",
                "ldp x4, x5, [sp, #48]",
                "ldp x2, x3, [sp, #32]",
                "ldp x0, x1, [sp, #16]",
                "ldp x29, x30, [sp], #80",
                "br x16",
                route = sym route,
            )
        }

        extern "C" fn route(number: core::ffi::c_long) -> *const core::ffi::c_void {
            let routed = <$router as $crate::Router>::route(number);
            if routed.is_null() { $crate::naked::next_syscall().cast_const() } else { routed }
        }
    };
}

/// Exports `vfork`.
#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
#[macro_export]
macro_rules! export_vfork {
    () => {
        /// # Safety
        /// As libc's.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn vfork() -> core::ffi::c_int {
            core::arch::naked_asm!(
                "sub rsp, 8",
                "call {next}",
                "add rsp, 8",
                "mov rdx, qword ptr fs:[0]",
                "add rdx, qword ptr [rip + tare_thread_block@GOTTPOFF]",
                // A child of vfork that calls it again is on its own.
                "cmp dword ptr [rdx + 8], 0",
                "jne 2f",
                // The flag holds from before the slot is written to after it is read: a signal
                // handler in between may call vfork, too.
                "mov dword ptr [rdx + 8], 1",
                "pop qword ptr [rdx]",
                "call rax",
                "mov rdx, qword ptr fs:[0]",
                "add rdx, qword ptr [rip + tare_thread_block@GOTTPOFF]",
                "push qword ptr [rdx]",
                "test eax, eax",
                "jz 3f",
                "mov dword ptr [rdx + 8], 0",
                "3:",
                "ret",
                "2:",
                "jmp rax",
                next = sym $crate::naked::next_vfork,
            )
        }

        /// # Safety
        /// As libc's.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn __vfork() -> core::ffi::c_int {
            core::arch::naked_asm!("jmp {vfork}", vfork = sym vfork)
        }
    };
}

/// Exports `syscall` with a look at its number and first arguments by `<$observer>::observe`.
#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
#[macro_export]
macro_rules! export_syscall {
    ($observer:ident) => {
        /// # Safety
        /// As libc's.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn syscall() -> core::ffi::c_long {
            core::arch::naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "sub rsp, 8",
                "call {observe}",
                "call {next}",
                "add rsp, 8",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp rax",
                observe = sym observe,
                next = sym $crate::naked::next_syscall,
            )
        }

        extern "C" fn observe(number: core::ffi::c_long, first: usize, second: usize, third: usize) {
            <$observer as $crate::Observer>::observe(number, first, second, third);
        }
    };
}

/// As on x86-64.
#[cfg(target_arch = "aarch64")]
#[doc(hidden)]
#[macro_export]
macro_rules! export_vfork {
    () => {
        /// # Safety
        /// As libc's.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn vfork() -> core::ffi::c_int {
            core::arch::naked_asm!(
                "stp x29, x30, [sp, #-16]!",
                "bl {next}",
                "ldp x29, x30, [sp], #16",
                "mov x16, x0",
                "mrs x9, tpidr_el0",
                "adrp x10, :gottprel:tare_thread_block",
                "ldr x10, [x10, :gottprel_lo12:tare_thread_block]",
                "add x9, x9, x10",
                // A child of vfork that calls it again is on its own.
                "ldr w10, [x9, #8]",
                "cbnz w10, 2f",
                // The flag holds from before the slot is written to after it is read: a signal
                // handler in between may call vfork, too.
                "mov w10, #1",
                "str w10, [x9, #8]",
                "str x30, [x9]",
                "blr x16",
                "mrs x9, tpidr_el0",
                "adrp x10, :gottprel:tare_thread_block",
                "ldr x10, [x10, :gottprel_lo12:tare_thread_block]",
                "add x9, x9, x10",
                "ldr x30, [x9]",
                "cbz w0, 3f",
                "str wzr, [x9, #8]",
                "3:",
                "ret",
                "2:",
                "br x16",
                next = sym $crate::naked::next_vfork,
            )
        }

        /// # Safety
        /// As libc's.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn __vfork() -> core::ffi::c_int {
            core::arch::naked_asm!("b {vfork}", vfork = sym vfork)
        }
    };
}

/// As on x86-64.
#[cfg(target_arch = "aarch64")]
#[doc(hidden)]
#[macro_export]
macro_rules! export_syscall {
    ($observer:ident) => {
        /// # Safety
        /// As libc's.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn syscall() -> core::ffi::c_long {
            core::arch::naked_asm!(
                "stp x29, x30, [sp, #-80]!",
                "stp x0, x1, [sp, #16]",
                "stp x2, x3, [sp, #32]",
                "stp x4, x5, [sp, #48]",
                "str x6, [sp, #64]",
                "bl {observe}",
                "bl {next}",
                "mov x16, x0",
                "ldr x6, [sp, #64]",
                "ldp x4, x5, [sp, #48]",
                "ldp x2, x3, [sp, #32]",
                "ldp x0, x1, [sp, #16]",
                "ldp x29, x30, [sp], #80",
                "br x16",
                observe = sym observe,
                next = sym $crate::naked::next_syscall,
            )
        }

        extern "C" fn observe(number: core::ffi::c_long, first: usize, second: usize, third: usize) {
            <$observer as $crate::Observer>::observe(number, first, second, third);
        }
    };
}
