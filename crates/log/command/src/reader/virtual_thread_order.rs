// SPDX-License-Identifier: Apache-2.0
//! Puts what virtual threads have logged in the order of its times: it stands in the rings of
//! the threads that have carried them.

use super::owned_payload::OwnedPayload;
use super::seen_ranges::Ring;
use std::collections::{BTreeMap, HashMap, VecDeque};
use tare_log_file::{Header, Item, Mark};
use tare_log_segment::ChannelId;
use tare_log_segment::layout::MOST_RINGS;
use tare_log_segment::record::is_virtual;

/// From the first to the last ticks of events that are missing.
type Gap = (u64, u64);

/// Whether an event waits for its turn. What programs write themselves comes in its order, and
/// what collectors write has no thread.
pub fn has_to_wait((_, ring): Ring, tid: u32) -> bool {
    is_virtual(tid) && (ring as usize) < MOST_RINGS
}

/// What has to be known of processes with virtual threads before their events are read.
#[derive(Default)]
pub struct CarrierIndex(HashMap<usize, HashMap<u32, Carrier>>);

/// A ring.
#[derive(Default)]
struct Carrier {
    /// When each of its blocks begins.
    begins: VecDeque<u64>,
    /// When the last one ends, and at which word.
    end: u64,
    to: u64,
    /// The thread of the kernel that has it, and all that have had it.
    owner: u32,
    owners: HashMap<u32, Owner>,
}

#[derive(Default)]
struct Owner {
    has_own: bool,
    has_carried: bool,
    gaps: Vec<Gap>,
}

impl Owner {
    /// Whether what is missing may be of a virtual thread.
    fn may_carry(&self) -> bool {
        self.has_carried || !self.has_own
    }
}

impl CarrierIndex {
    /// The next block of the ring.
    pub fn add(&mut self, (process, ring): Ring, header: &Header, items: &[Item<'_>]) {
        if ring as usize >= MOST_RINGS {
            return;
        }
        let carrier = self.0.entry(process).or_default().entry(ring).or_default();
        // What a handler has kept back is older than what stands before it.
        let begin =
            items.iter().find_map(ticks).map_or(carrier.end, |begin| begin.max(carrier.end));
        carrier.begins.push_back(begin);
        if !is_virtual(header.tid) {
            carrier.owner = header.tid;
        }
        if header.from < header.to {
            if carrier.to < header.from && carrier.begins.len() > 1 {
                let first = carrier.end.saturating_add(1);
                carrier.lacks((first, first.max(begin.saturating_sub(1))));
            }
            carrier.to = carrier.to.max(header.to);
        }
        let mut tid = header.tid;
        for item in items {
            carrier.end = carrier.end.max(ticks(item).unwrap_or(0));
            match item {
                Item::Event(_) if is_virtual(tid) => carrier.owner().has_carried = true,
                Item::Event(_) => carrier.owner().has_own = true,
                Item::Mark(Mark::Loss { first, last, .. }) => carrier.lacks((*first, *last)),
                Item::Mark(Mark::Thread { tid: next, .. }) => {
                    tid = *next;
                    if !is_virtual(tid) {
                        carrier.owner = tid;
                    }
                }
            }
        }
    }
}

/// Of an event.
fn ticks(item: &Item<'_>) -> Option<u64> {
    match item {
        Item::Event(event) => Some(event.ticks),
        Item::Mark(_) => None,
    }
}

impl Carrier {
    fn owner(&mut self) -> &mut Owner {
        self.owners.entry(self.owner).or_default()
    }

    fn lacks(&mut self, gap: Gap) {
        self.owner().gaps.push(gap);
    }
}

/// An event of a virtual thread that waits for its turn.
#[derive(Debug)]
pub struct Held {
    pub ring: Ring,
    pub ticks: u64,
    pub tid: u32,
    pub thread: [u8; 16],
    pub id: ChannelId,
    pub value: OwnedPayload,
}

/// What comes next of a process.
pub enum Next {
    Event(Held),
    /// Events of any virtual thread may be missing here.
    Gap(u64, u64),
}

/// What has been read and may not be passed on yet.
pub struct ReorderBuffer {
    all: HashMap<usize, ProcessBuffer>,
    count: u64,
    is_over: bool,
}

/// Of a process.
#[derive(Default)]
struct ProcessBuffer {
    /// By ticks; of those at one time, the first that came comes first.
    held: BTreeMap<(u64, u64), Held>,
    /// When blocks begin that are still to be read, by ring that carries virtual threads.
    begins: HashMap<u32, VecDeque<u64>>,
    /// In the order of their times, none within another.
    gaps: VecDeque<Gap>,
}

impl ReorderBuffer {
    pub fn new(carriers: CarrierIndex) -> Self {
        let all =
            carriers.0.into_iter().map(|(process, rings)| (process, ProcessBuffer::of(rings)));
        Self { all: all.collect(), count: 0, is_over: false }
    }

    /// The next block of the ring is about to be read; `false` if it has come to the file since.
    pub fn read(&mut self, (process, ring): Ring) -> bool {
        let buffer = self.all.get_mut(&process);
        buffer
            .and_then(|buffer| buffer.begins.get_mut(&ring))
            .is_none_or(|begins| begins.pop_front().is_some())
    }

    pub fn hold(
        &mut self,
        (ring, ticks): (Ring, u64),
        (tid, thread): (u32, [u8; 16]),
        (id, value): (ChannelId, OwnedPayload),
    ) {
        let held = Held { ring, ticks, tid, thread, id, value };
        self.all.entry(ring.0).or_default().held.insert((ticks, self.count), held);
        self.count += 1;
    }

    /// Before when nothing of the process comes any more.
    pub fn until(&self, process: usize) -> u64 {
        let buffer = self.all.get(&process);
        let begins = buffer.into_iter().flat_map(|buffer| buffer.begins.values());
        begins.filter_map(VecDeque::front).min().copied().unwrap_or(u64::MAX)
    }

    /// What is next of the process before then.
    pub fn next(&mut self, process: usize, until: u64) -> Option<Next> {
        let buffer = self.all.get_mut(&process)?;
        let next = buffer.held.first_key_value().map(|((ticks, _), _)| *ticks);
        let next = next.filter(|ticks| self.is_over || *ticks < until);
        let is_gap = |gap: &Gap| next.map_or(self.is_over, |ticks| gap.0 <= ticks);
        if let Some((first, last)) = buffer.gaps.pop_front_if(|gap| is_gap(gap)) {
            return Some(Next::Gap(first, last));
        }
        next?;
        buffer.held.pop_first().map(|(_, held)| Next::Event(held))
    }

    /// Nothing comes any more: the processes of which something is left.
    pub fn end(&mut self) -> Vec<usize> {
        self.is_over = true;
        let mut left: Vec<_> = self.all.keys().copied().collect();
        left.sort_unstable();
        left
    }
}

impl ProcessBuffer {
    fn of(rings: HashMap<u32, Carrier>) -> Self {
        let owners = || rings.values().flat_map(|ring| ring.owners.values());
        let lacking = owners().filter(|owner| owner.may_carry());
        let mut gaps: Vec<_> = lacking.flat_map(|owner| &owner.gaps).copied().collect();
        gaps.sort_unstable();
        gaps.dedup_by(|next, before| {
            let is_within = next.0 <= before.1;
            before.1 = if is_within { before.1.max(next.1) } else { before.1 };
            is_within
        });
        let carries = |ring: &Carrier| ring.owners.values().any(|owner| owner.has_carried);
        let begins = rings.into_iter().filter(|(_, ring)| carries(ring));
        let begins = begins.map(|(index, ring)| (index, ring.begins)).collect();
        Self { held: BTreeMap::new(), begins, gaps: gaps.into() }
    }
}
