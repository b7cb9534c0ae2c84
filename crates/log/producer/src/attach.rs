// SPDX-License-Identifier: Apache-2.0
use crate::region::{Region, stage};
use crate::restrictions::is_vfork_child;
use crate::{clock, handover, settings, shrink, warnings};
use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, AtomicUsize};
use tare_clock::Snapshot;
use tare_log_segment::Identity;
use tare_log_segment::layout::{
    self, KIND, MAPPED_TABLES, MOST_RINGS, Process, RingHead, VERSION, state,
};
use tare_shm::{Access, Errno, Refusal, Segment, memory, move_up, syscall};

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

/// The region and the segment of this process, if it has them.
pub fn attached() -> Option<(&'static Region, &'static Process)> {
    let region = Region::get()?;
    if region.stage.load(Acquire) != stage::READY {
        return None;
    }
    // SAFETY: set before the stage was, and not unmapped while it stays.
    unsafe { PROCESS.load(Relaxed).as_ref() }.map(|process| (region, process))
}

/// As `attached`; the child of a fork, which has its parent's channels, attaches itself first.
pub fn attached_or_forked() -> Option<(&'static Region, &'static Process)> {
    if let Some(both) = attached() {
        return Some(both);
    }
    let has_channels = !PROCESS.load(Relaxed).is_null();
    if has_channels { attach() } else { None }
}

/// The segment's. A program may have closed it, and something of its own is there now.
pub fn descriptor() -> Option<c_int> {
    let fd = DESCRIPTOR.load(Relaxed);
    let [inode, device] = FILE.each_ref().map(|half| half.load(Relaxed));
    (Identity::of(fd) == Ok(Identity { device, inode })).then_some(fd)
}

/// Makes the segment, if this process has none; `None` where that fails, once and for all, and for
/// a signal handler that interrupts it, whose event is counted.
pub fn attach() -> Option<(&'static Region, &'static Process)> {
    settings::read_environment();
    let region = Region::get_or_make().inspect_err(|why| warnings::lacking(*why)).ok()?;
    if is_vfork_child() {
        return attached();
    }
    let tid = syscall::gettid();
    if region.attacher.load(Relaxed) == tid {
        // A signal handler has interrupted it, or has jumped out of it.
        if region.stage.load(Acquire) == stage::NEW {
            region.early.fetch_add(1, Relaxed);
            return None;
        }
        end_offer(region);
        return attached();
    }
    if region.attacher.compare_exchange(0, tid, AcqRel, Acquire).is_ok() {
        // A signal handler that jumps away would leave it half done, for all threads.
        let made = undisturbed(|| {
            let made = make();
            let next = if made.is_ok() { stage::OFFERED } else { stage::FAILED };
            region.stage.store(next, Release);
            made
        });
        match made {
            Some(Ok(fd)) => offer(fd),
            Some(Err(Refusal::Failed(why))) => warnings::lacking(why),
            _ => {}
        }
        end_offer(region);
        region.attacher.store(NOBODY, Relaxed);
        if let Some((_, process)) = attached() {
            process.unserved.fetch_add(region.early.load(Relaxed), Relaxed);
        }
    }
    await_offer(region);
    attached()
}

/// Until the thread that has begun has made and offered the segment. The offer is not waited for
/// for ever: a signal handler may have jumped out of it.
fn await_offer(region: &Region) {
    const PAUSE_NS: i64 = 100_000;
    const MOST: u32 = 10_000;
    let mut pauses = 0;
    loop {
        match region.stage.load(Acquire) {
            // Not by letting other threads go on: one of a lower priority never would.
            stage::NEW => syscall::sleep(PAUSE_NS),
            stage::OFFERED if pauses < MOST => {
                pauses += 1;
                syscall::sleep(PAUSE_NS);
            }
            _ => return end_offer(region),
        }
    }
}

fn end_offer(region: &Region) {
    let _ = region.stage.compare_exchange(stage::OFFERED, stage::READY, AcqRel, Relaxed);
}

/// Does `work`, and no signal handler of the thread comes in between, unless system calls are
/// forbidden.
pub fn undisturbed<T>(work: impl FnOnce() -> T) -> Option<T> {
    let (mut work, mut done) = (Some(work), None);
    let mut once = || done = work.take().map(|work| work());
    if syscall::with_signals_blocked(syscall::FROM_OTHERS, &mut once).is_err() {
        once();
    }
    done
}

/// In `Region::attacher`, when the segment is there or cannot be made.
const NOBODY: u32 = u32::MAX;

/// Lets another thread go on.
pub fn pause() {
    // SAFETY: no memory is touched.
    let _ = unsafe { syscall::call(libc::SYS_sched_yield, [0; 6]) };
}

/// The segment's descriptor.
fn make() -> Result<c_int, Refusal> {
    let ring_words = fitting(settings::ring_bytes() / 8)?;
    let most_rings = shrink::most_rings(ring_words);
    let mapped = shrink::mapped(most_rings);
    if !memory::has_room(mapped + layout::ring_size(ring_words)) {
        return Err(Refusal::Failed(Errno(libc::ENOMEM)));
    }
    let (fd, segment) = create(ring_words, mapped)?;
    let fd = move_up(fd);
    // SAFETY: atomics only, and nobody else has the segment yet.
    let first: &AtomicU64 = unsafe { segment.at(0) }.ok_or(Refusal::TooSmall)?;
    // SAFETY: atomics only; what is not mapped of it is not touched (`MAPPED_TABLES`,
    // `MAPPED_STATES`).
    let process: &Process = unsafe { &*ptr::with_exposed_provenance(ptr::from_ref(first).addr()) };
    process.ring_words.store(ring_words as u64, Relaxed);
    process.rings.store(MOST_RINGS as u32, Relaxed);
    process.clock.store(clock::choose() as u32, Relaxed);
    let now = Snapshot::take();
    process.first.ticks.store(now.ticks, Relaxed);
    process.first.monotonic_ns.store(now.monotonic_ns as u64, Relaxed);
    process.first.realtime_ns.store(now.realtime_ns as u64, Relaxed);
    process.first.width.store(now.width, Relaxed);
    process.channels_used.store(1, Relaxed);
    if let Some(path) = settings::socket() {
        for (place, byte) in process.socket.iter().zip(path) {
            place.store(byte, Relaxed);
        }
        // Before channels are taken over: what the fast path does hangs on it.
        process.is_on.store(1, Relaxed);
    }
    process.state.store(state::RUNNING, Release);
    MAPPED_TABLES.store(0, SeqCst);
    leave_parents(process);
    shrink::begin(most_rings);
    RING_WORDS.store(ring_words, Relaxed);
    PROCESS.store(ptr::from_ref(process).cast_mut(), Relaxed);
    let Identity { device, inode } = Identity::of(fd)?;
    FILE[0].store(inode, Relaxed);
    FILE[1].store(device, Relaxed);
    DESCRIPTOR.store(fd, Relaxed);
    Ok(fd)
}

fn offer(fd: c_int) {
    if let Some(path) = settings::socket() {
        handover::offer(&path, fd);
    }
}

fn create(ring_words: usize, mapped: usize) -> Result<(c_int, Segment), Refusal> {
    let size = layout::ring_at(MOST_RINGS, ring_words);
    Segment::create_begun(layout::NAME, KIND, VERSION, size, mapped)
}

/// Words of a ring, fewer than `wanted` where the process may not make so large a file: the
/// kernel would end it for trying.
fn fitting(wanted: usize) -> Result<usize, Refusal> {
    let most = largest_file();
    let fits = |words: &usize| layout::ring_at(MOST_RINGS, *words) as u64 <= most;
    let smaller = core::iter::successors(Some(wanted), |words| Some(words / 2));
    let mut possible = smaller.take_while(|words| 8 * words >= layout::SMALLEST_RING);
    possible.find(fits).ok_or_else(|| {
        warnings::FILES.say();
        Refusal::TooSmall
    })
}

/// Bytes of the largest file that this process may make.
pub fn largest_file() -> u64 {
    syscall::limit(libc::RLIMIT_FSIZE).unwrap_or(u64::MAX)
}

/// In the child of a fork: takes the channels over, whose numbers the program has, and lets
/// go of the parent's segment.
fn leave_parents(process: &Process) {
    // SAFETY: null, or mapped until below.
    let Some(parents) = (unsafe { PROCESS.load(Relaxed).as_ref() }) else { return };
    process.inherit(parents);
    shrink::unmap_all(parents);
    if let Some(descriptor) = descriptor() {
        syscall::close(descriptor);
    }
}

pub fn unmap(address: usize, size: usize) {
    // SAFETY: mapped by this library, and no thread uses it.
    unsafe { memory::unmap(ptr::without_provenance_mut(address), size) };
}

/// The program comes to its end by itself: what a collector finds is all.
pub extern "C" fn finish() {
    if let Some((_, process)) = attached() {
        process.state.store(state::FINISHED, Release);
    }
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
