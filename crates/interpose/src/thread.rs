// SPDX-License-Identifier: Apache-2.0
//! One block of memory a thread, in the initial-exec model: two instructions away, with no
//! allocation and nothing to set up or to destroy.

use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};
use tare_shm::{memory, per_thread, syscall};

/// What a library keeps of a thread, in its block.
///
/// # Safety
/// Made of atomics only, so that zero bytes are a value of it.
pub unsafe trait ThreadState: Sync + 'static {
    /// The thread is now in the child of a fork.
    fn forked(&self);
}

/// The calling thread's own, with the one state `S` of the library. Atomics because a signal
/// handler of the thread may come in between; zero in a new thread.
#[repr(C)]
#[derive(Debug)]
pub struct ThreadBlock<S> {
    /// Where `vfork` returns to: its stack slot is the child's to overwrite.
    pub(crate) vfork_return: AtomicUsize,
    /// Not 0 in a child of `vfork`, which borrows its parent's memory; and in the parent until
    /// `vfork` has returned: for ever, if a signal handler jumps out of it.
    pub(crate) borrowed: AtomicU32,
    /// The process that `tid` and `state` belong to.
    pid: AtomicU32,
    tid: AtomicU32,
    pub state: S,
}

/// The memory of a block: a line of the cache, whatever the library's state.
#[repr(C, align(64))]
struct Memory {
    _bytes: [u8; 64],
}

// The offsets of `naked`.
const _: () = {
    assert!(offset_of!(ThreadBlock<()>, vfork_return) == 0);
    assert!(offset_of!(ThreadBlock<()>, borrowed) == 8);
};

per_thread! {
    fn memory() -> *const Memory = "tare_thread_block";
}

/// Where the block is, from the thread's pointer on: the same in all threads.
pub(crate) fn offset() -> isize {
    let pointer: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads the thread pointer.
    unsafe {
        core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nomem, nostack));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads the thread pointer.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack));
    }
    memory().addr().wrapping_sub(pointer).cast_signed()
}

impl<S> ThreadBlock<S> {
    /// Whether this is a child of `vfork`: what it does to descriptors is not done to its
    /// parent's, though they share the table.
    #[inline]
    pub fn is_borrowed(&self) -> bool {
        self.borrowed.load(Relaxed) != 0 && is_another_process()
    }
}

/// Whether this process is not the owner of the page, or that is unknown.
#[cold]
fn is_another_process() -> bool {
    let known = known_process();
    known == 0 || known != syscall::getpid()
}

impl ThreadBlock<()> {
    /// The calling thread's block, of whatever library.
    #[inline(always)]
    pub(crate) fn of_any() -> &'static Self {
        // SAFETY: the block lives as long as the thread; all but the state, of which nothing is used
        // here, is atomics.
        unsafe { &*memory().cast() }
    }
}

impl<S: ThreadState> ThreadBlock<S> {
    /// The calling thread's block.
    #[inline(always)]
    pub fn get() -> &'static Self {
        const { assert!(size_of::<Self>() <= size_of::<Memory>() && align_of::<S>() <= 64) };
        // SAFETY: the block lives as long as the thread, which is as long as anything that
        // the thread can do with the reference; all of it is atomics, of which any bytes are values.
        unsafe { &*memory().cast() }
    }

    /// Whether the calling process shares this memory with the one that it is of: after `vfork`, or
    /// `clone` with CLONE_VM. Not known where system calls are forbidden.
    pub fn is_of_another_process(&self) -> bool {
        if syscall::are_forbidden() {
            return false;
        }
        self.identity();
        let known = known_process();
        known != 0 && known != syscall::getpid()
    }

    /// Process and thread number, found out anew after a fork of any kind.
    #[inline]
    pub fn identity(&self) -> (u32, u32) {
        let pid = known_process();
        if pid != 0 && pid == self.pid.load(Relaxed) {
            return (pid, self.tid.load(Relaxed));
        }
        self.find_identity()
    }

    #[cold]
    #[inline(never)]
    fn find_identity(&self) -> (u32, u32) {
        // The numbers of a child of vfork must not be its parent's.
        if self.borrowed.load(Relaxed) != 0 {
            return (syscall::getpid(), syscall::gettid());
        }
        let (pid, is_new) = process();
        // In a PID namespace of its own a child can have its parent's number.
        if is_new || self.pid.load(Relaxed) != pid {
            self.tid.store(syscall::gettid(), Relaxed);
            self.state.forked();
            self.pid.store(pid, Relaxed);
        }
        (pid, self.tid.load(Relaxed))
    }
}

/// A page that the kernel wipes in the child of a fork; holds the process's number.
static PAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());

/// Lets `identity` notice forks without a system call. For the library's constructor.
pub fn watch_forks() {
    if let Ok(page) = memory::map_wiped_on_fork(size_of::<AtomicU32>()) {
        PAGE.store(page.cast(), Relaxed);
        note_process();
    }
}

/// Lets the page have the process's number. For `vfork`: its child has the same page.
pub(crate) fn note_process() {
    process();
}

#[inline]
fn page() -> Option<&'static AtomicU32> {
    // SAFETY: null, or the page, which is never unmapped.
    unsafe { PAGE.load(Relaxed).as_ref() }
}

/// The process's number, 0 if it is not in the page.
#[inline]
fn known_process() -> u32 {
    page().map_or(0, |page| page.load(Relaxed))
}

/// The process's number, and whether nobody has asked for it yet.
fn process() -> (u32, bool) {
    match (page(), known_process()) {
        (None, _) => (syscall::getpid(), false),
        (Some(page), 0) => {
            let pid = syscall::getpid();
            page.store(pid, Relaxed);
            (pid, true)
        }
        (_, pid) => (pid, false),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[derive(Debug)]
    struct Claim(AtomicU32);

    // SAFETY: one atomic.
    unsafe impl ThreadState for Claim {
        fn forked(&self) {
            self.0.store(0, Relaxed);
        }
    }

    type Block = ThreadBlock<Claim>;

    #[test]
    fn every_thread_has_its_own() {
        let here = Block::get();
        here.state.0.store(7, Relaxed);
        let there = std::thread::spawn(|| {
            let block = Block::get();
            (core::ptr::from_ref(block).addr(), block.state.0.load(Relaxed))
        });
        let (address, claim) = there.join().unwrap();
        assert_ne!(address, core::ptr::from_ref(here).addr());
        assert_eq!(claim, 0);
        assert_eq!(Block::get().state.0.load(Relaxed), 7);
    }

    #[test]
    fn a_child_of_fork_knows_who_it_is() {
        watch_forks();
        let block = Block::get();
        assert_eq!(block.identity(), (syscall::getpid(), syscall::gettid()));
        block.state.0.store(3, Relaxed);
        // SAFETY: the child makes system calls only, then ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let itself = (syscall::getpid(), syscall::getpid());
            let right = block.identity() == itself && block.state.0.load(Relaxed) == 0;
            // SAFETY: ends the process.
            unsafe { libc::_exit(if right { 0 } else { 1 }) }
        }
        let mut status = -1;
        // SAFETY: waits for the child just made.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0);
        assert_eq!(block.state.0.load(Relaxed), 3);
    }
}
