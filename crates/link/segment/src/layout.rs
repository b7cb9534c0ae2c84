// SPDX-License-Identifier: Apache-2.0
use crate::{Direction, Holders, LARGEST_RING, SMALLEST_RING};
use core::ffi::{CStr, c_int};
use core::mem::offset_of;
#[cfg(not(loom))]
use core::sync::atomic::{AtomicU8, AtomicU64};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU8, AtomicU64};
use tare_shm::{Access, Fill, Refusal, Segment, header, syscall};

/// Raised where what stands in a segment changes.
pub const VERSION: u32 = 8;

const NAME: &CStr = c"tare-link";
const BYTES: usize = 1 << LARGEST_RING;
/// Bytes of a ring that are mapped from the beginning.
const FIRST_BYTES: usize = 1 << SMALLEST_RING;
const RINGS: usize = 4096;
const SIZE: usize = RINGS + 2 * BYTES;

/// Service threads that an end can have.
pub const SERVICES: usize = 4;

/// Which end of a link a process has: the one that made the segment, or the one that got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Maker = 0,
    Taker = 1,
}

/// The counters of a link, behind the header of its segment.
#[repr(C)]
#[derive(Debug)]
pub struct Shared {
    _header: [AtomicU64; 8],
    /// For each end, the names of the service threads that have it (0 for none): of the process
    /// that was linked, and of children of its forks.
    services: [[AtomicU64; SERVICES]; 2],
    /// What the maker sends, and what the taker sends.
    pub(crate) directions: [Direction; 2],
    /// The PID namespace of each end, by its inode; 0 if it is not known.
    namespaces: [AtomicU64; 2],
    /// The processes that have each end.
    holders: [Holders; 2],
}

/// A mapped link, seen from one end. Of its rings only the first bytes are mapped: a program that
/// locks its memory (`mlockall`) would give memory to all.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    segment: Segment,
    rings: [Segment; 2],
    end: End,
}

impl Link {
    /// Makes the memory of a link; its descriptor is close-on-exec.
    pub fn make() -> Result<(c_int, Self), Refusal> {
        let (fd, segment) = Segment::create_begun(NAME, header::kind::LINK, VERSION, SIZE, RINGS)?;
        let link = Self::with_rings(fd, segment, End::Maker);
        Ok((fd, link.inspect_err(|_| syscall::close(fd))?))
    }

    /// Maps the memory of a link that the other end has made.
    pub fn take(fd: c_int) -> Result<Self, Refusal> {
        let segment =
            Segment::open_begun(fd, header::kind::LINK, VERSION, Access::ReadWrite, RINGS)?;
        if segment.header().size != SIZE as u64 {
            // SAFETY: nothing of it was given out.
            unsafe { segment.unmap() };
            return Err(Refusal::TooSmall);
        }
        Self::with_rings(fd, segment, End::Taker)
    }

    /// Without a ring, nothing stays mapped.
    fn with_rings(fd: c_int, segment: Segment, end: End) -> Result<Self, Refusal> {
        let ring = |number: usize| {
            let offset = RINGS + number * BYTES;
            Segment::part(fd, offset, FIRST_BYTES, Access::ReadWrite, Fill::Later)
        };
        let first = ring(0);
        let rings = first.and_then(|first| {
            // SAFETY: nothing of it was given out.
            Ok([first, ring(1).inspect_err(|_| unsafe { first.unmap() })?])
        });
        // SAFETY: nothing of it was given out.
        let rings = rings.inspect_err(|_| unsafe { segment.unmap() })?;
        Ok(Self { segment, rings, end })
    }

    /// Which end this is.
    pub fn end(&self) -> End {
        self.end
    }

    /// Where the memory is mapped in this process.
    pub fn place(&self) -> usize {
        // SAFETY: atomics only, and the segment is writable.
        unsafe { self.segment.at::<Shared>(0) }
            .map_or(0, |shared| core::ptr::from_ref(shared).addr())
    }

    /// What this end sends.
    pub fn outgoing(&self) -> Option<&'static Direction> {
        self.direction(self.end as usize)
    }

    /// What this end receives.
    pub fn incoming(&self) -> Option<&'static Direction> {
        self.direction(1 - self.end as usize)
    }

    fn direction(&self, number: usize) -> Option<&'static Direction> {
        let offset = offset_of!(Shared, directions) + number * size_of::<Direction>();
        // SAFETY: atomics only, and the segment is writable.
        unsafe { self.segment.at(offset) }
    }

    /// The names of service threads: of this end, and of the other one.
    pub fn services(&self) -> Option<[&'static [AtomicU64; SERVICES]; 2]> {
        let own = self.end as usize;
        let services = |end: usize| {
            let size = size_of::<[AtomicU64; SERVICES]>();
            // SAFETY: atomics only, and the segment is writable.
            unsafe { self.segment.at(offset_of!(Shared, services) + end * size) }
        };
        Some([services(own)?, services(1 - own)?])
    }

    /// The PID namespaces of this end and of the other one, by their inodes; 0 if it is not known.
    pub fn namespaces(&self) -> Option<[&'static AtomicU64; 2]> {
        let namespace = |end: usize| {
            let offset = offset_of!(Shared, namespaces) + end * size_of::<AtomicU64>();
            // SAFETY: atomics only, and the segment is writable.
            unsafe { self.segment.at(offset) }
        };
        Some([namespace(self.end as usize)?, namespace(1 - self.end as usize)?])
    }

    /// The processes that have this end.
    pub fn holders(&self) -> Option<&'static Holders> {
        let offset = offset_of!(Shared, holders) + self.end as usize * size_of::<Holders>();
        // SAFETY: atomics only, and the segment is writable.
        unsafe { self.segment.at(offset) }
    }

    /// The first bytes of the ring of what this end sends.
    pub fn outgoing_ring(&self) -> Option<&'static [AtomicU8]> {
        self.ring(self.end as usize)
    }

    /// The first bytes of the ring of what this end receives.
    pub fn incoming_ring(&self) -> Option<&'static [AtomicU8]> {
        self.ring(1 - self.end as usize)
    }

    fn ring(&self, number: usize) -> Option<&'static [AtomicU8]> {
        // SAFETY: atomics only, and the segment is writable.
        let ring = unsafe { self.rings[number].at::<[AtomicU8; FIRST_BYTES]>(0) };
        ring.map(<[AtomicU8; FIRST_BYTES]>::as_slice)
    }

    /// Takes the mapping away.
    ///
    /// # Safety
    /// Nothing that was given out is used any more.
    pub unsafe fn unmap(self) {
        for part in self.rings.into_iter().chain([self.segment]) {
            // SAFETY: as the caller promises.
            unsafe { part.unmap() };
        }
    }
}

const _: () = {
    assert!(cfg!(loom) || size_of::<Shared>() <= RINGS);
    assert!(cfg!(loom) || size_of::<Direction>() == 512);
};

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;
    use crate::{Mode, Source};

    #[test]
    fn what_one_end_sends_the_other_receives() {
        let (fd, maker) = Link::make().unwrap();
        let taker = Link::take(fd).unwrap();
        syscall::close(fd);
        let (out, into) = (maker.outgoing().unwrap(), taker.incoming().unwrap());
        into.ready(0);
        assert!(out.upgrade(|| Some(0)) && out.mode() == Mode::Ring);
        assert!(out.publish(0, 3));
        assert_eq!(into.source(into.capacity()), Ok(Source::Ring { from: 0, length: 3 }));
        assert!(!taker.outgoing().unwrap().can_upgrade());
        use core::sync::atomic::Ordering::Relaxed;
        maker.outgoing_ring().unwrap()[9].store(7, Relaxed);
        assert_eq!(taker.incoming_ring().unwrap()[9].load(Relaxed), 7);
    }

    #[test]
    fn a_segment_of_another_size_is_refused() {
        let (fd, _) = Segment::create(NAME, header::kind::LINK, VERSION, 4096).unwrap();
        assert_eq!(Link::take(fd).unwrap_err(), Refusal::TooSmall);
    }
}
