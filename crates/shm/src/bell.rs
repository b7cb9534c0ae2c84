// SPDX-License-Identifier: Apache-2.0
use core::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};
#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, fence};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, fence};

/// Lets the side that empties rings sleep until the other has filled them so far. All zero is
/// a bell for which nobody waits: then to ring it costs no system call.
///
/// Who empties arms the bell, looks at the rings once more, and waits. Who fills writes, looks
/// at its ring, and rings. One of the two sees what the other did.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Bell(AtomicU32);

impl Bell {
    pub const ARMED: u32 = 1;

    /// Before the last look at the rings, after which `wait` is due as long as it is armed.
    pub fn arm(&self) {
        self.0.store(Self::ARMED, Relaxed);
        fence(SeqCst);
    }

    /// Awake: nobody need ring.
    pub fn disarm(&self) {
        self.0.store(0, Relaxed);
    }

    /// After a ring was filled so far: whether somebody is to be woken, once.
    pub fn ring(&self) -> bool {
        fence(SeqCst);
        self.0.load(Relaxed) == Self::ARMED && self.0.swap(0, AcqRel) == Self::ARMED
    }

    /// Whether nobody has rung since it was armed.
    pub fn is_armed(&self) -> bool {
        self.0.load(Relaxed) == Self::ARMED
    }
}

#[cfg(not(loom))]
mod futex {
    use super::Bell;
    use crate::syscall::{self, Errno, call};
    use core::time::Duration;

    /// Bells that one wait can be for.
    pub const MOST: usize = 128;

    /// Since Linux 5.16, under one number on all architectures.
    const FUTEX_WAITV: i64 = 449;
    /// A word of 32 bits, in memory that processes share.
    const SIZE_U32: u32 = 2;

    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Waiter {
        value: u64,
        address: u64,
        flags: u32,
        reserved: u32,
    }

    impl Bell {
        /// Rings, and wakes who waits. From anywhere, a signal handler included.
        pub fn wake(&self) {
            if self.ring() {
                let word = (&raw const self.0).addr();
                let arguments = [word, libc::FUTEX_WAKE as usize, 1, 0, 0, 0];
                // SAFETY: the word is mapped; the kernel does not write.
                let _ = unsafe { call(libc::SYS_futex, arguments) };
            }
        }

        /// Until one of the bells, all of which were armed, is rung, or for so long. Says
        /// whether the kernel can wait for so many.
        pub fn wait(bells: &[&Self], most: Duration) -> bool {
            if bells.len() > MOST {
                return false;
            }
            let none = Waiter { value: 0, address: 0, flags: 0, reserved: 0 };
            let mut waiters = [none; MOST];
            for (waiter, bell) in waiters.iter_mut().zip(bells) {
                let address = (&raw const bell.0).addr() as u64;
                *waiter = Waiter { value: Self::ARMED.into(), address, flags: SIZE_U32, ..none };
            }
            let now = syscall::clock(libc::CLOCK_MONOTONIC).ok().map(Duration::from_nanos);
            let Some(end) = now.and_then(|now| now.checked_add(most)) else { return false };
            let end = libc::timespec {
                tv_sec: end.as_secs() as libc::time_t,
                tv_nsec: end.subsec_nanos().into(),
            };
            let clock = libc::CLOCK_MONOTONIC as usize;
            let (list, end) = (waiters.as_ptr().addr(), (&raw const end).addr());
            // SAFETY: list, bells and time live as long as the call; the kernel writes none.
            let waited = unsafe { call(FUTEX_WAITV, [list, bells.len(), 0, end, clock, 0]) };
            !matches!(waited, Err(Errno(libc::ENOSYS | libc::EINVAL | libc::EPERM)))
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn a_bell_rings_once_for_who_has_armed_it() {
        let bell = Bell::default();
        assert!(!bell.ring());
        bell.arm();
        assert!(bell.is_armed() && bell.ring());
        assert!(!bell.is_armed() && !bell.ring());
        bell.arm();
        bell.disarm();
        assert!(!bell.ring());
    }

    #[test]
    #[cfg_attr(miri, ignore = "makes system calls")]
    fn who_waits_for_several_is_woken_by_one() {
        use core::time::Duration;
        use std::{thread, time::Instant};
        let bells = [Bell::default(), Bell::default()];
        bells.iter().for_each(Bell::arm);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(20));
                bells[1].wake();
            });
            let begin = Instant::now();
            if !Bell::wait(&bells.each_ref(), Duration::from_secs(60)) {
                return; // A kernel that cannot; then nobody is to wait so.
            }
            assert!(begin.elapsed() < Duration::from_secs(50));
            assert!(bells[0].is_armed() && !bells[1].is_armed());
            // One that is rung already is not waited for.
            assert!(Bell::wait(&bells.each_ref(), Duration::from_secs(60)));
            assert!(begin.elapsed() < Duration::from_secs(50));
        });
    }
}
