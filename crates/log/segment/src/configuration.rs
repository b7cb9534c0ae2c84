// SPDX-License-Identifier: Apache-2.0
//! What happens to the events of a channel, as two words.

use crate::layout::mode;
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
    /// Into the collector's file, before the call returns; into the ring where that cannot be.
    Id = 5,
    /// The first into the ring, the last when the channel is closed or the process ends.
    FirstLast = 6,
    /// Of every `a` events the one in the middle by time.
    Median = 7,
    /// Counted; with the first event after each period, the number so far into the ring.
    PeriodicCounter = 8,
    /// Counted; the collector writes the number so far once a period.
    FastPeriodicCounter = 9,
    /// Into the ring; the collector answers who asks at the address.
    FoxStart = 10,
    /// Into the ring, and asks at the address of a start; the collector writes how long the
    /// answer took.
    FoxEnd = 11,
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

impl Handler {
    pub const ALL: &[(&str, Self)] = &[
        ("null", Self::Null),
        ("buffered", Self::Buffered),
        ("id", Self::Id),
        ("downsample", Self::Downsample),
        ("x-of-y", Self::XOfY),
        ("first-last", Self::FirstLast),
        ("median", Self::Median),
        ("periodic-counter", Self::PeriodicCounter),
        ("fast-periodic-counter", Self::FastPeriodicCounter),
        ("fox-start", Self::FoxStart),
        ("fox-end", Self::FoxEnd),
    ];

    /// What `a` and `b` are where neither is said: Cloudprofiler's numbers.
    pub const fn defaults(self) -> [u32; 2] {
        match self {
            Self::Downsample => [10, 0],
            Self::XOfY => [100, 16_384],
            Self::Median => [1000, 0],
            Self::PeriodicCounter | Self::FastPeriodicCounter => [10_000_000, 0],
            _ => [0, 0],
        }
    }
}

impl Policy {
    pub const ALL: &[(&str, Self)] =
        &[("drop", Self::Drop), ("wait", Self::Wait), ("overwrite", Self::Overwrite)];
}

impl Codec {
    pub const ALL: &[(&str, Self)] =
        &[("none", Self::None), ("zstd", Self::Zstd), ("lz4", Self::Lz4), ("lzo1x", Self::Lzo1x)];

    /// That with this number.
    pub fn numbered(number: u16) -> Option<Self> {
        named(Self::ALL, |codec| *codec as u16 == number)
    }
}

/// All of it. A time in nanoseconds has its lower half in `a`.
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
        let Self { handler, policy, codec, a, b } = self;
        let settings = RuleSettings { handler: Some((handler, a, b)), policy: Some(policy), codec };
        settings.store(words);
    }

    /// `None` where nothing was stored, or nothing that makes sense.
    pub fn load(words: &[AtomicU64; 2]) -> Option<Self> {
        let settings = RuleSettings::load(words);
        let (handler, a, b) = settings.handler?;
        Some(Self { handler, policy: settings.policy?, codec: settings.codec, a, b })
    }

    /// With its handler's numbers where none are said.
    pub fn or_defaults(self) -> Self {
        match (self.a, self.b) {
            (0, 0) => {
                let [a, b] = self.handler.defaults();
                Self { a, b, ..self }
            }
            _ => self,
        }
    }

    /// This, but for what the settings say.
    pub fn with(self, settings: RuleSettings) -> Self {
        let (handler, a, b) = settings.handler.unwrap_or((self.handler, self.a, self.b));
        let policy = settings.policy.unwrap_or(self.policy);
        Self { handler, policy, codec: settings.codec.or(self.codec), a, b }
    }

    /// What the fast path does, where it may read the ticks itself.
    pub fn mode(self, inline_clock: bool) -> u8 {
        match self.handler {
            Handler::Null => mode::NULL,
            Handler::Buffered | Handler::FoxStart if inline_clock => mode::RING,
            _ => mode::OUT_OF_LINE,
        }
    }

    /// A period in nanoseconds.
    pub fn period_ns(self) -> u64 {
        u64::from(self.a) | u64::from(self.b) << 32
    }
}

/// What a rule says of a channel; of what is `None` it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleSettings {
    pub handler: Option<(Handler, u32, u32)>,
    pub policy: Option<Policy>,
    pub codec: Option<Codec>,
}

impl RuleSettings {
    pub fn store(self, words: &[AtomicU64; 2]) {
        let (handler, a, b) = self.handler.map_or((0, 0, 0), |(is, a, b)| (is as u8, a, b));
        let policy = self.policy.map_or(0, |policy| policy as u8);
        let codec = self.codec.map_or(0, |codec| codec as u8);
        words[1].store(u64::from(a) | u64::from(b) << 32, Relaxed);
        let first = [handler, policy, codec, 1, 0, 0, 0, 0];
        words[0].store(u64::from_le_bytes(first), Release);
    }

    /// Nothing where nothing was stored, or nothing that makes sense.
    pub fn load(words: &[AtomicU64; 2]) -> Self {
        let first = words[0].load(Acquire).to_le_bytes();
        let second = words[1].load(Relaxed);
        let handler = named(Handler::ALL, |handler| *handler as u8 == first[0]);
        Self {
            handler: handler.map(|handler| (handler, second as u32, (second >> 32) as u32)),
            policy: named(Policy::ALL, |policy| *policy as u8 == first[1]),
            codec: Codec::numbered(first[2].into()),
        }
    }
}

fn named<T: Copy>(all: &[(&str, T)], is: impl Fn(&T) -> bool) -> Option<T> {
    all.iter().map(|(_, value)| *value).find(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_loaded() {
        let words = [const { AtomicU64::new(0) }; 2];
        assert_eq!(Configuration::load(&words), None);
        assert_eq!(RuleSettings::load(&words), RuleSettings::default());
        for (_, handler) in Handler::ALL {
            let all = Configuration {
                handler: *handler,
                policy: Policy::Overwrite,
                codec: Some(Codec::Lzo1x),
                a: u32::MAX,
                b: 7,
            };
            all.store(&words);
            assert_eq!(Configuration::load(&words), Some(all));
        }
        words[0].store(0x0101_0200 | 99, Relaxed);
        assert_eq!(Configuration::load(&words), None, "there is no handler 99");
    }

    #[test]
    fn a_rule_changes_what_it_speaks_of() {
        let asked = Configuration { handler: Handler::XOfY, a: 3, b: 8, ..Default::default() };
        let words = [const { AtomicU64::new(0) }; 2];
        RuleSettings { policy: Some(Policy::Wait), ..RuleSettings::default() }.store(&words);
        let is = asked.with(RuleSettings::load(&words));
        assert_eq!(is, Configuration { policy: Policy::Wait, ..asked });
        RuleSettings { handler: Some((Handler::Median, 9, 0)), ..RuleSettings::default() }
            .store(&words);
        let is = is.with(RuleSettings::load(&words));
        assert_eq!((is.handler, is.policy, is.a, is.b), (Handler::Median, Policy::Wait, 9, 0));
    }
}
