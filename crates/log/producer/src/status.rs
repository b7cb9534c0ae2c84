// SPDX-License-Identifier: Apache-2.0
use crate::segment::handover::is_served;
use crate::segment::mapped::attached;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;

/// How it stands with this process, for whoever asks.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// Whether events are kept at all.
    pub is_on: bool,
    pub is_served: bool,
    /// Where times come from, as in the segment.
    pub clock: u32,
    pub ring_bytes: u64,
    /// What the fast path does, by channel.
    pub modes: &'static [AtomicU8],
}

/// `None` as long as the process has no segment.
pub fn status() -> Option<Status> {
    let (_, process) = attached()?;
    Some(Status {
        is_on: process.is_on.load(Relaxed) != 0,
        is_served: is_served(),
        clock: process.clock.load(Relaxed),
        ring_bytes: process.ring_words.load(Relaxed) * 8,
        modes: &process.modes,
    })
}
