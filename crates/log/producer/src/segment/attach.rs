// SPDX-License-Identifier: Apache-2.0
use crate::program::limits::largest_file;
use crate::program::threads::undisturbed;
use crate::program::{clock, settings, warnings};
use crate::segment::environment::read_environment;
use crate::segment::mapped::{self, PROCESS, attached, descriptor};
use crate::segment::region::{Region, is_vfork_child, stage};
use crate::segment::{handover, shrink};
use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use tare_clock::Snapshot;
use tare_log_segment::layout::{self, KIND, MAPPED_TABLES, MOST_RINGS, Process, VERSION, state};
use tare_shm::{Errno, Refusal, Segment, memory, move_up, syscall};

/// As `attached`; the child of a fork, which has its parent's channels, attaches itself first.
pub fn attached_or_forked() -> Option<(&'static Region, &'static Process)> {
    if let Some(both) = attached() {
        return Some(both);
    }
    let has_channels = !PROCESS.load(Relaxed).is_null();
    if has_channels { attach() } else { None }
}

/// Makes the segment, if this process has none; `None` where that fails, once and for all, and for
/// a signal handler that interrupts it, whose event is counted.
pub fn attach() -> Option<(&'static Region, &'static Process)> {
    read_environment();
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

/// In `Region::attacher`, when the segment is there or cannot be made.
const NOBODY: u32 = u32::MAX;

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
    mapped::keep(process, fd, ring_words)?;
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

/// The program comes to its end by itself: what a collector finds is all.
pub extern "C" fn finish() {
    if let Some((_, process)) = attached() {
        process.state.store(state::FINISHED, Release);
    }
}
