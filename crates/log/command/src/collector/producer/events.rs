// SPDX-License-Identifier: Apache-2.0
//! What is written of a program: its events, and how it left.

use super::handler_state;
use super::ring::BATCH;
use super::round_trips;
use super::{Producer, process};
use crate::collector::compressor::{Compressed, Compressor};
use crate::collector::event_counts::EventCounts;
use crate::collector::quotas::name_quota::NameQuota;
use crate::log_file::LogFile;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use tare_log_file::{End, Header, How, Kind, Packed};
use tare_log_segment::layout::{MOST_RINGS, state};
use tare_log_segment::probe::ANSWERS;
use tare_log_segment::record::whole;

impl Producer {
    /// Writes a batch of this producer, and frees its words.
    pub fn write(&mut self, log_file: &mut LogFile, compressed: &Compressed) -> io::Result<()> {
        let Compressed { batch, packed } = compressed;
        let number = self.number;
        let Some(ring) = self.ring(batch.ring) else { return Ok(()) };
        let before = ring.told();
        let told = packed.summary.lost.map_or(before, |lost| lost.max(before));
        let to = batch.from.wrapping_add(batch.words.len() as u64);
        ring.writing(to, told);
        ring.begin(batch.thread);
        let header = ring.header(number, batch.ring, packed);
        log_file.block(Header { from: batch.from, to, ..header }, &packed.stored)?;
        ring.free(batch.from, &batch.words, told, &packed.summary);
        self.counts.events += u64::from(packed.summary.events);
        self.counts.lost = self.counts.lost.saturating_add(told - before);
        self.event_clock.learn(packed.summary.last_ticks);
        Ok(())
    }

    /// Writes the numbers of counters that it is time for.
    pub fn count(&mut self, log_file: &mut LogFile, compressor: &mut Compressor) -> io::Result<()> {
        let mut words = Vec::new();
        let told = self.counters.read(process(&self.segment), self.event_clock, &mut words);
        let answers = self.round_trips.read(&mut words);
        self.write_handler_state(log_file, compressor, &words)?;
        handler_state::acknowledge(self.process(), &told);
        self.round_trips.acknowledge(self.process(), &answers);
        Ok(())
    }

    /// Writes events that stood in no ring.
    fn write_handler_state(
        &mut self,
        log_file: &mut LogFile,
        compressor: &mut Compressor,
        words: &[u64],
    ) -> io::Result<()> {
        let mut rest = words;
        while !rest.is_empty() {
            let piece = &rest[..rest.len().min(BATCH)];
            let (piece, after) = rest.split_at(match whole(piece) {
                0 => piece.len(),
                whole => whole,
            });
            let Packed { summary, codec, raw, stored } = compressor.pack(piece, &self.codecs)?;
            let header = Header {
                codec,
                raw: raw as u32,
                ring: MOST_RINGS as u32,
                tid: self.segment.header().owner_pid,
                events: summary.events,
                first_ticks: summary.first_ticks,
                last_ticks: summary.last_ticks,
                ..Header::of(Kind::Events, self.number)
            };
            log_file.block(header, &stored)?;
            self.counts.events += u64::from(summary.events);
            rest = after;
        }
        Ok(())
    }

    /// Writes what was lost after the last event of each ring, which no record tells of.
    fn last_losses(
        &mut self,
        log_file: &mut LogFile,
        compressor: &mut Compressor,
    ) -> io::Result<()> {
        for (place, ring) in self.rings.iter_mut().enumerate() {
            let Some(ring) = ring else { continue };
            let Some((from, record)) = ring.last_loss() else { continue };
            let before = ring.told();
            let packed = compressor.pack(&record, &self.codecs)?;
            let told = packed.summary.lost.map_or(before, |lost| lost.max(before));
            ring.writing(from, told);
            let header = ring.header(self.number, place, &packed);
            log_file.block(Header { from, to: from, ..header }, &packed.stored)?;
            ring.free(from, &[], told, &packed.summary);
            self.counts.lost = self.counts.lost.saturating_add(told - before);
        }
        Ok(())
    }

    /// The last that is written of a process, whose events are all in the file; how it left,
    /// where that does not stand in the segment.
    pub fn end(
        &mut self,
        log_file: &mut LogFile,
        compressor: &mut Compressor,
        how: Option<How>,
        name_quota: &mut NameQuota,
    ) -> io::Result<()> {
        // Of one that goes on, events come no longer into this file.
        self.process().withdraw();
        self.round_trips.end();
        self.count(log_file, compressor)?;
        self.last_losses(log_file, compressor)?;
        if how != Some(How::Left) && !self.has_rest {
            let mut words = Vec::new();
            handler_state::take_rest(self.process(), self.event_clock, &mut words);
            self.write_handler_state(log_file, compressor, &words)?;
            self.has_rest = true;
        }
        let process = self.process();
        let how = how.unwrap_or(match process.state.load(Acquire) {
            state::FINISHED => How::Finished,
            _ => How::Ended,
        });
        let of_channels = process.opened().map(|(id, channel)| (id, channel.lost.load(Relaxed)));
        // To one that goes on, answers may come.
        let unanswered = process.opened().filter(|_| how != How::Left);
        let unanswered =
            unanswered.map(|(id, _)| (id | ANSWERS, round_trips::unanswered(process, id)));
        let unanswered: Vec<_> = unanswered.filter(|(_, count)| *count > 0).collect();
        let lost_by_channel: BTreeMap<_, _> =
            of_channels.filter(|(_, lost)| *lost > 0).chain(unanswered.iter().copied()).collect();
        // Where the disk is full this comes once more.
        self.counts.lost -= self.counts.unanswered;
        let counts = unanswered.iter().map(|(_, count)| *count);
        self.counts.unanswered = counts.fold(0, u64::saturating_add);
        self.counts.lost = self.counts.lost.saturating_add(self.counts.unanswered);
        let EventCounts { events, lost, unserved, deferred, .. } = self.event_counts();
        let end = End { how, events, lost, unserved, deferred, lost_by_channel };
        let mut text = serde_json::to_vec(&end).unwrap_or_default();
        if !name_quota.has(text.len()) {
            name_quota.left_out += end.lost_by_channel.len();
            let end = End { lost_by_channel: BTreeMap::new(), ..end };
            text = serde_json::to_vec(&end).unwrap_or_default();
        }
        name_quota.take(text.len());
        log_file.metadata(Kind::End, self.number, &text)
    }
}
