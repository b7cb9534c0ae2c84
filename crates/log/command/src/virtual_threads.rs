// SPDX-License-Identifier: Apache-2.0
//! Puts what virtual threads have logged in the order of its times: it stands in the rings of
//! the threads that have carried them.

use crate::seen::Ring;
use crate::value::Value;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use tare_log_file::{Item, Mark};
use tare_log_segment::ChannelId;
use tare_log_segment::layout::MOST_RINGS;

/// Of numbers of threads: the kernel gives none that has it.
const VIRTUAL: u32 = 1 << 31;

/// Whether the thread is one of Java's own.
pub fn is_virtual(tid: u32) -> bool {
    tid & VIRTUAL != 0
}

/// What waits for its turn.
#[derive(Debug)]
pub struct Held {
    /// When: of losses the first.
    at: u64,
    /// Of those at one time, which came first.
    nth: u64,
    pub ring: Ring,
    pub ticks: u64,
    pub tid: u32,
    pub thread: [u8; 16],
    pub what: Said,
}

#[derive(Debug)]
pub enum Said {
    Event { id: ChannelId, value: Value },
    Loss { lost: u64, first: u64, last: u64 },
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.nth).cmp(&(other.at, other.nth))
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Held {}

/// When blocks begin that are still to be read, by process and ring.
#[derive(Default)]
pub struct Coming(HashMap<usize, HashMap<u32, (u64, VecDeque<u64>)>>);

impl Coming {
    /// The next block of the ring. What a handler has kept back is older than what stands
    /// before it, and is not waited for.
    pub fn add(&mut self, (process, ring): Ring, items: &[Item<'_>]) {
        if !is_carriers((process, ring)) {
            return;
        }
        let times = |item: &Item<'_>| match item {
            Item::Event(event) => Some((event.ticks, event.ticks)),
            Item::Mark(Mark::Loss { first, last, .. }) => Some((*first, *last)),
            Item::Mark(Mark::Thread { .. }) => None,
        };
        let (end, begins) = self.0.entry(process).or_default().entry(ring).or_default();
        let begin = items.iter().find_map(times).map_or(*end, |(begin, _)| begin.max(*end));
        begins.push_back(begin);
        *end = items.iter().filter_map(times).map(|(_, end)| end).fold(*end, u64::max);
    }
}

/// What has been read and may not be told yet. Where nothing is known of what comes, that is
/// all until the end.
pub struct Waiting {
    coming: Coming,
    held: HashMap<usize, BinaryHeap<Reverse<Held>>>,
    /// Of each ring, whether a virtual thread has logged into it, or only others have.
    carried: HashMap<Ring, bool>,
    count: u64,
    is_over: bool,
}

impl Waiting {
    pub fn new(coming: Coming) -> Self {
        let (held, carried) = (HashMap::new(), HashMap::new());
        Self { coming, held, carried, count: 0, is_over: false }
    }

    /// The next block of the ring is about to be read; `false` if it has come to the file since.
    pub fn read(&mut self, (process, ring): Ring) -> bool {
        match self.coming.0.get_mut(&process) {
            Some(rings) if is_carriers((process, ring)) => {
                rings.get_mut(&ring).and_then(|(_, begins)| begins.pop_front()).is_some()
            }
            _ => true,
        }
    }

    /// Whether an event of the thread in this ring has to wait.
    pub fn is_for(&mut self, ring: Ring, tid: u32) -> bool {
        let is_virtual = is_virtual(tid) && is_carriers(ring);
        let carried = self.carried.entry(ring).or_insert(is_virtual);
        *carried |= is_virtual;
        is_virtual
    }

    /// Whether losses of the ring may be those of virtual threads, and have to wait.
    pub fn may_have_lost(&self, ring: Ring) -> bool {
        let is_new = || self.coming.0.contains_key(&ring.0) && is_carriers(ring);
        self.carried.get(&ring).copied().unwrap_or_else(is_new)
    }

    pub fn hold(&mut self, ring: Ring, ticks: u64, tid: u32, thread: [u8; 16], what: Said) {
        let at = match what {
            Said::Event { .. } => ticks,
            Said::Loss { first, .. } => first,
        };
        let held = Held { at, nth: self.count, ring, ticks, tid, thread, what };
        self.count += 1;
        self.held.entry(ring.0).or_default().push(Reverse(held));
    }

    /// Before when nothing of the process comes any more.
    pub fn until(&self, process: usize) -> u64 {
        let Some(rings) = self.coming.0.get(&process) else { return 0 };
        rings.values().filter_map(|(_, begins)| begins.front()).min().copied().unwrap_or(u64::MAX)
    }

    /// The next of the process from before then.
    pub fn next(&mut self, process: usize, until: u64) -> Option<Held> {
        let all = self.held.get_mut(&process)?;
        let is_next = self.is_over || all.peek().is_some_and(|Reverse(next)| next.at < until);
        if is_next { all.pop().map(|Reverse(held)| held) } else { None }
    }

    /// Nothing comes any more: the processes of which something is left.
    pub fn end(&mut self) -> Vec<usize> {
        self.is_over = true;
        let mut left: Vec<_> = self.held.keys().copied().collect();
        left.sort_unstable();
        left
    }
}

/// What programs write themselves comes in its order, and what collectors write has no thread.
fn is_carriers((_, ring): Ring) -> bool {
    (ring as usize) < MOST_RINGS
}
