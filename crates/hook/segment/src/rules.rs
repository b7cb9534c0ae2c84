// SPDX-License-Identifier: Apache-2.0
use core::mem::offset_of;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Keywords of a generation.
pub const KEYWORDS: usize = 4096;

/// Bytes of a keyword.
pub const LONGEST: usize = 1024;

/// Places in the lists of keywords that end in a state.
pub const OUTPUTS: usize = 1 << 16;

/// Entries of the transition table: 16 MiB.
pub const TABLE: usize = 1 << 22;

/// Bytes of all keywords together: 4 MiB.
pub(crate) const TEXTS: usize = KEYWORDS * LONGEST;

/// In an entry of the table: the state it leads to ends a keyword.
pub(crate) const MATCH: u32 = 1 << 31;

/// The bits of an entry that are the next state. A masked index is always inside the table,
/// whatever the table holds: this is the scan's bounds check.
pub(crate) const STATE: u32 = TABLE as u32 - 1;

/// In a list of keywords: it ends here.
pub(crate) const LAST: u32 = 1 << 31;

/// Where a keyword is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Scope {
    /// Stream connections whose first bytes in the direction are HTTP/1 or HTTP/2's.
    Http = 0,
    /// Stream sockets of IPv4 and IPv6.
    Tcp = 1,
    /// Every socket, datagrams too.
    All = 2,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Direction {
    In = 0,
    Out = 1,
}

impl Direction {
    pub(crate) const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::In),
            1 => Some(Self::Out),
            _ => None,
        }
    }
}

/// The ways in which a keyword is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Directions {
    In = 1,
    Out = 2,
    Both = 3,
}

impl Directions {
    pub const fn contain(self, direction: Direction) -> bool {
        self as u8 & 1 << direction as u8 != 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Action {
    /// Record an event.
    Trace = 0,
    /// Record an event and reset the connection.
    Block = 1,
}

impl Action {
    pub(crate) const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::Trace),
            1 => Some(Self::Block),
            _ => None,
        }
    }
}

/// What is known of a keyword besides its text, which the library never needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// In bytes.
    pub length: u16,
    pub scope: Scope,
    pub directions: Directions,
    pub action: Action,
}

impl Attributes {
    pub const fn to_bits(self) -> u32 {
        self.length as u32
            | (self.scope as u32) << 16
            | (self.directions as u32) << 20
            | (self.action as u32) << 24
    }

    /// `None` where a field has a value that no writer gives it.
    pub const fn from_bits(bits: u32) -> Option<Self> {
        let scope = match bits >> 16 & 15 {
            0 => Scope::Http,
            1 => Scope::Tcp,
            2 => Scope::All,
            _ => return None,
        };
        let directions = match bits >> 20 & 15 {
            1 => Directions::In,
            2 => Directions::Out,
            3 => Directions::Both,
            _ => return None,
        };
        let Some(action) = Action::from_bits((bits >> 24) as u8) else { return None };
        Some(Self { length: bits as u16, scope, directions, action })
    }
}

/// One generation of rules in its slot: a flat automaton over all keywords, and what each
/// keyword wants. A state is the index of its row in `table`; a row has an entry for each
/// class of bytes, and one more that says where in `outputs` the state's list of keywords
/// begins (only for states that end one). State 0 is the root.
#[repr(C, align(4096))]
pub struct Rules {
    /// The generation in this slot, 0 while it is being written.
    pub(crate) generation: AtomicU64,
    pub(crate) keywords: AtomicU32,
    /// Bytes of the longest keyword.
    pub(crate) longest: AtomicU32,
    /// Classes of bytes; a row is one entry longer.
    pub(crate) classes: AtomicU32,
    /// By [`Direction`]: a bit for each [`Scope`] that some keyword has.
    pub(crate) wanted: [AtomicU32; 2],
    /// A bit for each [`Direction`] in which some keyword blocks.
    pub(crate) blocking: AtomicU32,
    /// Entries of `table` that are in use.
    pub(crate) entries: AtomicU64,
    pub(crate) _reserved: [AtomicU64; 3],
    pub(crate) class_of: [AtomicU8; 256],
    /// By keyword: [`Attributes`].
    pub(crate) attributes: [AtomicU32; KEYWORDS],
    /// Lists of keyword numbers; the last of a list carries `LAST`.
    pub(crate) outputs: [AtomicU32; OUTPUTS],
    pub(crate) table: [AtomicU32; TABLE],
    /// The texts of the keywords, one behind the other; the library never needs them.
    pub(crate) texts: [AtomicU8; TEXTS],
}

impl Rules {
    /// The scopes that some keyword for `direction` has, as bits; 0 is nothing to search.
    #[inline]
    pub fn wanted(&self, direction: Direction) -> u32 {
        self.wanted[direction as usize].load(Relaxed)
    }

    /// Whether some keyword for `direction` blocks.
    #[inline]
    pub fn blocks(&self, direction: Direction) -> bool {
        self.blocking.load(Relaxed) & 1 << direction as u32 != 0
    }

    /// What keyword `number` wants.
    pub fn attributes(&self, number: u32) -> Option<Attributes> {
        Attributes::from_bits(self.attributes.get(number as usize)?.load(Relaxed))
    }
}

/// What the version is made from.
pub(crate) const LAYOUT: &[usize] = &[
    offset_of!(Rules, generation),
    offset_of!(Rules, keywords),
    offset_of!(Rules, longest),
    offset_of!(Rules, classes),
    offset_of!(Rules, wanted),
    offset_of!(Rules, blocking),
    offset_of!(Rules, entries),
    offset_of!(Rules, _reserved),
    offset_of!(Rules, class_of),
    offset_of!(Rules, attributes),
    offset_of!(Rules, outputs),
    offset_of!(Rules, table),
    offset_of!(Rules, texts),
    size_of::<Rules>(),
];

const _: () = {
    assert!(offset_of!(Rules, class_of) == 64);
    assert!(offset_of!(Rules, attributes) == 320);
    assert!(offset_of!(Rules, outputs) == 320 + 4 * KEYWORDS);
    assert!(offset_of!(Rules, table) == 320 + 4 * (KEYWORDS + OUTPUTS));
    assert!(TABLE.is_power_of_two() && OUTPUTS.is_power_of_two());
    assert!(KEYWORDS < LAST as usize && LONGEST <= u16::MAX as usize);
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn attributes_are_what_was_written_or_nothing(bits: u32) {
            if let Some(attributes) = Attributes::from_bits(bits) {
                prop_assert_eq!(Attributes::from_bits(attributes.to_bits()), Some(attributes));
            }
        }
    }

    #[test]
    fn both_directions_are_each() {
        assert!(
            Directions::Both.contain(Direction::In) && Directions::Both.contain(Direction::Out)
        );
        assert!(Directions::In.contain(Direction::In) && !Directions::In.contain(Direction::Out));
        assert!(!Directions::Out.contain(Direction::In));
    }
}
