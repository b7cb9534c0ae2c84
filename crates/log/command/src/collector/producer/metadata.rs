// SPDX-License-Identifier: Apache-2.0
//! What the file has to know of a program before its events.

use super::round_trips;
use super::{Producer, process};
use crate::collector::quotas::name_quota::NameQuota;
use crate::log_file::LogFile;
use crate::procfs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;
use tare_log_file::{Channels, Codecs, Kind, OpenedChannel, ProcessInfo};
use tare_log_segment::probe::ANSWERS;
use tare_log_segment::{ChannelId, Configuration, Handler, Policy};

/// Channels in one block: with the longest names less than a megabyte.
const TOGETHER: usize = 64;

impl Producer {
    fn about(&self) -> ProcessInfo {
        let header = self.segment.header();
        ProcessInfo {
            pid: header.owner_pid,
            start: header.owner_start,
            began_ticks: self.process().first.ticks.load(Relaxed),
            host: procfs::host(),
            command: procfs::command(self.pid),
            clock: self.event_clock.source.name().to_owned(),
            boot: self.boot,
            ahead_ns: self.event_clock.ahead_ns,
        }
    }

    /// Writes what the process is, once, and the channels that were opened or changed; what is left
    /// at `until`, or has no room, comes with the next call.
    pub fn write_metadata(
        &mut self,
        log_file: &mut LogFile,
        until: Option<Instant>,
        name_quota: &mut NameQuota,
    ) -> io::Result<()> {
        if !self.is_named {
            let mut about = self.about();
            let mut text = serde_json::to_vec(&about).unwrap_or_default();
            if !name_quota.has(text.len()) {
                about.command.clear();
                text = serde_json::to_vec(&about).unwrap_or_default();
                name_quota.left_out += 1;
            }
            name_quota.take(text.len());
            log_file.metadata(Kind::Process, self.number, &text)?;
            // However short the file stays, or is cut off, its events have a time of day.
            log_file.clock()?;
            self.is_named = true;
            if let Some(file) = log_file.identity() {
                self.process().lend(self.number, file);
            }
        }
        self.round_trips.retry(process(&self.segment), self.event_clock);
        let changes = self.process().changes.load(Acquire);
        if self.changes == Some(changes) {
            return Ok(());
        }
        let mut is_all = true;
        let ids: Vec<_> = self.process().opened().map(|(id, _)| id).collect();
        for (number, together) in ids.chunks(TOGETHER).enumerate() {
            if !self.write_channels(together, log_file, name_quota)? {
                name_quota.left_out += self.news(&ids[number * TOGETHER..]).count();
                is_all = false;
                break;
            }
            if until.is_some_and(|until| Instant::now() > until) {
                is_all = false;
                break;
            }
        }
        let asked = self.known.iter().filter_map(|(id, of)| Some((*id, of.codec?)));
        self.codecs = Arc::new(Codecs::new(self.codecs.usual, asked));
        if is_all {
            self.changes = Some(changes);
            self.process().told_changes.store(changes, Release);
        }
        Ok(())
    }

    /// Those of these channels that the file does not know as they are now.
    fn news(&self, ids: &[ChannelId]) -> impl Iterator<Item = (ChannelId, Configuration)> {
        let now = ids.iter().map(|id| (*id, self.process().configuration(*id)));
        now.filter(|(id, configuration)| self.known.get(id) != Some(configuration))
    }

    /// In one block; whether there was room.
    fn write_channels(
        &mut self,
        ids: &[ChannelId],
        log_file: &mut LogFile,
        name_quota: &mut NameQuota,
    ) -> io::Result<bool> {
        let known: Vec<_> = self.news(ids).collect();
        let mut opened = Vec::new();
        let process = process(&self.segment);
        for (id, configuration) in known.iter().copied() {
            let channel = &process.channels[usize::from(id)];
            let name: Vec<u8> = process.name(channel).collect();
            // Who reads the file asks what its events are, also when it takes no more.
            let handler = process.unclosed(id).handler;
            let named = |id, name| OpenedChannel {
                id,
                name,
                tid: channel.tid.load(Relaxed),
                handler: name_of(Handler::ALL, handler),
                policy: name_of(Policy::ALL, configuration.policy),
            };
            let name = String::from_utf8_lossy(&name).into_owned();
            let answers = round_trips::name(&name, configuration.handler);
            opened.extend(answers.map(|name| named(id | ANSWERS, name)));
            opened.push(named(id, name));
        }
        if !opened.is_empty() {
            let text = serde_json::to_vec(&Channels { channels: opened }).unwrap_or_default();
            if !name_quota.has(text.len()) {
                return Ok(false);
            }
            name_quota.take(text.len());
            log_file.metadata(Kind::Channels, self.number, &text)?;
        }
        for (id, configuration) in known {
            self.counters.learn(id, configuration);
            // Root opens no sockets because a program of somebody else says so.
            if !self.is_silent && (self.is_own || self.applied_rules.asks_for(&configuration)) {
                self.round_trips.learn(process, id, configuration, self.event_clock);
            } else {
                self.round_trips.forget(process, id);
            }
            self.known.insert(id, configuration);
        }
        Ok(true)
    }
}

fn name_of<T: PartialEq>(all: &[(&str, T)], value: T) -> String {
    all.iter().find(|(_, other)| *other == value).map_or("", |(name, _)| name).to_owned()
}
