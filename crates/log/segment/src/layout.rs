// SPDX-License-Identifier: Apache-2.0
use crate::record::ChannelId;
use crate::{Oldest, Writer};
use core::ffi::CStr;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
use tare_shm::{Bell, Indices, Refusal, header};

pub const NAME: &CStr = c"tare-log";
pub const KIND: u32 = header::kind::LOG;

/// To be raised with any change of what follows, in `include/tare_log.h` too.
pub const VERSION: u32 = 4;

/// Channels of one process. Nearly all of their memory is never touched.
pub const CHANNELS: usize = 1 << 14;

/// Modes: a place for each number that a channel can have.
pub const MODES: usize = 1 << ChannelId::BITS;

/// Bytes for all names of channels together, and for one.
pub const NAMES: usize = 1 << 22;
pub const LONGEST_NAME: usize = 1024;

/// What rules from outside can ask for at the same time; the first is for nothing.
pub const RULE_SETTINGS: usize = 256;

/// Words for what handlers keep between events, of all channels together.
pub const STATES: usize = 1 << 22;

/// Bytes of a ring, and how many of a process.
pub const SMALLEST_RING: usize = 1 << 16;
pub const LARGEST_RING: usize = 1 << 30;
pub const MOST_RINGS: usize = 1024;

/// How many tables and words of `states` this process may touch: in a program that limits its
/// memory, the others are no longer mapped.
pub static MAPPED_TABLES: AtomicUsize = AtomicUsize::new(MOST_RINGS);
pub static MAPPED_STATES: AtomicUsize = AtomicUsize::new(STATES);

/// What the whole process has, at the beginning of its segment; the rings follow.
#[repr(C)]
pub struct Process {
    _header: [AtomicU64; 8],
    /// Written before anyone else sees the segment: words of a ring, number of rings, the
    /// clock that times come from, and one reading of the clocks at the beginning.
    pub ring_words: AtomicU64,
    pub rings: AtomicU32,
    pub clock: AtomicU32,
    pub first: Reading,
    _owner: [AtomicU64; 2],
    /// Written by threads of the process.
    pub state: AtomicU32,
    /// Rings that ever had an owner: all below this number.
    pub rings_used: AtomicU32,
    /// Channels that were ever opened: all below this number.
    pub channels_used: AtomicU32,
    /// Changes of channels.
    pub changes: AtomicU32,
    pub names_used: AtomicU32,
    /// Events that found no free ring.
    pub unserved: AtomicU64,
    /// Words of `states` in use.
    pub states_used: AtomicU64,
    _threads: [AtomicU64; 11],
    /// Rung by threads when a ring is filled so far that it should be emptied.
    pub bell: Bell,
    _bell: [AtomicU32; 31],
    /// Written by the collector: 1 where events are kept, 0 where all are discarded because
    /// nobody asked for them; a process that asks writes it before anyone else sees the segment.
    pub is_on: AtomicU32,
    /// See `rules`.
    pub rules: AtomicU32,
    /// The changes of channels that rules were applied after.
    pub ruled_changes: AtomicU32,
    /// The changes of channels that the file tells of.
    pub told_changes: AtomicU32,
    /// What the file calls the process.
    pub number: AtomicU32,
    /// The file, as `fstat` has it: its inode, 0 for none that the program could write to itself,
    /// and its device.
    pub inode: AtomicU64,
    pub device: AtomicU64,
    _collector: [AtomicU64; 11],
    /// The collector's socket that the program was told of, ended with 0; empty for none.
    /// Written before anyone else sees the segment.
    pub socket: [AtomicU8; 128],
    _reserved: [AtomicU64; 432],
    /// By channel: what the fast path does with an event, in threads of which no rule speaks.
    pub modes: [AtomicU8; MODES],
    pub channels: [Channel; CHANNELS],
    pub names: [AtomicU8; NAMES],
    /// Written by the collector: what rules ask for, see `RuleSettings`.
    pub rule_settings: [[AtomicU64; 2]; RULE_SETTINGS],
    /// By channel: which of them holds, in threads of which no rule speaks.
    pub rule_of_channel: [AtomicU8; CHANNELS],
    /// By channel: 1 where rules speak of threads. Who looks only at `modes` leaves its events
    /// to the library.
    pub threaded: [AtomicU8; CHANNELS],
    /// By ring: what holds for the thread that writes to it.
    pub tables: [Table; MOST_RINGS],
    /// What handlers keep between events.
    pub states: [AtomicU64; STATES],
}

/// What is done with events of one thread, by channel.
#[repr(C, align(4096))]
pub struct Table {
    pub modes: [AtomicU8; MODES],
    pub rule_of_channel: [AtomicU8; CHANNELS],
}

/// Bits of `Process::rules`.
pub mod rules {
    /// The collector has rules: a channel that is opened waits until they were applied.
    pub const ANY: u32 = 1;
    /// Some speak of threads: one that begins waits, too.
    pub const OF_THREADS: u32 = 2;
}

/// One moment by all clocks, as in `tare_clock::Snapshot`.
#[repr(C)]
pub struct Reading {
    pub ticks: AtomicU64,
    pub monotonic_ns: AtomicU64,
    pub realtime_ns: AtomicU64,
    pub width: AtomicU64,
}

/// What the fast path does with an event.
pub mod mode {
    /// Nothing.
    pub const NULL: u8 = 0;
    /// Writes it into the ring, with ticks read by the unfenced instruction.
    pub const RING: u8 = 1;
    /// Leaves it to the library.
    pub const OUT_OF_LINE: u8 = 2;
}

pub mod state {
    pub const RUNNING: u32 = 1;
    /// The program has come to its end by itself.
    pub const FINISHED: u32 = 2;
}

#[repr(C)]
pub struct Channel {
    /// 0 while the channel is being made.
    pub opened: AtomicU32,
    /// The thread that opened it.
    pub tid: AtomicU32,
    pub name_at: AtomicU32,
    pub name_length: AtomicU32,
    /// What the program asked for, see `Configuration`; 0 is nothing.
    pub asked: [AtomicU64; 2],
    /// 1 while the program has closed it.
    pub closed: AtomicU32,
    _threads: [AtomicU64; 11],
    /// Written by the collector: its socket that asks for this channel, as `fstat` has it, inode
    /// 0 for none; and the answers that came in time.
    pub socket_inode: AtomicU64,
    pub socket_device: AtomicU64,
    pub answered: AtomicU64,
    _collector: [AtomicU64; 13],
    /// Events lost to a full ring, and by handlers.
    pub lost: AtomicU64,
    /// Events that downsampling has counted.
    pub count: AtomicU64,
    /// The same of first-last, and 1 + where in `states` the last ones are.
    pub seen: AtomicU64,
    pub last_at: AtomicU64,
    /// Of counters: events so far, when the period began and how long it is, and the number that
    /// was last written.
    pub counted: AtomicU64,
    pub period_began: AtomicU64,
    pub period_ticks: AtomicU64,
    pub counter_told: AtomicU64,
    /// Events that the program has written into the file itself, and those that went into the
    /// ring in their stead.
    pub written: AtomicU64,
    pub deferred: AtomicU64,
    /// What was asked of a start.
    pub asked_starts: AtomicU64,
    _counts: [AtomicU64; 5],
}

/// What stands before the words of a ring.
#[repr(C, align(4096))]
pub struct RingHead {
    pub indices: Indices,
    /// The thread that writes, 0 for none.
    pub owner: AtomicU32,
    /// Threads that have begun to write to the ring.
    pub begun: AtomicU32,
    /// Times of the first and the last event lost since the newest record of a loss.
    pub lost_first: AtomicU64,
    pub lost_last: AtomicU64,
    /// The name of the thread that writes.
    pub owner_name: [AtomicU64; 2],
    _threads: [AtomicU64; 11],
    /// Written by a thread that overwrites.
    pub overwritten: [Oldest; 2],
    _overwritten: [AtomicU64; 2],
    /// Written by the collector, like all that follows.
    pub freed: [Oldest; 2],
    /// Events lost that it has told of, with those that it had read already when a thread
    /// overwrote them.
    pub told: AtomicU64,
    /// Before a block is written: the place behind its last word, and what `told` is to be
    /// then. Who takes over makes a block that ends there, too, so that readers know it again.
    pub writing_to: AtomicU64,
    pub writing_told: AtomicU64,
    /// The number of the thread, as `begun` counts, that rules were applied to.
    pub ruled_thread: AtomicU32,
}

/// Words of a ring as a segment has them, if a ring can have that number.
pub fn checked_ring_words(words: u64) -> Result<usize, Refusal> {
    let is_possible = |words: &usize| {
        words.is_power_of_two() && (SMALLEST_RING..=LARGEST_RING).contains(&words.saturating_mul(8))
    };
    usize::try_from(words).ok().filter(is_possible).ok_or(Refusal::Damaged)
}

/// Where ring `place` begins in a segment whose rings have so many words.
pub const fn ring_at(place: usize, ring_words: usize) -> usize {
    size_of::<Process>() + place * ring_size(ring_words)
}

/// Bytes of a ring with its head.
pub const fn ring_size(ring_words: usize) -> usize {
    size_of::<RingHead>() + 8 * ring_words
}

/// Fields that have another writer than those before them: 128 bytes never have two, since
/// processors fetch lines of 64 bytes in pairs.
macro_rules! apart {
    ($($type:ty: $($first:ident)*;)*) => {
        $($(assert!(offset_of!($type, $first).is_multiple_of(128));)*)*
    };
}

const _: () = {
    apart! {
        Process: state bell is_on socket modes channels names rule_settings tables states;
        Channel: socket_inode lost;
        RingHead: owner overwritten freed;
    }
    assert!(size_of::<Channel>().is_multiple_of(128));
    assert!(size_of::<Writer>().is_multiple_of(128));
    assert!(size_of::<Process>().is_multiple_of(4096));
    assert!(offset_of!(Process, modes).is_multiple_of(4096));
    assert!(offset_of!(Process, rule_settings).is_multiple_of(4096));
    assert!(offset_of!(Process, tables).is_multiple_of(4096));
    assert!(size_of::<RingHead>() == 4096);
};

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;
    use tare_shm::Header;

    /// Lines such as `TARE_SHM_AT(type, field, offset);` or `#define NAME number`.
    fn lines(begin: &str) -> Vec<Vec<&'static str>> {
        include_str!("../../../../include/tare_shm.h")
            .lines()
            .filter_map(|line| line.strip_prefix(begin))
            .map(|rest| rest.split(&[',', '(', ')', ';', ' ']).filter(|word| !word.is_empty()))
            .map(Iterator::collect)
            .collect()
    }

    macro_rules! offsets {
        ($($name:literal $type:ty: $($field:ident)*),*) => {
            [$($(($name, stringify!($field), offset_of!($type, $field)),)*)*]
        };
    }

    #[test]
    fn only_powers_of_two_within_limits_are_words_of_a_ring() {
        let [smallest, largest] = [SMALLEST_RING, LARGEST_RING].map(|bytes| bytes as u64 / 8);
        for words in [smallest, 2 * smallest, largest] {
            assert_eq!(checked_ring_words(words), Ok(words as usize));
        }
        for words in [0, smallest / 2, smallest + 1, 2 * largest, 1 << 63, u64::MAX] {
            assert_eq!(checked_ring_words(words), Err(Refusal::Damaged), "{words}");
        }
    }

    #[test]
    fn the_c_header_has_the_same_offsets() {
        let ours = offsets! {
            "tare_shm_header" Header: magic version kind size owner_start owner_pid,
            "tare_log_process_channel" Channel: opened tid name_at name_length asked closed socket_inode
                socket_device answered lost count
                seen last_at counted period_began period_ticks counter_told written deferred
                asked_starts,
            "tare_log_table" Table: modes rule_of_channel,
            "tare_log_process" Process: ring_words rings clock first state rings_used
                channels_used changes names_used unserved states_used bell is_on rules ruled_changes
                told_changes number inode device socket modes channels names rule_settings rule_of_channel threaded tables states,
            "tare_log_oldest" Oldest: tail lost lost_first lost_last tid name,
            "tare_log_ring" RingHead: indices owner begun lost_first lost_last owner_name
                overwritten freed told writing_to writing_told ruled_thread
        };
        let theirs = lines("TARE_SHM_AT(");
        let theirs = theirs.iter().filter(|words| words[0] != "tare_shm_ring").map(|words| {
            let [name, field, offset] = words[..] else { panic!("{words:?}") };
            (name, field, offset.parse().unwrap())
        });
        assert_eq!(theirs.collect::<Vec<_>>(), ours);
    }

    #[test]
    fn the_c_header_has_the_same_sizes_and_numbers() {
        let sizes = [
            ("tare_shm_header", size_of::<Header>()),
            ("tare_shm_ring", size_of::<Indices>()),
            ("tare_log_process_channel", size_of::<Channel>()),
            ("tare_log_table", size_of::<Table>()),
            ("tare_log_process", size_of::<Process>()),
            ("tare_log_oldest", size_of::<Oldest>()),
            ("tare_log_ring", size_of::<RingHead>()),
        ];
        let theirs = lines("TARE_SHM_SIZE(");
        let theirs = theirs.iter().map(|words| (words[0], words[1].parse().unwrap()));
        assert_eq!(theirs.collect::<Vec<_>>(), sizes);
        let numbers = lines("#define ");
        let number = |name| numbers.iter().find(|words| words[0] == name).map(|words| words[1]);
        for (name, ours) in [
            ("TARE_SHM_KIND_LOG", KIND as usize),
            ("TARE_LOG_VERSION", VERSION as usize),
            ("TARE_LOG_CHANNELS", CHANNELS),
            ("TARE_LOG_NAMES", NAMES),
            ("TARE_LOG_RULE_SETTINGS", RULE_SETTINGS),
            ("TARE_LOG_RINGS", MOST_RINGS),
            ("TARE_LOG_STATES", STATES),
        ] {
            assert_eq!(number(name), Some(&*std::format!("{ours}")), "{name}");
        }
        let magic = std::format!("{:#x}u", header::MAGIC);
        assert_eq!(number("TARE_SHM_MAGIC"), Some(&*magic));
    }
}
