// SPDX-License-Identifier: Apache-2.0
//! Gives rings to threads. A ring belongs to the thread whose number stands in it, and is free
//! for another when that thread has ended, which the kernel is asked: no thread has to say so.

use crate::program::clock;
use crate::program::threads::is_alive;
use crate::segment::carrier_thread::Carrier;
use crate::segment::region::{Region, is_vfork_child};
use crate::segment::{handover, mapped};
use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use tare_clock::counter;
use tare_log_segment::layout::rules;
use tare_log_segment::record::thread_record;
use tare_log_segment::{Process, RingHead, Writer};
use tare_shm::{Word, process, syscall};

/// In an owner: a signal handler has the ring, for one event.
const BORROWED: u32 = 1 << 31;

#[derive(Clone, Copy)]
struct Thread {
    tid: u32,
    /// In clock ticks after boot; 0 where the kernel does not say.
    started: u64,
}

impl Thread {
    /// `None` where the kernel cannot be asked.
    fn this() -> Option<Self> {
        let tid = Some(syscall::gettid()).filter(|tid| *tid != 0)?;
        Some(Self { tid, started: process::own_start_time().unwrap_or(0) })
    }

    /// Whether the ring's thread, which has this one's number, was another.
    fn is_namesake(self, region: &Region, place: usize) -> bool {
        region.started[place].load(Relaxed) != self.started
    }
}

/// The writer of the calling thread; a new one for a thread that has none.
pub fn writer(region: &'static Region, process: &Process) -> Option<&'static Writer> {
    let carrier = Carrier::this();
    carrier.writer().or_else(|| {
        let pid = region.pid.load(Relaxed);
        // A child of vfork would take the ring under its own number, for the thread that it runs on.
        if !carrier.may_claim(pid) || is_vfork_child() {
            return None;
        }
        let writer = claim(region, process);
        match writer {
            Some(writer) => carrier.keep(Some(writer), 0),
            None => carrier.pause_claims(pid),
        }
        writer
    })
}

#[inline(never)]
fn claim(region: &'static Region, process: &Process) -> Option<&'static Writer> {
    let thread = Thread::this()?;
    let own = (0..process.rings_used()).find(|place| {
        let ring = region.writers[*place].ring();
        ring.is_some_and(|ring| ring.owner.load(Relaxed) == thread.tid)
            && !thread.is_namesake(region, *place)
    });
    own.map(|place| &region.writers[place]).or_else(|| {
        let writer = take(region, process, thread, thread.tid)?;
        if let Some(ring) = writer.ring() {
            ring.begun.fetch_add(1, Release);
            await_rules(process, rules::OF_THREADS, || {
                ring.ruled_thread.load(Acquire) == ring.begun.load(Relaxed)
            });
        }
        Some(writer)
    })
}

/// Until the collector has applied its rules, where it has such ones; not for ever.
pub fn await_rules(process: &Process, which: u32, are_applied: impl Fn() -> bool) {
    if process.rules.load(Acquire) & which != 0 {
        await_collector(250, are_applied);
    }
}

/// Until the collector has done something; so many milliseconds at most.
pub fn await_collector(most_ms: u32, is_done: impl Fn() -> bool) {
    const PAUSES_PER_MS: u32 = 4;
    const PAUSE_NS: i64 = 1_000_000 / PAUSES_PER_MS as i64;
    handover::wake();
    for _ in 0..PAUSES_PER_MS * most_ms {
        if is_done() || !handover::is_served() {
            return;
        }
        syscall::sleep(PAUSE_NS);
    }
}

/// A ring for a signal handler that has interrupted its thread in the middle of an event, which it
/// writes with `busy`.
pub fn borrow(
    region: &'static Region,
    process: &Process,
    busy: &Writer,
) -> Option<&'static Writer> {
    let started = region.started[region.place(busy)].load(Relaxed);
    let thread = Thread { tid: tid(busy.ring()?.owner.load(Relaxed)), started };
    take(region, process, thread, thread.tid | BORROWED)
}

/// The end of what `borrow` began.
pub fn give_back(writer: &Writer) {
    if let Some(ring) = writer.ring() {
        ring.owner.store(0, Release);
    }
}

fn take(
    region: &'static Region,
    process: &Process,
    thread: Thread,
    owner: u32,
) -> Option<&'static Writer> {
    let rings = process.rings.load(Relaxed) as usize;
    // Where one cannot be mapped, nor can those behind it.
    let mapped =
        (0..rings.min(region.writers.len())).map_while(|place| Some((place, mapped::ring(place)?)));
    mapped.into_iter().find_map(|(place, ring)| {
        let before = ring.owner.load(Acquire);
        let is_free = before == 0
            || before == thread.tid && thread.is_namesake(region, place)
            || !is_alive(tid(before));
        if !is_free {
            return None;
        }
        ring.owner.compare_exchange(before, owner, AcqRel, Relaxed).ok()?;
        region.writers[place].suspend();
        region.started[place].store(thread.started, Relaxed);
        process.use_ring(place);
        let writer = &region.writers[place];
        begin(writer, ring, region, process, thread.tid).or_else(|| {
            ring.owner.store(0, Relaxed);
            None
        })?;
        Some(writer)
    })
}

/// `None` where the ring is full of what its last thread has left.
fn begin(
    writer: &Writer,
    ring: &'static RingHead,
    region: &Region,
    process: &Process,
    tid: u32,
) -> Option<()> {
    let ring_words = mapped::ring_words();
    let first = ptr::from_ref(ring).wrapping_add(1).cast::<Word>();
    let words = ptr::slice_from_raw_parts(first, ring_words);
    let table = process.begin_table(region.place(writer));
    let modes = if counter::is_replaced() { region.out_of_line() } else { &table.modes };
    // SAFETY: the words stand behind their head, mapped with it; the modes are the segment's or
    // the region's.
    unsafe { writer.begin(ring, words, modes.as_ptr()) }?;
    let name = name();
    ring.owner_name[0].store(name[0], Relaxed);
    ring.owner_name[1].store(name[1], Relaxed);
    writer.push(&thread_record(clock::now(process), tid, name)).then_some(())
}

/// The thread that an owner names.
pub fn tid(owner: u32) -> u32 {
    owner & !BORROWED
}

/// The calling thread's name, ended with 0.
fn name() -> [u64; 2] {
    let mut name = [0u64; 2];
    let arguments = [libc::PR_GET_NAME as usize, name.as_mut_ptr().addr(), 0, 0, 0, 0];
    // SAFETY: the kernel writes 16 bytes.
    let _ = unsafe { syscall::call(libc::SYS_prctl, arguments) };
    name
}
