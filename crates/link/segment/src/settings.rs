// SPDX-License-Identifier: Apache-2.0
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Rules and users that there is room for.
const RULES: usize = 64;
const USERS: usize = 16;

/// The connections that the user of tare-link chose, and other users that may be at their other
/// ends; how much memory links may have, and how threads wait. tare-link writes it before it starts
/// a program.
#[repr(C)]
#[derive(Debug, Default)]
pub struct LinkSettings {
    rules: [Rule; RULES / 2],
    exceptions: [Rule; RULES / 2],
    users: [AtomicU64; USERS],
    memory: AtomicU64,
    never_spins: AtomicU64,
}

#[repr(C)]
#[derive(Debug, Default)]
struct Rule {
    /// `USED`, `HAS_ADDRESS` and `HAS_PORT`, and above these 16 bits the port.
    kind: AtomicU64,
    address: [AtomicU64; 2],
}

const USED: u64 = 1;
const HAS_ADDRESS: u64 = 2;
const HAS_PORT: u64 = 4;

/// An end of a connection: the address as IPv6 has it, and the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub address: [u8; 16],
    pub port: u16,
}

/// Ends of connections that a rule is about; it has an address, a port, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub address: Option<[u8; 16]>,
    pub port: Option<u16>,
}

impl LinkSettings {
    /// Links connections alone of which an end matches this or another such pattern. False if there
    /// is no room for it.
    pub fn only(&self, pattern: Pattern) -> bool {
        add(&self.rules, pattern)
    }

    /// Links no connection of which an end matches the pattern.
    pub fn except(&self, pattern: Pattern) -> bool {
        add(&self.exceptions, pattern)
    }

    pub fn allow(&self, user: u32) -> bool {
        let free = self.users.iter().find(|place| place.load(Relaxed) == 0);
        free.map(|place| place.store(1 << 32 | u64::from(user), Relaxed)).is_some()
    }

    /// Whether there are rules at all.
    pub fn has_rules(&self) -> bool {
        [&self.rules, &self.exceptions].iter().any(|rules| used(&rules[..]).next().is_some())
    }

    pub fn selects(&self, ends: &[Endpoint; 2]) -> bool {
        let matches = |rule: &Rule| ends.iter().any(|end| rule.matches(end));
        let is_meant = used(&self.rules).next().is_none() || used(&self.rules).any(matches);
        is_meant && !used(&self.exceptions).any(matches)
    }

    /// Rings of a process have at most this number of bytes.
    pub fn limit_memory(&self, bytes: u64) {
        self.memory.store(bytes, Relaxed);
    }

    pub fn memory_limit(&self) -> u64 {
        self.memory.load(Relaxed)
    }

    /// A thread that waits sleeps at once.
    pub fn never_spin(&self) {
        self.never_spins.store(1, Relaxed);
    }

    pub fn never_spins(&self) -> bool {
        self.never_spins.load(Relaxed) != 0
    }

    pub fn allows(&self, user: u32) -> bool {
        self.users.iter().any(|place| place.load(Relaxed) == 1 << 32 | u64::from(user))
    }
}

fn used(rules: &[Rule]) -> impl Iterator<Item = &Rule> {
    rules.iter().take_while(|rule| rule.kind.load(Relaxed) & USED != 0)
}

fn add(rules: &[Rule], pattern: Pattern) -> bool {
    let Some(rule) = rules.get(used(rules).count()) else { return false };
    let mut kind = USED;
    if let Some(address) = pattern.address {
        kind |= HAS_ADDRESS;
        for (word, value) in rule.address.iter().zip(words(address)) {
            word.store(value, Relaxed);
        }
    }
    if let Some(port) = pattern.port {
        kind |= HAS_PORT | u64::from(port) << 16;
    }
    rule.kind.store(kind, Relaxed);
    true
}

fn words(address: [u8; 16]) -> [u64; 2] {
    let number = u128::from_be_bytes(address);
    [(number >> 64) as u64, number as u64]
}

impl Rule {
    fn matches(&self, end: &Endpoint) -> bool {
        let kind = self.kind.load(Relaxed);
        let address = self.address.iter().map(|word| word.load(Relaxed));
        (kind & HAS_ADDRESS == 0 || address.eq(words(end.address)))
            && (kind & HAS_PORT == 0 || kind >> 16 == u64::from(end.port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn address(last: u8) -> [u8; 16] {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, last]
    }

    fn ends(last: u8, port: u16) -> [Endpoint; 2] {
        [Endpoint { address: address(1), port: 40_000 }, Endpoint { address: address(last), port }]
    }

    #[test]
    fn without_rules_every_connection_is_chosen() {
        let settings = LinkSettings::default();
        assert!(!settings.has_rules() && settings.selects(&ends(1, 80)));
    }

    #[test]
    fn exceptions_come_before_what_is_chosen() {
        let settings = LinkSettings::default();
        assert!(settings.only(Pattern { address: None, port: Some(80) }));
        assert!(settings.only(Pattern { address: Some(address(2)), port: Some(81) }));
        assert!(settings.except(Pattern { address: Some(address(3)), port: None }));
        assert!(settings.has_rules());
        for (last, port, is_chosen) in
            [(1, 80, true), (2, 81, true), (1, 81, false), (3, 80, false), (1, 82, false)]
        {
            assert_eq!(settings.selects(&ends(last, port)), is_chosen, "{last}:{port}");
        }
    }

    #[test]
    fn there_is_room_for_some_rules_and_users() {
        let settings = LinkSettings::default();
        let pattern = Pattern { address: None, port: Some(1) };
        assert_eq!((0..99).filter(|_| settings.except(pattern)).count(), RULES / 2);
        assert!(!settings.allows(0) && settings.allow(0) && settings.allow(33));
        assert!(settings.allows(0) && settings.allows(33) && !settings.allows(34));
        assert_eq!((0..99).filter(|user| settings.allow(*user)).count(), USERS - 2);
    }
}
