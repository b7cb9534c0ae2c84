// SPDX-License-Identifier: Apache-2.0
//! What is written of a program: its events, and how it left.

use super::fox;
use super::kept;
use super::ring::BATCH;
use super::{Target, process};
use crate::collector::press::{Press, Pressed};
use crate::collector::quotas::naming::Room;
use crate::collector::totals::Totals;
use crate::output::Output;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use tare_log_file::{End, Header, How, Kind, Packed};
use tare_log_segment::layout::{MOST_RINGS, state};
use tare_log_segment::probe::ANSWERS;
use tare_log_segment::record::whole;

impl Target {
    /// Writes a batch of this target, and frees its words.
    pub fn write(&mut self, output: &mut Output, pressed: &Pressed) -> io::Result<()> {
        let Pressed { batch, packed } = pressed;
        let number = self.number;
        let Some(ring) = self.ring(batch.ring) else { return Ok(()) };
        let before = ring.told();
        let told = packed.summary.lost.map_or(before, |lost| lost.max(before));
        let to = batch.from.wrapping_add(batch.words.len() as u64);
        ring.writing(to, told);
        ring.begin(batch.thread);
        let header = ring.header(number, batch.ring, packed);
        output.block(Header { from: batch.from, to, ..header }, &packed.stored)?;
        ring.free(batch.from, &batch.words, told, &packed.summary);
        self.totals.events += u64::from(packed.summary.events);
        self.totals.lost = self.totals.lost.saturating_add(told - before);
        self.timer.learn(packed.summary.last_ticks);
        Ok(())
    }

    /// Writes the numbers of counters that it is time for.
    pub fn count(&mut self, output: &mut Output, press: &mut Press) -> io::Result<()> {
        let mut words = Vec::new();
        let told = self.counters.read(process(&self.segment), self.timer, &mut words);
        let answers = self.foxes.read(&mut words);
        self.write_kept(output, press, &words)?;
        kept::tell(self.process(), &told);
        self.foxes.tell(self.process(), &answers);
        Ok(())
    }

    /// Writes events that stood in no ring.
    fn write_kept(
        &mut self,
        output: &mut Output,
        press: &mut Press,
        words: &[u64],
    ) -> io::Result<()> {
        let mut rest = words;
        while !rest.is_empty() {
            let piece = &rest[..rest.len().min(BATCH)];
            let (piece, after) = rest.split_at(match whole(piece) {
                0 => piece.len(),
                whole => whole,
            });
            let Packed { summary, codec, raw, stored } = press.pack(piece, &self.codecs)?;
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
            output.block(header, &stored)?;
            self.totals.events += u64::from(summary.events);
            rest = after;
        }
        Ok(())
    }

    /// Writes what was lost after the last event of each ring, which no record tells of.
    fn last_losses(&mut self, output: &mut Output, press: &mut Press) -> io::Result<()> {
        for (place, ring) in self.rings.iter_mut().enumerate() {
            let Some(ring) = ring else { continue };
            let Some((from, record)) = ring.last_loss() else { continue };
            let before = ring.told();
            let packed = press.pack(&record, &self.codecs)?;
            let told = packed.summary.lost.map_or(before, |lost| lost.max(before));
            ring.writing(from, told);
            let header = ring.header(self.number, place, &packed);
            output.block(Header { from, to: from, ..header }, &packed.stored)?;
            ring.free(from, &[], told, &packed.summary);
            self.totals.lost = self.totals.lost.saturating_add(told - before);
        }
        Ok(())
    }

    /// The last that is written of a process, whose events are all in the file; how it left,
    /// where that does not stand in the segment.
    pub fn end(
        &mut self,
        output: &mut Output,
        press: &mut Press,
        how: Option<How>,
        room: &mut Room,
    ) -> io::Result<()> {
        // Of one that goes on, events come no longer into this file.
        self.process().withdraw();
        self.foxes.end();
        self.count(output, press)?;
        self.last_losses(output, press)?;
        if how != Some(How::Left) && !self.has_rest {
            let mut words = Vec::new();
            kept::rest(self.process(), self.timer, &mut words);
            self.write_kept(output, press, &words)?;
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
        let unanswered = unanswered.map(|(id, _)| (id | ANSWERS, fox::unanswered(process, id)));
        let unanswered: Vec<_> = unanswered.filter(|(_, count)| *count > 0).collect();
        let lost_by_channel: BTreeMap<_, _> =
            of_channels.filter(|(_, lost)| *lost > 0).chain(unanswered.iter().copied()).collect();
        // Where the disk is full this comes once more.
        self.totals.lost -= self.totals.unanswered;
        let counts = unanswered.iter().map(|(_, count)| *count);
        self.totals.unanswered = counts.fold(0, u64::saturating_add);
        self.totals.lost = self.totals.lost.saturating_add(self.totals.unanswered);
        let Totals { events, lost, unserved, deferred, .. } = self.totals();
        let end = End { how, events, lost, unserved, deferred, lost_by_channel };
        let mut text = serde_json::to_vec(&end).unwrap_or_default();
        if !room.has(text.len()) {
            room.left_out += end.lost_by_channel.len();
            let end = End { lost_by_channel: BTreeMap::new(), ..end };
            text = serde_json::to_vec(&end).unwrap_or_default();
        }
        room.take(text.len());
        output.note(Kind::End, self.number, &text)
    }
}
