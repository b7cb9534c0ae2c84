// SPDX-License-Identifier: Apache-2.0
//! A thread that a library starts for itself, by the kernel's `clone`. libc does not know of it:
//! `pthread_create` allocates, takes locks, and makes libc treat the program as multi-threaded.
//!
//! The thread has all signals blocked, and may call nothing of libc that uses thread-local memory
//! (such as errno). Its own block of [`ThreadBlock`](crate::ThreadBlock) is there.

use crate::thread;
use core::arch::asm;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicPtr, AtomicU32};
use tare_shm::memory;
use tare_shm::syscall::{self, Errno, call};

const STACK: usize = 32 << 10;
/// Pages of 64 KiB are the largest of the supported processors.
const GUARD: usize = 64 << 10;
/// Bytes of thread-local memory around what the library's block needs.
const SPARE: usize = 4096;
/// How many times a thread that has ended is looked for, with a pause before each: for a second.
const LOOKS: u32 = 20_000;
const PAUSE_NS: i64 = 50_000;
/// Bytes of the block, and the alignment of what is next to it.
const BLOCK: usize = 64;

const FLAGS: i32 = libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_CLEARTID;

/// The one thread of a library.
#[derive(Debug)]
pub struct Background {
    /// The number of the thread; the kernel sets it to 0, and wakes a futex, when the thread ends.
    number: AtomicU32,
    /// Stack and thread-local memory, kept for the next thread.
    memory: AtomicPtr<u8>,
}

impl Default for Background {
    fn default() -> Self {
        Self::new()
    }
}

impl Background {
    pub const fn new() -> Self {
        Self { number: AtomicU32::new(0), memory: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Whether the thread runs. In the child of a fork: whether the thread of the parent did.
    pub fn is_running(&self) -> bool {
        self.number.load(Acquire) != 0
    }

    /// In the child of a fork, which does not have the thread.
    pub fn forget(&self) {
        self.number.store(0, Relaxed);
    }

    /// Starts the thread with `main`. For one caller at a time, and only if it does not run.
    pub fn start(&self, main: extern "C" fn() -> !) -> Result<(), Errno> {
        if syscall::are_forbidden() {
            return Err(Errno(libc::EPERM));
        }
        let (below, above) = thread_local();
        let length = GUARD + STACK + below + above;
        let mut base = self.memory.load(Relaxed);
        if base.is_null() {
            base = memory::map_private(length)?;
            // SAFETY: no access is taken from anything but the new mapping.
            let guard = unsafe { call(libc::SYS_mprotect, [base.addr(), GUARD, 0, 0, 0, 0]) };
            if let Err(error) = guard {
                // SAFETY: the mapping has not been given out.
                unsafe { memory::unmap(base, length) };
                return Err(error);
            }
            self.memory.store(base, Relaxed);
        }
        let stack = base.wrapping_add(GUARD + STACK);
        let pointer = stack.wrapping_add(below);
        let block = pointer.wrapping_offset(thread::offset());
        // SAFETY: both are in the mapping, by `thread_local`, and no thread uses it.
        unsafe {
            ptr::write_bytes(block, 0, BLOCK);
            // On x86-64 the first word, and the one that libc compares, are the address itself.
            pointer.cast::<usize>().write(pointer.addr());
            pointer.cast::<usize>().add(2).write(pointer.addr());
        }
        syscall::with_signals_blocked(u64::MAX, || {
            // SAFETY: stack and thread-local memory are the new thread's alone.
            unsafe { clone(stack.addr(), &self.number, pointer.addr(), main) }
        })?
    }

    /// Waits until the thread has ended, and the kernel no longer counts it among the threads of
    /// this process: `unshare` would refuse a user namespace.
    pub fn join(&self) {
        let mut last = 0;
        loop {
            let number = self.number.load(Acquire);
            if number == 0 {
                break;
            }
            last = number;
            let place = ptr::from_ref(&self.number).addr();
            let arguments = [place, libc::FUTEX_WAIT as usize, number as usize, 0, 0, 0];
            // SAFETY: the kernel reads the word.
            let waited = unsafe { call(libc::SYS_futex, arguments) };
            if !matches!(waited, Ok(_) | Err(Errno(libc::EAGAIN | libc::EINTR))) {
                return;
            }
        }
        // The word is cleared somewhat earlier. Another thread may have the number by now.
        let arguments = [syscall::getpid() as usize, last as usize, 0, 0, 0, 0];
        for _ in 0..LOOKS {
            // SAFETY: signal 0 only asks whether the thread exists.
            if last == 0 || unsafe { call(libc::SYS_tgkill, arguments) }.is_err() {
                return;
            }
            syscall::sleep(PAUSE_NS);
        }
    }
}

/// Ends the calling thread, which `start` started. It does not return; that it might lets
/// AddressSanitizer ask libc for nothing about this thread.
pub fn end() {
    // SAFETY: the thread has nothing that another one waits for.
    let _ = unsafe { call(libc::SYS_exit, [0; 6]) };
}

/// Bytes of thread-local memory below the thread's pointer, and from it on.
fn thread_local() -> (usize, usize) {
    let offset = thread::offset();
    let below = if offset < 0 { offset.unsigned_abs() } else { 0 };
    let above = if offset > 0 { offset.unsigned_abs() } else { 0 };
    let pages = |bytes: usize| (bytes + BLOCK + SPARE).next_multiple_of(4096);
    (pages(below), pages(above))
}

/// # Safety
/// `stack` is the end of memory that nothing else uses, and `pointer` has the thread-local memory.
#[cfg(target_arch = "x86_64")]
unsafe fn clone(
    stack: usize,
    number: &AtomicU32,
    pointer: usize,
    main: extern "C" fn() -> !,
) -> Result<(), Errno> {
    let number = ptr::from_ref(number).addr();
    let result: isize;
    // SAFETY: the kernel's calling convention. The new thread begins on its own stack, and never
    // comes to the end.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "call r9",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone as isize => result,
            in("rdi") FLAGS as usize, in("rsi") stack, in("rdx") number, in("r10") number,
            in("r8") pointer, in("r9") main,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    if result < 0 { Err(Errno(-result as i32)) } else { Ok(()) }
}

/// # Safety
/// As on x86-64.
#[cfg(target_arch = "aarch64")]
unsafe fn clone(
    stack: usize,
    number: &AtomicU32,
    pointer: usize,
    main: extern "C" fn() -> !,
) -> Result<(), Errno> {
    let number = ptr::from_ref(number).addr();
    let result: isize;
    // SAFETY: as on x86-64.
    unsafe {
        asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x30, xzr",
            "blr x9",
            "brk 1",
            "2:",
            in("x8") libc::SYS_clone,
            inlateout("x0") FLAGS as isize => result,
            in("x1") stack, in("x2") number, in("x3") pointer, in("x4") number, in("x9") main,
            lateout("x30") _,
        );
    }
    if result < 0 { Err(Errno(-result as i32)) } else { Ok(()) }
}

#[cfg(all(test, not(miri)))]
mod tests {
    extern crate std;

    use super::*;
    use crate::{ThreadBlock, ThreadState};
    use core::sync::atomic::AtomicU64;

    #[derive(Debug)]
    struct State;

    // SAFETY: no bytes.
    unsafe impl ThreadState for State {
        fn forked(&self) {}
    }

    static THREAD: Background = Background::new();
    static SEEN: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
    static BLOCKED: AtomicU64 = AtomicU64::new(0);

    extern "C" fn main() -> ! {
        let number = ThreadBlock::<State>::get().identity().1;
        SEEN[0].store(number, Relaxed);
        SEEN[1].store(syscall::gettid(), Relaxed);
        let mut set = 0u64;
        // SAFETY: the kernel writes one set.
        let _ = unsafe {
            call(libc::SYS_rt_sigprocmask, [0, 0, (&raw mut set).addr(), size_of::<u64>(), 0, 0])
        };
        BLOCKED.store(set, Relaxed);
        loop {
            end();
        }
    }

    #[test]
    fn thread_has_a_block_of_its_own_and_signals_blocked_and_can_be_started_again() {
        for _ in 0..1_000 {
            SEEN[0].store(0, Relaxed);
            THREAD.start(main).unwrap();
            THREAD.join();
            assert!(!THREAD.is_running());
            let seen = [0, 1].map(|place| SEEN[place].load(Relaxed));
            assert!(seen[0] != 0 && seen[0] == seen[1] && seen[0] != syscall::gettid());
            let task = std::format!("/proc/self/task/{}", seen[0]);
            assert!(!std::path::Path::new(&task).exists(), "the thread has not ended");
            // All but SIGKILL and SIGSTOP.
            assert_eq!(BLOCKED.load(Relaxed), !(1 << 8 | 1 << 18));
        }
    }
}
