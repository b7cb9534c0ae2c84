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
        let gaps = &mut self.owner().gaps;
        match gaps.last_mut().filter(|last| (last.0..=last.1).contains(&gap.0)) {
            Some(last) => last.1 = last.1.max(gap.1),
            None => gaps.push(gap),
        }
    }
}

/// Bytes of events that may wait. A file may be made so that all events of virtual threads wait
/// for its last block.
pub const MOST_HELD: usize = 1 << 29;

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

impl Held {
    fn bytes(&self) -> usize {
        size_of::<((u64, u64), Self)>() + self.value.bytes()
    }
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
    /// Bytes of events that wait, and how many may.
    held: usize,
    most_held: usize,
    is_over: bool,
    /// Events did not wait as long as they had to.
    pub is_disordered: bool,
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
    pub fn new(carriers: CarrierIndex, most_held: usize) -> Self {
        let all =
            carriers.0.into_iter().map(|(process, rings)| (process, ProcessBuffer::of(rings)));
        let (count, held, is_over) = (0, 0, false);
        Self { all: all.collect(), count, held, most_held, is_over, is_disordered: false }
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
        self.held += held.bytes();
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
        let is_turn = next.is_some_and(|ticks| self.is_over || ticks < until);
        let is_early = !is_turn && self.held > self.most_held;
        let next = next.filter(|_| is_turn || is_early);
        let is_gap = |gap: &Gap| next.map_or(self.is_over, |ticks| gap.0 <= ticks);
        if let Some((first, last)) = buffer.gaps.pop_front_if(|gap| is_gap(gap)) {
            return Some(Next::Gap(first, last));
        }
        next?;
        let (_, held) = buffer.held.pop_first()?;
        self.held -= held.bytes();
        self.is_disordered |= is_early;
        Some(Next::Event(held))
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

#[cfg(test)]
mod tests {
    use super::*;
    use tare_log_file::{Event, Payload};
    use tare_log_segment::block::Kind;

    const TID: u32 = 0x8000_0001;

    /// Of one event of a virtual thread, in each of two rings, and the first ring's once more.
    fn carriers() -> CarrierIndex {
        let mut carriers = CarrierIndex::default();
        for (ring, ticks) in [(0, 30), (1, 20), (0, 40)] {
            let channel = ChannelId::from_le_bytes([1, 0]);
            let event = Item::Event(Event { ticks, channel, payload: Payload::Number(0) });
            carriers.add((0, ring), &Header { tid: TID, ..Header::of(Kind::Events, 0) }, &[event]);
        }
        carriers
    }

    /// The ticks of what leaves the buffer after each block.
    fn ticks(buffer: &mut ReorderBuffer) -> Vec<Vec<u64>> {
        let blocks = [(0, 30), (1, 20), (0, 40)];
        let after = |(ring, ticks)| {
            assert!(buffer.read((0, ring)));
            let id = ChannelId::from_le_bytes([1, 0]);
            let value = OwnedPayload::Bytes(vec![0; 100]);
            buffer.hold(((0, ring), ticks), (TID, [0; 16]), (id, value));
            let until = buffer.until(0);
            let all = std::iter::from_fn(|| buffer.next(0, until));
            all.map(|next| match next {
                Next::Event(held) => held.ticks,
                Next::Gap(first, _) => first,
            })
            .collect()
        };
        blocks.map(after).to_vec()
    }

    #[test]
    fn events_wait_until_all_before_them_have_come() {
        let mut buffer = ReorderBuffer::new(carriers(), MOST_HELD);
        assert_eq!(ticks(&mut buffer), [vec![], vec![20, 30], vec![40]]);
        assert_eq!((buffer.held, buffer.is_disordered), (0, false));
    }

    #[test]
    fn events_do_not_wait_where_too_many_do() {
        let mut buffer = ReorderBuffer::new(carriers(), 99);
        assert_eq!(ticks(&mut buffer), [[30], [20], [40]]);
        assert_eq!((buffer.held, buffer.is_disordered), (0, true));
    }
}
