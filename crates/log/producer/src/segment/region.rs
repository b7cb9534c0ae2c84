// SPDX-License-Identifier: Apache-2.0
//! What belongs to one process and must not survive a fork: memory that the kernel wipes in
//! the child, however the child was made.

use crate::segment::median_window::Window;
use crate::segment::racy_init::agreed;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64};
use tare_log_segment::Writer;
use tare_log_segment::layout::{CHANNELS, MODES, MOST_RINGS, mode};
use tare_shm::{Errno, memory, syscall};

/// A descriptor that was lent; 0 is none.
pub type Slot = AtomicI32;

/// Zero in a child: it makes itself another, and this one is never used again. So a writer
/// that a thread still holds stays without a ring for ever.
pub struct Region {
    is_alive: AtomicU32,
    /// The process's number.
    pub pid: AtomicU32,
    pub stage: AtomicU32,
    /// The thread that makes the segment; and events of signal handlers that came meanwhile.
    pub attacher: AtomicU32,
    pub early: AtomicU64,
    pub opening: AtomicU32,
    /// The thread that asks the collector for a descriptor; and when, in seconds of
    /// CLOCK_MONOTONIC, the next may after one that got none.
    pub borrower: AtomicU32,
    pub borrow_next: AtomicU32,
    /// Calls that could have offered the segment again, and when the next may, in milliseconds of
    /// CLOCK_MONOTONIC.
    pub offers: AtomicU32,
    pub offer_next: AtomicU32,
    /// By channel: what it asks starts with.
    pub sockets: [Slot; CHANNELS],
    /// By ring.
    pub writers: [Writer; MOST_RINGS],
    /// By ring: when its thread was started, since the kernel gives numbers of threads again.
    pub started: [AtomicU64; MOST_RINGS],
    /// By channel.
    pub medians: [AtomicPtr<Window>; CHANNELS],
    out_of_line: [AtomicU8; MODES],
}

/// How far the process has come.
pub mod stage {
    pub const NEW: u32 = 0;
    pub const READY: u32 = 1;
    pub const FAILED: u32 = 2;
    /// The segment is there, and is being offered to the collector, whose rules are to hold from
    /// the first event on.
    pub const OFFERED: u32 = 3;
}

// SAFETY: a writer is used by the one thread that owns its ring; the rest is atomics.
unsafe impl Sync for Region {}

static REGION: AtomicPtr<Region> = AtomicPtr::new(ptr::null_mut());

impl Region {
    /// That of this process, once it has one.
    pub fn get() -> Option<&'static Self> {
        // SAFETY: null, or a region that is never unmapped.
        unsafe { REGION.load(Acquire).as_ref() }.filter(|region| region.is_this_process())
    }

    pub fn get_or_make() -> Result<&'static Self, Errno> {
        // SAFETY: a region that is never unmapped.
        let serves = |region: *mut Self| unsafe { (*region).is_this_process() };
        // SAFETY: nobody else ever had it.
        let discard =
            |region: *mut Self| unsafe { memory::unmap(region.cast(), size_of::<Self>()) };
        let region = agreed(&REGION, serves, Self::make, discard)?;
        // SAFETY: `agreed` returns a region, which is never unmapped.
        Ok(unsafe { &*region })
    }

    fn is_this_process(&self) -> bool {
        self.is_alive.load(Relaxed) != 0
    }

    fn make() -> Result<*mut Self, Errno> {
        let region: *mut Self = memory::map_wiped_on_fork(size_of::<Self>())?.cast();
        // SAFETY: zeros are a region; nobody else has it yet.
        unsafe {
            (*region).pid.store(syscall::getpid(), Relaxed);
            (*region).is_alive.store(1, Relaxed);
        }
        Ok(region)
    }

    /// Modes, by channel, that leave every event to the library. They are not in shared memory,
    /// where the collector changes modes.
    pub fn out_of_line(&self) -> &[AtomicU8; MODES] {
        self.out_of_line.iter().for_each(|place| place.store(mode::OUT_OF_LINE, Relaxed));
        &self.out_of_line
    }

    /// Which ring the writer writes to.
    pub fn place(&self, writer: &Writer) -> usize {
        let distance = ptr::from_ref(writer).addr().wrapping_sub(self.writers.as_ptr().addr());
        (distance / size_of::<Writer>()).min(MOST_RINGS - 1)
    }
}

/// Whether this is a child of vfork, which uses its parent's memory: it restricts itself, and does
/// not make itself at home there.
pub fn is_vfork_child() -> bool {
    let is_another = |region: &Region| region.pid.load(Relaxed) != syscall::getpid();
    !syscall::are_forbidden() && Region::get().is_some_and(is_another)
}
