// SPDX-License-Identifier: Apache-2.0
//! What is done with an event that is not simply written into the ring.

use crate::events::event::{HandlerContext, Payload, Record};
use crate::events::median::{self, Step};
use crate::events::{round_trip_end, write_through};
use crate::program::clock;
use crate::segment::ring_ownership;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use tare_log_segment::Handler;
use tare_log_segment::record::thread_record;

/// Does what is in force for the channel. The handlers are not inlined: each call takes the stack
/// of its own handler only.
pub fn handle(context: HandlerContext<'_>, payload: Payload<'_>) {
    let (a, b) = (u64::from(context.configuration.a), u64::from(context.configuration.b));
    match context.configuration.handler {
        Handler::Null => {}
        Handler::Buffered | Handler::FoxStart => context.put(context.now(), payload),
        Handler::Downsample => {
            let count = context.channel.count.fetch_add(1, Relaxed);
            if count.checked_rem(a).is_none_or(|rest| rest == 0) {
                context.put(context.now(), payload);
            }
        }
        Handler::XOfY => {
            if payload.number() as u64 & b.saturating_sub(1) < a {
                context.put(context.now(), payload);
            }
        }
        Handler::FoxEnd => round_trip_end::log(&context, payload),
        Handler::Id => write_through::log(&context, payload),
        Handler::FirstLast => first_last(&context, payload),
        Handler::Median => median(&context, payload),
        Handler::PeriodicCounter => periodic_counter(&context),
        Handler::FastPeriodicCounter => {
            context.channel.counted.fetch_add(1, Relaxed);
        }
    }
}

#[inline(never)]
fn first_last(context: &HandlerContext<'_>, payload: Payload<'_>) {
    let now = context.now();
    let before = context.channel.seen.fetch_add(1, Relaxed);
    if before == 0 {
        return context.put(now, payload);
    }
    let record = Record::new(now, context.id, payload);
    let is_noted = context
        .process
        .last(context.channel)
        .is_some_and(|last| last.note(before, context.whose(), record.words(), record.bytes));
    if !is_noted {
        context.lose(now);
    }
}

#[inline(never)]
fn median(context: &HandlerContext<'_>, payload: Payload<'_>) {
    let now = context.now();
    let tid = context.writer.ring().map_or(0, |ring| ring_ownership::tid(ring.owner.load(Relaxed)));
    let event = (now, payload.number());
    match median::add(context.region, context.id, context.configuration.a, event, tid) {
        Step::Waits => {}
        Step::Complete((ticks, number)) => context.put(ticks, Payload::Number(number)),
        Step::Lost => context.lose(now),
    }
}

#[inline(never)]
fn periodic_counter(context: &HandlerContext<'_>) {
    let channel = context.channel;
    let count = 1 + channel.counted.fetch_add(1, Relaxed);
    let now = context.now();
    let began = channel.period_began.load(Acquire);
    let is_over = now.wrapping_sub(began) as i64 >= channel.period_ticks.load(Relaxed) as i64;
    if began != 0 && !is_over {
        return;
    }
    // Of several threads one begins the next period.
    if channel.period_began.compare_exchange(began, now, AcqRel, Relaxed).is_err() {
        return;
    }
    channel.period_ticks.store(period(context), Relaxed);
    if began != 0 {
        channel.counter_told.store(count, Relaxed);
        context.put(now, Payload::Number(count as i64));
    }
}

/// The period that is asked for, in ticks as long as they have been since the process began
/// to log.
fn period(context: &HandlerContext<'_>) -> u64 {
    if !clock::source(context.process).counts_ticks() {
        return context.configuration.period_ns();
    }
    clock::rate(context.process).map_or(0, |rate| rate.ticks(context.configuration.period_ns()))
}

/// The channel is closed: writes what its handler has kept back.
pub fn close(context: &HandlerContext<'_>) {
    let counted = context.channel.counted.load(Relaxed);
    if context.channel.counter_told.swap(counted, Relaxed) != counted {
        context.put(context.now(), Payload::Number(counted as i64));
    }
    if let Some(noted) = context.process.noted(context.channel) {
        let (tid, name) = context.whose();
        if tid == noted.tid {
            context.push(noted.record(), &[]);
        } else {
            let [before, behind] = [(noted.tid, noted.name), (tid, name)]
                .map(|(tid, name)| thread_record(context.now(), tid, name));
            context.push_all(&[&before, noted.record(), &behind], &[]);
        }
        if let Some(last) = context.process.last(context.channel) {
            last.clear();
        }
    }
    context.channel.seen.store(0, Relaxed);
}
