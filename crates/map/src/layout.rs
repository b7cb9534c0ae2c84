// SPDX-License-Identifier: Apache-2.0
//! The structures of `bpf/map.h`.

use std::net::{IpAddr, Ipv6Addr};

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EdgeKey {
    pub local: [u8; 16],
    pub peer: [u8; 16],
    pub cgroup: u64,
    pub program: u64,
    pub device: u32,
    pub netns: u32,
    pub port: u16,
    pub client_port: u16,
    pub protocol: u8,
    pub role: u8,
    pub padding: u16,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeCounts {
    pub found: u64,
    pub opened: u64,
    pub closed: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub packets_sent: u64,
    pub packets_received: u64,
    pub retransmits: u64,
    pub rtt_count: u64,
    pub rtt_sum_us: u64,
    pub rtt_min_us: u64,
    pub rtt_max_us: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    /// The kernel's tick at `last_ns`.
    pub tick: u64,
    pub pid: u32,
    pub confidence: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorKey {
    pub edge: EdgeKey,
    pub kind: u32,
    pub number: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub key: EdgeKey,
    pub time_ns: u64,
    pub pid: u32,
    pub kind: u32,
    pub value: i32,
    pub confidence: u32,
}

/// In the order of `enum event_kind`.
pub mod events {
    pub const FOUND: u32 = 0;
    pub const OPENED: u32 = 1;
    pub const FAILED: u32 = 2;
    pub const ENDED: u32 = 3;
    pub const SENT: u32 = 4;
    pub const RECEIVED: u32 = 5;
}

/// In the order of `enum error_kind`.
pub mod errors {
    pub const FAILED_CONNECT: u32 = 0;
    pub const BROKEN: u32 = 1;
    pub const FAILED_SEND: u32 = 2;
    pub const FAILED_RECEIVE: u32 = 3;
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProgramKey {
    pub program: u64,
    pub device: u32,
    pub padding: u32,
}

pub type ProgramName = [u8; 64];

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;

pub const ROLE_CLIENT: u8 = 1;
pub const ROLE_SERVER: u8 = 2;

pub const LISTENER: u32 = 2;
pub const OBSERVED: u32 = 4;

/// In the order of `enum loss`.
pub const LOSSES: usize = 8;
pub const FOLDED: usize = 0;
pub const LOST_OPEN: usize = 7;

/// In the order of `enum addition`.
pub const ADDED_EDGES: u32 = 0;
pub const ADDED_ERRORS: u32 = 1;

// SAFETY: each is plain data that every bit pattern is a value of; the padding is named.
unsafe impl aya::Pod for EdgeKey {}
// SAFETY: as above.
unsafe impl aya::Pod for EdgeCounts {}
// SAFETY: as above.
unsafe impl aya::Pod for ErrorKey {}
// SAFETY: as above.
unsafe impl aya::Pod for ProgramKey {}

impl EdgeKey {
    /// What is folded when the map is full.
    pub const OTHER: Self = Self {
        local: [0; 16],
        peer: [0; 16],
        cgroup: 0,
        program: 0,
        device: 0,
        netns: 0,
        port: 0,
        client_port: 0,
        protocol: 0,
        role: 0,
        padding: 0,
    };

    pub fn program_key(&self) -> ProgramKey {
        ProgramKey { program: self.program, device: self.device, padding: 0 }
    }
}

impl EdgeCounts {
    pub const EMPTY: Self = Self {
        found: 0,
        opened: 0,
        closed: 0,
        bytes_sent: 0,
        bytes_received: 0,
        packets_sent: 0,
        packets_received: 0,
        retransmits: 0,
        rtt_count: 0,
        rtt_sum_us: 0,
        rtt_min_us: u64::MAX,
        rtt_max_us: 0,
        first_ns: 0,
        last_ns: 0,
        tick: 0,
        pid: 0,
        confidence: 0,
    };

    /// Adds what was counted at another time. Counts of an edge that a connection left may be below
    /// zero in between.
    pub fn add(&mut self, other: &Self) {
        for (sum, number) in [
            (&mut self.found, other.found),
            (&mut self.opened, other.opened),
            (&mut self.closed, other.closed),
            (&mut self.bytes_sent, other.bytes_sent),
            (&mut self.bytes_received, other.bytes_received),
            (&mut self.packets_sent, other.packets_sent),
            (&mut self.packets_received, other.packets_received),
            (&mut self.retransmits, other.retransmits),
            (&mut self.rtt_count, other.rtt_count),
            (&mut self.rtt_sum_us, other.rtt_sum_us),
        ] {
            *sum = sum.wrapping_add(number);
        }
        self.rtt_min_us = self.rtt_min_us.min(other.rtt_min_us);
        self.rtt_max_us = self.rtt_max_us.max(other.rtt_max_us);
        if self.first_ns == 0 || (other.first_ns != 0 && other.first_ns < self.first_ns) {
            self.first_ns = other.first_ns;
        }
        if other.last_ns >= self.last_ns {
            self.last_ns = other.last_ns;
            self.pid = if other.pid == 0 { self.pid } else { other.pid };
        }
        self.confidence |= other.confidence;
    }

    /// Connections that are open; below zero in an edge that connections left.
    pub fn active(&self) -> i64 {
        self.found.wrapping_add(self.opened).wrapping_sub(self.closed) as i64
    }

    /// Removes the ends of connections that the edge did not have, and returns their number.
    pub fn take_excess_ends(&mut self) -> u64 {
        let excess = (-self.active()).max(0) as u64;
        self.closed = self.closed.wrapping_sub(excess);
        excess
    }

    /// Whether nothing was counted; errors apart.
    pub fn is_empty(&self) -> bool {
        self.found == 0 && self.opened == 0 && self.packets_sent == 0 && self.packets_received == 0
    }
}

/// An address as people write it: an IPv4 one that is mapped into IPv6 is IPv4.
pub fn address(bytes: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(bytes).to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_header() {
        assert_eq!(size_of::<EdgeKey>(), 64);
        assert_eq!(size_of::<EdgeCounts>(), 128);
        assert_eq!(size_of::<ErrorKey>(), 72);
        assert_eq!(size_of::<ProgramKey>(), 16);
        assert_eq!(size_of::<Event>(), 88);
    }

    #[test]
    fn sums_are_right_when_a_connection_moves() {
        let mut sum = EdgeCounts { opened: 2, pid: 7, ..EdgeCounts::EMPTY };
        let moved = EdgeCounts { opened: 0_u64.wrapping_sub(1), ..EdgeCounts::EMPTY };
        sum.add(&moved);
        sum.add(&EdgeCounts { rtt_min_us: 3, rtt_max_us: 9, last_ns: 5, ..EdgeCounts::EMPTY });
        assert_eq!((sum.opened, sum.rtt_min_us, sum.rtt_max_us, sum.pid), (1, 3, 9, 7));
    }

    #[test]
    fn mapped_addresses_are_ipv4() {
        let mut bytes = [0; 16];
        bytes[10..].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 1]);
        assert_eq!(address(bytes).to_string(), "10.0.0.1");
        assert_eq!(address([0; 16]).to_string(), "::");
    }
}
