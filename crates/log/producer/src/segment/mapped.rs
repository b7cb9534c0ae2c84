// SPDX-License-Identifier: Apache-2.0
//! The segment that this process has, and its rings, which are mapped when a thread needs them.

use crate::segment::region::{Region, stage};
use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, AtomicUsize};
use tare_log_segment::Identity;
use tare_log_segment::layout::{self, MAPPED_TABLES, MOST_RINGS, Process, RingHead};
use tare_shm::{Access, Errno, Segment, memory};

/// The process's segment. In the child of a fork these are still its parent's, until it
/// attaches itself; whether they are one's own, the region says.
pub static PROCESS: AtomicPtr<Process> = AtomicPtr::new(ptr::null_mut());
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);
/// Which file that is: inode and device.
static FILE: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Words of a ring: what stands in the segment others could change.
static RING_WORDS: AtomicUsize = AtomicUsize::new(0);
pub static RINGS: [AtomicPtr<RingHead>; MOST_RINGS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MOST_RINGS];
/// In `RINGS`: no ring is mapped there any more.
pub const CLOSED: *mut RingHead = ptr::without_provenance_mut(1);

/// A segment that is ready to be used: its descriptor, and the words of each of its rings.
pub fn keep(process: &Process, fd: c_int, ring_words: usize) -> Result<(), Errno> {
    RING_WORDS.store(ring_words, Relaxed);
    PROCESS.store(ptr::from_ref(process).cast_mut(), Relaxed);
    let Identity { device, inode } = Identity::of(fd)?;
    FILE[0].store(inode, Relaxed);
    FILE[1].store(device, Relaxed);
    DESCRIPTOR.store(fd, Relaxed);
    Ok(())
}

/// The region and the segment of this process, if it has them.
pub fn attached() -> Option<(&'static Region, &'static Process)> {
    let region = Region::get()?;
    if region.stage.load(Acquire) != stage::READY {
        return None;
    }
    // SAFETY: set before the stage was, and not unmapped while it stays.
    unsafe { PROCESS.load(Relaxed).as_ref() }.map(|process| (region, process))
}

/// The segment's. A program may have closed it, and something of its own is there now.
pub fn descriptor() -> Option<c_int> {
    let fd = DESCRIPTOR.load(Relaxed);
    let [inode, device] = FILE.each_ref().map(|half| half.load(Relaxed));
    (Identity::of(fd) == Ok(Identity { device, inode })).then_some(fd)
}

/// Words of each ring of this process.
pub fn ring_words() -> usize {
    RING_WORDS.load(Relaxed)
}

/// The ring at `place`, mapped.
pub fn ring(place: usize) -> Option<&'static RingHead> {
    let known = RINGS[place].load(Acquire);
    let ring = if known.is_null() { map_ring(place)? } else { known };
    // SAFETY: mapped as long as the process has this segment.
    if ring == CLOSED { None } else { unsafe { ring.as_ref() } }
}

/// What is then in `RINGS`, which another thread may have put there.
#[cold]
fn map_ring(place: usize) -> Option<*mut RingHead> {
    let ring_words = ring_words();
    let size = layout::ring_size(ring_words);
    if !memory::has_room(size) {
        return None;
    }
    let offset = layout::ring_at(place, ring_words);
    let fill = tare_shm::Fill::Now;
    let part = Segment::part(descriptor()?, offset, size, Access::ReadWrite, fill).ok()?;
    // SAFETY: atomics only.
    let ring = ptr::from_ref::<RingHead>(unsafe { part.at(0) }?).cast_mut();
    match RINGS[place].compare_exchange(ptr::null_mut(), ring, SeqCst, Acquire) {
        Ok(_) => {
            MAPPED_TABLES.fetch_max(place + 1, SeqCst);
            Some(ring)
        }
        Err(others) => {
            unmap(ring.addr(), size);
            Some(others)
        }
    }
}

pub fn unmap(address: usize, size: usize) {
    // SAFETY: mapped by this library, and no thread uses it.
    unsafe { memory::unmap(ptr::without_provenance_mut(address), size) };
}
