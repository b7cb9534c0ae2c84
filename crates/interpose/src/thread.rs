// SPDX-License-Identifier: Apache-2.0
//! One block of memory a thread, in the initial-exec model: two instructions away, with no
//! allocation and nothing to set up or to destroy.

use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};
use tare_shm::syscall;

/// The calling thread's own. Atomics because a signal handler of the thread may come in
/// between; zero in a new thread.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ThreadBlock {
    /// Where `vfork` returns to: its stack slot is the child's to overwrite.
    pub(crate) vfork_return: AtomicUsize,
    /// Not 0 in a child of `vfork`, which borrows its parent's memory.
    pub(crate) borrowed: AtomicU32,
    /// The process that `tid` and `claim` belong to.
    pid: AtomicU32,
    tid: AtomicU32,
    /// For the library: what the thread has claimed in shared memory, 0 for nothing. A
    /// child of fork begins with nothing.
    pub claim: AtomicU32,
    /// For the library: ticks that the last call that was timed spent before the real call.
    pub before: AtomicU32,
    /// For the library: calls until the next that is timed so.
    pub untimed: AtomicU32,
    /// For the library: not 0 while it records, where it cannot hold signals.
    pub recording: AtomicU32,
}

// The offsets of `naked`.
const _: () = {
    assert!(core::mem::offset_of!(ThreadBlock, vfork_return) == 0);
    assert!(core::mem::offset_of!(ThreadBlock, borrowed) == 8);
    assert!(size_of::<ThreadBlock>() == 64);
};

global_asm!(
    ".section .tbss.tare_thread_block,\"awT\",%nobits",
    ".p2align 6",
    ".globl tare_thread_block",
    ".hidden tare_thread_block",
    ".type tare_thread_block, %object",
    ".size tare_thread_block, 64",
    "tare_thread_block:",
    ".zero 64",
    ".previous",
);

impl ThreadBlock {
    /// The calling thread's block.
    #[inline(always)]
    pub fn get() -> &'static Self {
        let block: *const Self;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: reads the thread pointer and a constant of the linker's.
        unsafe {
            asm!(
                "mov {block}, qword ptr fs:[0]",
                "add {block}, qword ptr [rip + tare_thread_block@GOTTPOFF]",
                block = out(reg) block,
                options(pure, nomem, nostack),
            );
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        unsafe {
            asm!(
                "mrs {block}, tpidr_el0",
                "adrp {offset}, :gottprel:tare_thread_block",
                "ldr {offset}, [{offset}, :gottprel_lo12:tare_thread_block]",
                "add {block}, {block}, {offset}",
                block = out(reg) block,
                offset = out(reg) _,
                options(pure, nomem, nostack),
            );
        }
        // SAFETY: the block lives as long as the thread, which is as long as anything that
        // the thread can do with the reference; all of it is atomics.
        unsafe { &*block }
    }

    /// Whether this is a child of `vfork`: what it does to descriptors is not done to its
    /// parent's, though they share the table.
    #[inline]
    pub fn is_borrowed(&self) -> bool {
        self.borrowed.load(Relaxed) != 0
    }

    /// Process and thread number, found out anew after a fork of any kind.
    pub fn identity(&self) -> (u32, u32) {
        let (pid, is_new) = process();
        // In a PID namespace of its own a child can have its parent's number.
        if is_new || self.pid.load(Relaxed) != pid {
            self.tid.store(syscall::gettid(), Relaxed);
            self.claim.store(0, Relaxed);
            self.pid.store(pid, Relaxed);
        }
        (pid, self.tid.load(Relaxed))
    }
}

/// A page that the kernel wipes in the child of a fork; holds the process's number.
static PAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());

/// Since Linux 4.14.
const MADV_WIPEONFORK: usize = 18;

/// Lets `identity` notice forks without a system call. For the library's constructor.
pub fn watch_forks() {
    let length = 4096;
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: a new mapping disturbs no other, and the advice is for it alone.
    let page = unsafe {
        let Ok(page) = syscall::call(libc::SYS_mmap, [0, length, protection, flags, usize::MAX, 0])
        else {
            return;
        };
        if syscall::call(libc::SYS_madvise, [page, length, MADV_WIPEONFORK, 0, 0, 0]).is_err() {
            let _ = syscall::call(libc::SYS_munmap, [page, length, 0, 0, 0, 0]);
            return;
        }
        page
    };
    PAGE.store(core::ptr::with_exposed_provenance_mut(page), Relaxed);
}

/// The process's number, and whether nobody has asked for it yet.
fn process() -> (u32, bool) {
    // SAFETY: null, or the page, which is never unmapped.
    let Some(page) = (unsafe { PAGE.load(Relaxed).as_ref() }) else {
        return (syscall::getpid(), false);
    };
    match page.load(Relaxed) {
        0 => {
            let pid = syscall::getpid();
            page.store(pid, Relaxed);
            (pid, true)
        }
        pid => (pid, false),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn every_thread_has_its_own() {
        let here = ThreadBlock::get();
        here.claim.store(7, Relaxed);
        let there = std::thread::spawn(|| {
            let block = ThreadBlock::get();
            (core::ptr::from_ref(block).addr(), block.claim.load(Relaxed))
        });
        let (address, claim) = there.join().unwrap();
        assert_ne!(address, core::ptr::from_ref(here).addr());
        assert_eq!(claim, 0);
        assert_eq!(ThreadBlock::get().claim.load(Relaxed), 7);
    }

    #[test]
    fn a_child_of_fork_knows_who_it_is() {
        watch_forks();
        let block = ThreadBlock::get();
        assert_eq!(block.identity(), (syscall::getpid(), syscall::gettid()));
        block.claim.store(3, Relaxed);
        // SAFETY: the child makes system calls only, then ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let itself = (syscall::getpid(), syscall::getpid());
            let right = block.identity() == itself && block.claim.load(Relaxed) == 0;
            // SAFETY: ends the process.
            unsafe { libc::_exit(if right { 0 } else { 1 }) }
        }
        let mut status = -1;
        // SAFETY: waits for the child just made.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0);
        assert_eq!(block.claim.load(Relaxed), 3);
    }
}
