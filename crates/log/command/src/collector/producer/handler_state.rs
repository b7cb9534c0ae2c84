// SPDX-License-Identifier: Apache-2.0
//! What handlers keep in a program's segment, as events: numbers of counters and last events.

use super::event_clock::EventClock;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::{Duration, Instant};
use tare_log_segment::record::{number_tag, short_tag, thread_record};
use tare_log_segment::{Channel, ChannelId, Configuration, Handler, Noted, Process};

/// Counters that are read once a period.
#[derive(Default)]
pub struct PeriodicCounters(Vec<Counter>);

struct Counter {
    id: ChannelId,
    period: Duration,
    next: Instant,
}

impl PeriodicCounters {
    /// What is in force for a channel is this now.
    pub fn learn(&mut self, id: ChannelId, configuration: Configuration) {
        self.0.retain(|counter| counter.id != id);
        if configuration.handler == Handler::FastPeriodicCounter {
            let period = Duration::from_nanos(configuration.period_ns().max(1_000));
            self.0.push(Counter { id, period, next: Instant::now() + period });
        }
    }

    /// Bytes of memory that they have.
    pub fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Counter>()
    }

    /// When the next one is to be read.
    pub fn next(&self) -> Option<Instant> {
        self.0.iter().map(|counter| counter.next).min()
    }

    /// Appends the numbers of those that it is time to read to `words`, where they are others
    /// than before. They count as told once the words are in the file, see `acknowledge`.
    pub fn read(
        &mut self,
        process: &Process,
        event_clock: EventClock,
        words: &mut Vec<u64>,
    ) -> Vec<(ChannelId, u64)> {
        let now = Instant::now();
        let mut told = Vec::new();
        for counter in self.0.iter_mut().filter(|counter| counter.next <= now) {
            // Where the collector was late, periods are left out, not made up for.
            let late = (now - counter.next).as_nanos() / counter.period.as_nanos();
            counter.next += counter.period * (late as u32 + 1);
            told.extend(count(process, counter.id, event_clock, words));
        }
        told
    }
}

/// The numbers are in the file.
pub fn acknowledge(process: &Process, told: &[(ChannelId, u64)]) {
    for (id, count) in told {
        process.channels[usize::from(*id)].counter_told.store(*count, Relaxed);
    }
}

/// Appends the channel's number to `words`, if it is another than before.
fn count(
    process: &Process,
    id: ChannelId,
    event_clock: EventClock,
    words: &mut Vec<u64>,
) -> Option<(ChannelId, u64)> {
    let channel: &Channel = process.channels.get(usize::from(id))?;
    let counted = channel.counted.load(Acquire);
    if counted == channel.counter_told.load(Relaxed) {
        return None;
    }
    words.push(event_clock.now());
    match short_tag(id, counted as i64) {
        Some(tag) => words.push(tag),
        None => words.extend([number_tag(id), counted, 0]),
    }
    Some((id, counted))
}

/// Everything that is left when a process has ended.
pub fn take_rest(process: &Process, event_clock: EventClock, words: &mut Vec<u64>) {
    for (id, channel) in process.opened() {
        count(process, id, event_clock, words);
        if let Some(noted) = process.noted(channel) {
            note(&noted, words);
        }
    }
}

fn note(noted: &Noted, words: &mut Vec<u64>) {
    if noted.record().is_empty() {
        return;
    }
    words.extend(thread_record(noted.record()[0], noted.tid, noted.name));
    words.extend(noted.record());
}
