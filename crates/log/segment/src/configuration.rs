// SPDX-License-Identifier: Apache-2.0
//! What happens to the events of a channel, as two words.

use crate::layout::{Channel, mode};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// What is done with an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Handler {
    /// Nothing: it is not even counted.
    Null = 1,
    /// Into the ring.
    #[default]
    Buffered = 2,
    /// Every `a`-th event into the ring.
    Downsample = 3,
    /// Into the ring if the payload modulo `b`, a power of two, is less than `a`.
    XOfY = 4,
}

/// What is done on a full ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Policy {
    /// The event is lost and counted.
    #[default]
    Drop = 1,
    /// The thread waits, as long as there is a collector; else as above.
    Wait = 2,
    /// The oldest events of the ring are lost and counted.
    Overwrite = 3,
}

/// How events are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Codec {
    None = 1,
    #[default]
    Zstd = 2,
    Lz4 = 3,
    Lzo1x = 4,
}

impl Codec {
    pub const ALL: &[(&str, Self)] =
        &[("none", Self::None), ("zstd", Self::Zstd), ("lz4", Self::Lz4), ("lzo1x", Self::Lzo1x)];

    /// That with this number.
    pub fn numbered(number: u16) -> Option<Self> {
        named(Self::ALL, |codec| *codec as u16 == number)
    }
}

impl Handler {
    pub const ALL: &[(&str, Self)] = &[
        ("null", Self::Null),
        ("buffered", Self::Buffered),
        ("downsample", Self::Downsample),
        ("x-of-y", Self::XOfY),
    ];
}

impl Policy {
    pub const ALL: &[(&str, Self)] =
        &[("drop", Self::Drop), ("wait", Self::Wait), ("overwrite", Self::Overwrite)];
}

/// All of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    pub handler: Handler,
    pub policy: Policy,
    /// `None` leaves it to the collector.
    pub codec: Option<Codec>,
    pub a: u32,
    pub b: u32,
}

impl Configuration {
    pub fn store(self, words: &[AtomicU64; 2]) {
        words[1].store(u64::from(self.a) | u64::from(self.b) << 32, Relaxed);
        let codec = self.codec.map_or(0, |codec| codec as u8);
        let first = [self.handler as u8, self.policy as u8, codec, 1, 0, 0, 0, 0];
        words[0].store(u64::from_le_bytes(first), Release);
    }

    /// `None` where nothing was stored, or nothing that makes sense.
    pub fn load(words: &[AtomicU64; 2]) -> Option<Self> {
        let first = words[0].load(Acquire).to_le_bytes();
        let second = words[1].load(Relaxed);
        Some(Self {
            handler: named(Handler::ALL, |handler| *handler as u8 == first[0])?,
            policy: named(Policy::ALL, |policy| *policy as u8 == first[1])?,
            codec: Codec::numbered(first[2].into()),
            a: second as u32,
            b: (second >> 32) as u32,
        })
    }

    /// What is in force for a channel.
    pub fn of(channel: &Channel) -> Self {
        Self::load(&channel.asked).unwrap_or_default()
    }

    /// What the fast path does, where it may read the ticks itself.
    pub fn mode(self, inline_clock: bool) -> u8 {
        match self.handler {
            Handler::Null => mode::NULL,
            Handler::Buffered if inline_clock => mode::RING,
            _ => mode::OUT_OF_LINE,
        }
    }
}

fn named<T: Copy>(all: &[(&str, T)], is: impl Fn(&T) -> bool) -> Option<T> {
    all.iter().map(|(_, one)| *one).find(is)
}
