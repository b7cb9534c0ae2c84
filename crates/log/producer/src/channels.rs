// SPDX-License-Identifier: Apache-2.0
use crate::attach::{attach, attached, pause};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use tare_log_segment::{ChannelId, Configuration};
use tare_shm::syscall;

/// The channel of this name, made if there is none; 0, where every event is discarded, if
/// none can be. `asked` is what the program wants done with its events.
pub fn open(name: &[u8], asked: Option<Configuration>) -> ChannelId {
    let Some((region, process)) = attach() else { return 0 };
    let _only_one = Lock::take(&region.opening);
    process.open(name, syscall::gettid(), asked).unwrap_or(0)
}

/// Events of the channel are discarded from now on, whatever else was asked for.
pub fn close(channel: ChannelId) {
    let Some((region, process)) = attached() else { return };
    let _only_one = Lock::take(&region.opening);
    process.close(channel);
}

/// A lock in wiped memory: a child of fork finds it free. Not for signal handlers.
struct Lock<'word>(&'word AtomicU32);

impl<'word> Lock<'word> {
    fn take(word: &'word AtomicU32) -> Self {
        while word.compare_exchange(0, 1, AcqRel, Relaxed).is_err() {
            while word.load(Acquire) != 0 {
                pause();
            }
        }
        Self(word)
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}
