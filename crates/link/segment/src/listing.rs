// SPDX-License-Identifier: Apache-2.0
//! The links of all programs of one tare-link, for `tare link ps`: a program enters where it has a
//! link's memory, and the reader copies the counters from there.

use crate::layout::{End, Shared, VERSION};
use crate::{Direction, Endpoint, Totals};
use core::mem::{MaybeUninit, offset_of};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};
use tare_shm::header::{self, Header};

/// Links that are listed; others work, but are not seen.
const ENTRIES: usize = 1024;
/// Entries that are checked for a process that was killed, when none is free: each costs a system
/// call.
const CHECKS: usize = 8;

#[repr(C)]
#[derive(Debug)]
pub struct Listing {
    /// Where the search for a free entry begins.
    next: AtomicU64,
    entries: [Entry; ENTRIES],
}

#[repr(C)]
#[derive(Debug)]
struct Entry {
    /// The process that has the link, 0 for none.
    process: AtomicU32,
    end: AtomicU32,
    /// Where its memory is, 0 while the entry is written.
    place: AtomicU64,
    addresses: [[AtomicU64; 2]; 2],
    ports: [AtomicU32; 2],
}

/// A link as its program entered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    pub process: u32,
    pub end: End,
    pub place: u64,
    /// This end, and the other.
    pub ends: [Endpoint; 2],
}

/// The bytes from the beginning of a link's memory that its counters are in.
pub const COUNTERS: usize = size_of::<Shared>();

impl Listing {
    /// Enters a link; the number of its entry, or `None` if there is no room. Entries of processes
    /// that do not exist any more are used again.
    pub fn add(&self, link: &Listed, exists: impl Fn(u32) -> bool) -> Option<usize> {
        let take = |old: u32, entry: &Entry| {
            entry.process.compare_exchange(old, link.process, AcqRel, Relaxed).is_ok()
        };
        let is_left = |entry: &Entry| {
            let old = entry.process.load(Relaxed);
            old != 0 && !exists(old) && take(old, entry)
        };
        let first = self.next.load(Relaxed) as usize;
        let order = |count: usize| (first..first + count).map(|number| number % ENTRIES);
        let number = order(ENTRIES)
            .find(|number| take(0, &self.entries[*number]))
            .or_else(|| order(CHECKS).find(|number| is_left(&self.entries[*number])));
        let after = number.map_or(first + CHECKS, |number| number + 1);
        self.next.store((after % ENTRIES) as u64, Relaxed);
        let number = number?;
        let entry = &self.entries[number];
        entry.place.store(0, Release);
        entry.end.store(link.end as u32, Relaxed);
        for (place, end) in link.ends.iter().enumerate() {
            let address = u128::from_be_bytes(end.address);
            entry.addresses[place][0].store((address >> 64) as u64, Relaxed);
            entry.addresses[place][1].store(address as u64, Relaxed);
            entry.ports[place].store(end.port.into(), Relaxed);
        }
        entry.place.store(link.place, Release);
        Some(number)
    }

    /// The process has the link no more.
    pub fn remove(&self, number: usize, process: u32) {
        if let Some(entry) = self.entries.get(number) {
            let _ = entry.process.compare_exchange(process, 0, AcqRel, Relaxed);
        }
    }

    /// Every link that is entered.
    pub fn all(&self) -> impl Iterator<Item = Listed> {
        self.entries.iter().filter_map(Entry::read)
    }
}

impl Entry {
    fn read(&self) -> Option<Listed> {
        let (process, place) = (self.process.load(Acquire), self.place.load(Acquire));
        if process == 0 || place == 0 {
            return None;
        }
        let endpoint = |end: usize| {
            let [high, low] = [0, 1].map(|word| self.addresses[end][word].load(Relaxed));
            let address = u128::from(high) << 64 | u128::from(low);
            let port = self.ports[end].load(Relaxed) as u16;
            Endpoint { address: address.to_be_bytes(), port }
        };
        let end = if self.end.load(Relaxed) == 0 { End::Maker } else { End::Taker };
        Some(Listed { process, end, place, ends: [endpoint(0), endpoint(1)] })
    }
}

/// What an end sent, and what it received, in a copy of the first bytes of a link's memory; `None`
/// if they are not a link's.
pub fn totals(bytes: &[u8; COUNTERS], end: End) -> Option<[Totals; 2]> {
    let header = Header::read(bytes.first_chunk()?);
    let size = usize::try_from(header.size).ok()?;
    header.check(header::kind::LINK, VERSION, size).ok()?;
    let direction = |number: usize| {
        let offset = offset_of!(Shared, directions) + number * size_of::<Direction>();
        let bytes = bytes.get(offset..offset + size_of::<Direction>())?;
        let mut copy = MaybeUninit::<Direction>::uninit();
        // SAFETY: as many bytes as the copy has, and any are atomics.
        unsafe {
            bytes.as_ptr().copy_to_nonoverlapping(copy.as_mut_ptr().cast(), bytes.len());
            Some(copy.assume_init().totals())
        }
    };
    let own = end as usize;
    Some([direction(own)?, direction(1 - own)?])
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::boxed::Box;
    use std::vec::Vec;

    fn listing() -> Box<Listing> {
        // SAFETY: zeros are atomics.
        unsafe { Box::<Listing>::new_zeroed().assume_init() }
    }

    fn link(process: u32) -> Listed {
        let end = |port| Endpoint { address: [7; 16], port };
        Listed { process, end: End::Taker, place: 4096, ends: [end(1), end(65_535)] }
    }

    #[test]
    fn what_is_entered_is_read_until_it_is_removed() {
        let listing = listing();
        assert_eq!(listing.add(&link(5), |_| true), Some(0));
        assert_eq!(listing.add(&link(6), |_| true), Some(1));
        assert_eq!(listing.all().collect::<Vec<_>>(), [link(5), link(6)]);
        listing.remove(0, 9);
        listing.remove(1, 6);
        assert_eq!(listing.all().collect::<Vec<_>>(), [link(5)]);
    }

    #[test]
    fn entries_of_processes_that_are_killed_are_used_again() {
        let listing = listing();
        (0..ENTRIES).for_each(|_| assert!(listing.add(&link(5), |_| true).is_some()));
        assert_eq!(listing.add(&link(6), |_| true), None);
        assert!(listing.add(&link(6), |process| process == 6).is_some());
        assert_eq!(listing.all().filter(|link| link.process == 6).count(), 1);
    }

    #[cfg(not(miri))]
    #[test]
    fn totals_are_copied_from_a_links_memory() {
        let (fd, maker) = crate::Link::make().unwrap();
        tare_shm::syscall::close(fd);
        maker.outgoing().unwrap().publish(0, 3);
        let mut bytes = [0; COUNTERS];
        // SAFETY: no other thread writes there.
        bytes.copy_from_slice(unsafe {
            core::slice::from_raw_parts(maker.place() as *const u8, COUNTERS)
        });
        let [sent, received] = totals(&bytes, End::Maker).unwrap();
        assert_eq!((sent.ring_bytes, sent.messages, received.ring_bytes), (3, 1, 0));
        assert_eq!(totals(&bytes, End::Taker).unwrap(), [received, sent]);
        assert!(totals(&[0; COUNTERS], End::Maker).is_none());
    }
}
