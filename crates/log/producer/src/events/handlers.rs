// SPDX-License-Identifier: Apache-2.0
//! What is done with an event that is not simply written into the ring.

use crate::events::event::{Payload, Record, Scene};
use crate::events::median::{self, Step};
use crate::events::{fox, write_through};
use crate::program::clock;
use crate::segment::ring_ownership;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use tare_log_segment::Handler;
use tare_log_segment::record::thread_record;

/// Does what is in force for the channel. The handlers are not inlined: each call takes the stack
/// of its own handler only.
pub fn handle(scene: Scene<'_>, payload: Payload<'_>) {
    let (a, b) = (u64::from(scene.configuration.a), u64::from(scene.configuration.b));
    match scene.configuration.handler {
        Handler::Null => {}
        Handler::Buffered | Handler::FoxStart => scene.put(scene.now(), payload),
        Handler::Downsample => {
            let count = scene.channel.count.fetch_add(1, Relaxed);
            if count.checked_rem(a).is_none_or(|rest| rest == 0) {
                scene.put(scene.now(), payload);
            }
        }
        Handler::XOfY => {
            if payload.number() as u64 & b.saturating_sub(1) < a {
                scene.put(scene.now(), payload);
            }
        }
        Handler::FoxEnd => fox::end(&scene, payload),
        Handler::Id => write_through::log(&scene, payload),
        Handler::FirstLast => first_last(&scene, payload),
        Handler::Median => median(&scene, payload),
        Handler::PeriodicCounter => periodic_counter(&scene),
        Handler::FastPeriodicCounter => {
            scene.channel.counted.fetch_add(1, Relaxed);
        }
    }
}

#[inline(never)]
fn first_last(scene: &Scene<'_>, payload: Payload<'_>) {
    let now = scene.now();
    let before = scene.channel.seen.fetch_add(1, Relaxed);
    if before == 0 {
        return scene.put(now, payload);
    }
    let record = Record::new(now, scene.id, payload);
    let is_noted = scene
        .process
        .last(scene.channel)
        .is_some_and(|last| last.note(before, scene.whose(), record.words(), record.bytes));
    if !is_noted {
        scene.lose(now);
    }
}

#[inline(never)]
fn median(scene: &Scene<'_>, payload: Payload<'_>) {
    let now = scene.now();
    let tid = scene.writer.ring().map_or(0, |ring| ring_ownership::tid(ring.owner.load(Relaxed)));
    let event = (now, payload.number());
    match median::add(scene.region, scene.id, scene.configuration.a, event, tid) {
        Step::Waits => {}
        Step::Complete((ticks, number)) => scene.put(ticks, Payload::Number(number)),
        Step::Lost => scene.lose(now),
    }
}

#[inline(never)]
fn periodic_counter(scene: &Scene<'_>) {
    let channel = scene.channel;
    let count = 1 + channel.counted.fetch_add(1, Relaxed);
    let now = scene.now();
    let began = channel.period_began.load(Acquire);
    let is_over = now.wrapping_sub(began) as i64 >= channel.period_ticks.load(Relaxed) as i64;
    if began != 0 && !is_over {
        return;
    }
    // Of several threads one begins the next period.
    if channel.period_began.compare_exchange(began, now, AcqRel, Relaxed).is_err() {
        return;
    }
    channel.period_ticks.store(period(scene), Relaxed);
    if began != 0 {
        channel.counter_told.store(count, Relaxed);
        scene.put(now, Payload::Number(count as i64));
    }
}

/// The period that is asked for, in ticks as long as they have been since the process began
/// to log.
fn period(scene: &Scene<'_>) -> u64 {
    if !clock::source(scene.process).counts_ticks() {
        return scene.configuration.period_ns();
    }
    clock::rate(scene.process).map_or(0, |rate| rate.ticks(scene.configuration.period_ns()))
}

/// The channel is closed: writes what its handler has kept back.
pub fn close(scene: &Scene<'_>) {
    let counted = scene.channel.counted.load(Relaxed);
    if scene.channel.counter_told.swap(counted, Relaxed) != counted {
        scene.put(scene.now(), Payload::Number(counted as i64));
    }
    if let Some(noted) = scene.process.noted(scene.channel) {
        let (tid, name) = scene.whose();
        if tid == noted.tid {
            scene.push(noted.record(), &[]);
        } else {
            let [before, behind] = [(noted.tid, noted.name), (tid, name)]
                .map(|(tid, name)| thread_record(scene.now(), tid, name));
            scene.push_all(&[&before, noted.record(), &behind], &[]);
        }
        if let Some(last) = scene.process.last(scene.channel) {
            last.clear();
        }
    }
    scene.channel.seen.store(0, Relaxed);
}
