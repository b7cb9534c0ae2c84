// SPDX-License-Identifier: Apache-2.0
use crate::Symbol;
use core::ffi::CStr;
use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};
use tare_clock::Snapshot;
use tare_shm::{Indices, Ring, Word, header};

/// Functions with statistics: all of the table.
pub const SYMBOLS: usize = Symbol::ALL.len();

/// Copies of the statistics. A thread counts in the one of its number modulo this, so that
/// threads seldom write to one cache line; the reader adds them up.
pub const SHARDS: usize = 8;

/// Rings for events: threads of all processes that can record events at the same time.
pub const RINGS: usize = 256;

/// Words of a ring: about 6,500 events, so that tare-hook may go without the processor for
/// 50 ms while a thread records 130,000 a second.
const RING_WORDS: usize = 1 << 16;

/// Own times are ticks up to this (more than a second); longer ones count in the last bin.
pub const LARGEST_OWN_TIME: u64 = u32::MAX as u64;

const BINS: usize = tare_hist::bins(LARGEST_OWN_TIME);

/// What tare-hook and the library both may write, as it stands in the memfd: a file of
/// `size_of::<Shared>()` bytes, zero behind its header and nearly all of it never touched.
#[repr(C)]
pub struct Shared {
    _header: [AtomicU64; 8],
    /// Processes that mapped it: one for each exec, none for a fork.
    pub attached: AtomicU64,
    /// Events that found no free ring. Those that found their ring full are counted in the ring.
    pub lost: AtomicU64,
    /// By ring: the number of the thread that owns it, 0 if it is free; see `owner`. A thread
    /// takes a free ring for its first event, by compare-and-swap; tare-hook frees the ring of
    /// a thread that has ended once it is empty. They stand together because tare-hook looks
    /// at all of them many times a second.
    pub owners: [AtomicU32; RINGS],
    /// The PID namespace of tare-hook, as the inode of its /proc/PID/ns/pid; 0 if unknown.
    pub(crate) namespace: AtomicU64,
    /// Events out of the rings that are lines of a file; this and the next two are counted by
    /// tare-hook, and together are all that it has taken, or it died with some.
    pub written: AtomicU64,
    /// Those that are in no file, though one was asked for.
    pub unwritten: AtomicU64,
    /// Those for which there was no file.
    pub unwanted: AtomicU64,
    /// A bit for each ring that ever had an owner: looking into others gives them memory.
    pub(crate) used: [AtomicU64; RINGS / 64],
    /// The tick counter when tare-hook made this, and the kernel's CLOCK_MONOTONIC_RAW in
    /// nanoseconds: they give the tick rate to whoever takes over.
    pub first_ticks: AtomicU64,
    pub first_ns: AtomicU64,
    _reserved: [AtomicU64; 364],
    pub statistics: [Statistics; SHARDS],
    pub rings: [EventRing; RINGS],
}

impl Shared {
    pub const NAME: &CStr = c"tare-hook-shared";
    pub const KIND: u32 = header::kind::HOOK_SHARED;

    /// The clocks when tare-hook made this.
    pub fn beginning(&self) -> Snapshot {
        let ticks = self.first_ticks.load(Relaxed);
        let monotonic_ns = self.first_ns.load(Relaxed) as i64;
        Snapshot { ticks, monotonic_ns, realtime_ns: 0, width: 0 }
    }
}

/// One copy of the statistics. All counters only grow.
#[repr(C, align(4096))]
pub struct Statistics {
    /// By [`Symbol`].
    pub counters: [Counters; SYMBOLS],
    /// By [`Unseen`].
    pub unseen: [AtomicU64; Unseen::ALL.len()],
    /// By [`Symbol`]: a histogram (tare-hist) of the hook's own time in calls on sockets, in
    /// ticks, without the real call. The number of values is the number of these calls.
    pub own_time: [[AtomicU64; BINS]; SYMBOLS],
}

#[repr(C)]
pub struct Counters {
    /// Calls on sockets. Of functions that move bytes each has a value in `own_time`, and this
    /// is not 0 where there are any.
    pub calls_socket: AtomicU64,
    /// Calls on other files, forwarded at once.
    pub calls_other: AtomicU64,
    pub bytes_searched: AtomicU64,
    /// Bytes that passed through a socket unsearched, though rules ask for this direction
    /// (sendfile, MSG_TRUNC, out-of-band data).
    pub bytes_unseen: AtomicU64,
    /// Matches of a keyword whose scope and direction fit.
    pub matches: AtomicU64,
    /// Connections reset (datagrams dropped) by the action `block`.
    pub blocked: AtomicU64,
    _reserved: [AtomicU64; 2],
}

/// What the library knows that it cannot see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// Sockets given to fdopen: glibc reads and writes for itself under stdio.
    Stdio,
    /// Calls of io_uring_setup (through `syscall`).
    IoUring,
    /// Sockets whose descriptor has no place in the table, or for which memory was refused.
    Untracked,
    /// Searches given up because the rules changed again and again under them.
    Torn,
    /// Calls on descriptors that the kernel could not be asked about, because of a seccomp filter.
    Filtered,
    /// Calls that sent bytes without a search ahead though a rule blocks, because the kernel does not
    /// let the library read them.
    Unblocked,
    /// Searches given up because the rules need memory that was unmapped for the program.
    Unmapped,
}

impl Unseen {
    pub const ALL: &[Self] = &[
        Self::Stdio,
        Self::IoUring,
        Self::Untracked,
        Self::Torn,
        Self::Filtered,
        Self::Unblocked,
        Self::Unmapped,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio_sockets",
            Self::IoUring => "io_uring_setups",
            Self::Untracked => "untracked_sockets",
            Self::Torn => "torn_searches",
            Self::Filtered => "filtered_calls",
            Self::Unblocked => "unblocked_sends",
            Self::Unmapped => "unmapped_searches",
        }
    }
}

/// A ring of events (`EVENT_WORDS` words each).
#[repr(C, align(128))]
pub struct EventRing {
    indices: Indices,
    words: [Word; RING_WORDS],
}

impl EventRing {
    pub fn ring(&self) -> Option<Ring<'_>> {
        Ring::new(&self.indices, &self.words)
    }
}

/// What the version is made from.
pub(crate) const LAYOUT: &[usize] = &[
    offset_of!(Shared, attached),
    offset_of!(Shared, lost),
    offset_of!(Shared, owners),
    offset_of!(Shared, namespace),
    offset_of!(Shared, written),
    offset_of!(Shared, unwritten),
    offset_of!(Shared, unwanted),
    offset_of!(Shared, used),
    offset_of!(Shared, first_ticks),
    offset_of!(Shared, first_ns),
    offset_of!(Shared, _reserved),
    offset_of!(Shared, statistics),
    offset_of!(Shared, rings),
    size_of::<Shared>(),
    offset_of!(Statistics, counters),
    offset_of!(Statistics, unseen),
    offset_of!(Statistics, own_time),
    size_of::<Statistics>(),
    offset_of!(Counters, calls_socket),
    offset_of!(Counters, calls_other),
    offset_of!(Counters, bytes_searched),
    offset_of!(Counters, bytes_unseen),
    offset_of!(Counters, matches),
    offset_of!(Counters, blocked),
    offset_of!(Counters, _reserved),
    size_of::<Counters>(),
    offset_of!(EventRing, indices),
    offset_of!(EventRing, words),
    size_of::<EventRing>(),
];

const _: () = {
    assert!(offset_of!(Shared, attached) == 64);
    assert!(offset_of!(Shared, owners) == 80);
    assert!(offset_of!(Shared, namespace) == 1104);
    assert!(offset_of!(Shared, written) == 1112);
    assert!(offset_of!(Shared, used) == 1136);
    assert!(offset_of!(Shared, first_ticks) == 1168);
    assert!(offset_of!(Shared, statistics) == 4096);
    assert!(size_of::<Statistics>().is_multiple_of(4096));
    assert!(size_of::<Counters>() == 64);
    assert!(size_of::<EventRing>() == 256 + 8 * RING_WORDS);
    assert!(RING_WORDS.is_power_of_two());
    assert!(size_of::<Shared>() < 192 << 20);
};
