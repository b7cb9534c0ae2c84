// SPDX-License-Identifier: Apache-2.0
use crate::{Action, Direction};

/// Words of an event in a ring.
pub const EVENT_WORDS: usize = 10;

/// One match of a rule, as the library records it. Fields that the other process may have
/// damaged are numbers here: the reader looks them up and drops what it does not find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The tick counter when the match was seen (tare-clock turns it into a time).
    pub ticks: u64,
    pub pid: u32,
    pub tid: u32,
    /// The generation of rules whose keyword numbers `keyword` counts in.
    pub generation: u64,
    pub keyword: u32,
    /// A [`Symbol`](crate::Symbol)'s number.
    pub symbol: u16,
    pub direction: Direction,
    pub action: Action,
    /// Of the match's first byte in the connection's stream in this direction, or in the
    /// datagram. Counts from where the library saw the connection first.
    pub offset: u64,
    /// `AF_INET`, `AF_INET6`, or another whose addresses are not recorded.
    pub family: u16,
    pub local_port: u16,
    pub remote_port: u16,
    /// An IPv4 address stands in the first four bytes.
    pub local: [u8; 16],
    pub remote: [u8; 16],
}

impl Event {
    pub fn encode(&self) -> [u64; EVENT_WORDS] {
        let [l0, l1] = halves(self.local);
        let [r0, r1] = halves(self.remote);
        [
            self.ticks,
            u64::from(self.pid) | u64::from(self.tid) << 32,
            self.generation,
            u64::from(self.keyword)
                | u64::from(self.symbol) << 32
                | (self.direction as u64) << 48
                | (self.action as u64) << 56,
            self.offset,
            u64::from(self.family)
                | u64::from(self.local_port) << 16
                | u64::from(self.remote_port) << 32,
            l0,
            l1,
            r0,
            r1,
        ]
    }

    /// `None` where a direction or an action is none.
    pub fn decode(words: &[u64; EVENT_WORDS]) -> Option<Self> {
        let [ticks, who, generation, what, offset, ports, l0, l1, r0, r1] = *words;
        Some(Self {
            ticks,
            pid: who as u32,
            tid: (who >> 32) as u32,
            generation,
            keyword: what as u32,
            symbol: (what >> 32) as u16,
            direction: Direction::from_bits((what >> 48) as u8)?,
            action: Action::from_bits((what >> 56) as u8)?,
            offset,
            family: ports as u16,
            local_port: (ports >> 16) as u16,
            remote_port: (ports >> 32) as u16,
            local: whole([l0, l1]),
            remote: whole([r0, r1]),
        })
    }
}

fn halves(bytes: [u8; 16]) -> [u64; 2] {
    let value = u128::from_le_bytes(bytes);
    [value as u64, (value >> 64) as u64]
}

fn whole([low, high]: [u64; 2]) -> [u8; 16] {
    (u128::from(low) | u128::from(high) << 64).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            (ticks, generation, offset) in any::<(u64, u64, u64)>(),
            (pid, tid, keyword) in any::<(u32, u32, u32)>(),
            (symbol, family, local_port, remote_port) in any::<(u16, u16, u16, u16)>(),
            (local, remote) in any::<([u8; 16], [u8; 16])>(),
            out in any::<bool>(),
            block in any::<bool>(),
        ) {
            let event = Event {
                ticks, pid, tid, generation, keyword, symbol, offset, family,
                direction: if out { Direction::Out } else { Direction::In },
                action: if block { Action::Block } else { Action::Trace },
                local_port, remote_port, local, remote,
            };
            prop_assert_eq!(Event::decode(&event.encode()), Some(event));
        }

        #[test]
        fn no_words_make_it_panic(words: [u64; EVENT_WORDS]) {
            if let Some(event) = Event::decode(&words) {
                prop_assert_eq!(Event::decode(&event.encode()), Some(event));
            }
        }
    }
}
