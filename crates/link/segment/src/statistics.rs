// SPDX-License-Identifier: Apache-2.0
use crate::{LinkSettings, Listing, Reasons};
use core::ffi::CStr;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tare_shm::header;

/// The environment variable that names the statistics to the library.
pub const VARIABLE: &str = "TARE_LINK";

/// The environment variable that names a file for what became of each connection.
pub const LOG_VARIABLE: &str = "TARE_LINK_LOG";

/// What the programs of one `tare-link` count together: a segment of its own.
#[repr(C)]
#[derive(Debug)]
pub struct Statistics {
    _header: [AtomicU64; 8],
    lanes: [Lane; LANES],
    settings: LinkSettings,
    listing: Listing,
    /// Why connections stayed TCP, were taken back to it for good by their own program, and why
    /// streams changed from the ring to TCP.
    pub stayed: Reasons,
    pub left: Reasons,
    pub downgraded: Reasons,
}

/// Threads count in different lanes, so that they do not wait for each other's lines of the cache.
const LANES: usize = 32;

#[repr(C, align(128))]
#[derive(Debug)]
struct Lane([AtomicU64; Counter::ALL.len()]);

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Programs that loaded the library; one for each exec, none for a fork.
    Programs,
    /// Connections whose two ends found each other.
    Links,
    /// Times that an outgoing stream changed from TCP to the ring, and back.
    Upgrades,
    Downgrades,
    /// Bytes of linked connections.
    RingSent,
    RingReceived,
    TcpSent,
    TcpReceived,
    /// Calls that moved bytes through a ring.
    RingSends,
    RingReceives,
    /// Times that the other end was woken by its eventfd.
    Wakes,
    /// Short waits that saved a sleep, and those that did not.
    Spins,
    VainSpins,
    /// Links that went back to TCP for good, by their own program.
    Left,
    /// Links that were reset because the other end did not answer in time.
    Reset,
    /// Connections that stayed TCP though both ends may have been linked: no descriptor or memory.
    Refused,
    /// Times that a program with links could not start its service thread.
    Unserved,
}

impl Counter {
    pub const ALL: &[Self] = &[
        Self::Programs,
        Self::Links,
        Self::Upgrades,
        Self::Downgrades,
        Self::RingSent,
        Self::RingReceived,
        Self::TcpSent,
        Self::TcpReceived,
        Self::RingSends,
        Self::RingReceives,
        Self::Wakes,
        Self::Spins,
        Self::VainSpins,
        Self::Left,
        Self::Reset,
        Self::Refused,
        Self::Unserved,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Programs => "programs",
            Self::Links => "links",
            Self::Upgrades => "upgrades",
            Self::Downgrades => "downgrades",
            Self::RingSent => "ring_bytes_sent",
            Self::RingReceived => "ring_bytes_received",
            Self::TcpSent => "tcp_bytes_sent",
            Self::TcpReceived => "tcp_bytes_received",
            Self::RingSends => "ring_sends",
            Self::RingReceives => "ring_receives",
            Self::Wakes => "wakes",
            Self::Spins => "spins",
            Self::VainSpins => "vain_spins",
            Self::Left => "left",
            Self::Reset => "reset",
            Self::Refused => "refused",
            Self::Unserved => "unserved",
        }
    }
}

impl Statistics {
    pub const NAME: &CStr = c"tare-link-statistics";
    pub const KIND: u32 = header::kind::LINK_SHARED;

    /// `thread` is any number of the calling thread's.
    pub fn add(&self, thread: u32, counter: Counter, number: u64) {
        self.lanes[thread as usize % LANES].0[counter as usize].fetch_add(number, Relaxed);
    }

    /// The connections that are linked.
    pub fn settings(&self) -> &LinkSettings {
        &self.settings
    }

    /// The links that there are now.
    pub fn listing(&self) -> &Listing {
        &self.listing
    }

    pub fn get(&self, counter: Counter) -> u64 {
        let counted = self.lanes.iter().map(|lane| lane.0[counter as usize].load(Relaxed));
        counted.fold(0, u64::wrapping_add)
    }
}

/// Where the statistics are, and how the library works: `PID:START:FD:EAGER`, all decimal. The
/// descriptor is tare-link's number, which its children inherit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    pub pid: u32,
    pub start: u64,
    pub statistics: i32,
    pub eager: bool,
}

impl fmt::Display for Handover {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let eager = u8::from(self.eager);
        write!(out, "{}:{}:{}:{eager}", self.pid, self.start, self.statistics)
    }
}

impl Handover {
    /// Reads the variable's value; `None` unless it is four numbers in range.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let mut fields = value.split(|byte| *byte == b':').map(number);
        let handover = Self {
            pid: u32::try_from(fields.next()??).ok()?,
            start: fields.next()??,
            statistics: i32::try_from(fields.next()??).ok()?,
            eager: match fields.next()?? {
                0 => false,
                1 => true,
                _ => return None,
            },
        };
        fields.next().is_none().then_some(handover)
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, digit| {
        let value = digit.checked_sub(b'0').filter(|value| *value < 10)?;
        sum.checked_mul(10)?.checked_add(value.into())
    })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        for eager in [false, true] {
            let handover = Handover { pid: u32::MAX, start: u64::MAX, statistics: 900, eager };
            assert_eq!(Handover::parse(handover.to_string().as_bytes()), Some(handover));
        }
        for value in ["", "1:2:3", "1:2:3:2", "1:2:3:1:", "1:2:-3:1", "1:2:3:1 "] {
            assert_eq!(Handover::parse(value.as_bytes()), None, "{value}");
        }
    }
}
