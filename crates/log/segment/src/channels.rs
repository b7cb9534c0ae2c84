// SPDX-License-Identifier: Apache-2.0
use crate::layout::{
    CHANNELS, Channel, LONGEST_NAME, MAPPED_TABLES, MOST_RINGS, NAMES, Process, Table, mode,
};
use crate::record::ChannelId;
use crate::{Configuration, Handler, RuleSettings};
use core::ops::Range;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU8, fence};

impl Process {
    /// The number of rings that ever had an owner, whatever the segment says.
    pub fn rings_used(&self) -> usize {
        (self.rings_used.load(Acquire) as usize).min(MOST_RINGS)
    }

    /// A ring has an owner. Others that share the segment may take that back.
    pub fn use_ring(&self, place: usize) {
        self.rings_used.fetch_max(place as u32 + 1, AcqRel);
    }

    /// The channels that were opened, by number.
    pub fn opened(&self) -> impl Iterator<Item = (ChannelId, &Channel)> {
        let used = self.channels_used.load(Acquire) as usize;
        let channels = (0..).zip(&self.channels[..used.min(CHANNELS)]);
        channels.filter(|(_, channel)| channel.opened.load(Acquire) != 0)
    }

    /// The bytes of a channel's name, in a range that is there whatever was written.
    pub fn name(&self, channel: &Channel) -> impl Iterator<Item = u8> {
        let start = (channel.name_at.load(Relaxed) as usize).min(NAMES);
        let length = (channel.name_length.load(Relaxed) as usize).min(LONGEST_NAME);
        self.names[start..(start + length).min(NAMES)].iter().map(|byte| byte.load(Relaxed))
    }

    /// The channel of this name, a new one if there is none; `None` where there is no place. Of
    /// a name that is too long the last byte stays, in which both channels of a span differ.
    /// For one thread of the owner at a time.
    pub fn open(&self, name: &[u8], tid: u32, asked: Option<Configuration>) -> Option<ChannelId> {
        let (start, end) = match name.split_last() {
            Some((last, before)) if name.len() > LONGEST_NAME => {
                (&before[..LONGEST_NAME - 1], core::slice::from_ref(last))
            }
            _ => (name, &[][..]),
        };
        let name = start.iter().chain(end).copied();
        let known = self.opened().find(|(_, known)| self.name(known).eq(name.clone()));
        let (id, channel) = match known {
            Some(known) => known,
            None => self.add(name, start.len() + end.len(), tid)?,
        };
        if let Some(asked) = asked {
            asked.store(&channel.asked);
        } else if Configuration::load(&channel.asked).is_none_or(|is| is.handler == Handler::Null) {
            Configuration::default().store(&channel.asked);
        }
        channel.closed.store(0, Release);
        self.changed(id);
        Some(id)
    }

    fn add(
        &self,
        name: impl Iterator<Item = u8>,
        length: usize,
        tid: u32,
    ) -> Option<(ChannelId, &Channel)> {
        let id = self.channels_used.load(Relaxed);
        let channel = self.channels.get(id as usize)?;
        let place = self.reserve(length)?;
        for (byte, letter) in self.names[place.clone()].iter().zip(name) {
            byte.store(letter, Relaxed);
        }
        channel.name_at.store(place.start as u32, Relaxed);
        channel.name_length.store(length as u32, Relaxed);
        channel.tid.store(tid, Relaxed);
        channel.opened.store(1, Release);
        self.channels_used.store(id + 1, Release);
        Some((id as ChannelId, channel))
    }

    fn reserve(&self, length: usize) -> Option<Range<usize>> {
        let start = self.names_used.load(Relaxed) as usize;
        let end = start.checked_add(length).filter(|end| *end <= NAMES)?;
        self.names_used.store(end as u32, Relaxed);
        Some(start..end)
    }

    /// Discards the channel's events from now on, whatever rules say, until it is opened again.
    pub fn close(&self, id: ChannelId) {
        let Some(channel) = self.channels.get(id as usize) else { return };
        channel.closed.store(1, Release);
        self.changed(id);
    }

    /// What is in force for a channel, in threads of which no rule speaks.
    pub fn configuration(&self, id: ChannelId) -> Configuration {
        self.rule_of_channel.get(usize::from(id)).map_or_else(Configuration::default, |rule| {
            self.configured_by(rule.load(Relaxed), &self.channels[usize::from(id)])
        })
    }

    /// The same, as long as the channel is not closed.
    pub fn unclosed(&self, id: ChannelId) -> Configuration {
        self.rule_of_channel.get(usize::from(id)).map_or_else(Configuration::default, |rule| {
            self.unless_closed(rule.load(Relaxed), &self.channels[usize::from(id)])
        })
    }

    /// What is in force for a channel in the thread that writes to the ring of this table.
    pub fn configuration_in(&self, table: &Table, id: ChannelId) -> Configuration {
        table.rule_of_channel.get(usize::from(id)).map_or_else(Configuration::default, |rule| {
            self.configured_by(rule.load(Relaxed), &self.channels[usize::from(id)])
        })
    }

    fn configured_by(&self, rule: u8, channel: &Channel) -> Configuration {
        match self.unless_closed(rule, channel) {
            open if channel.closed.load(Acquire) == 0 => open,
            closed => Configuration { handler: Handler::Null, ..closed },
        }
    }

    fn unless_closed(&self, rule: u8, channel: &Channel) -> Configuration {
        let asked = Configuration::load(&channel.asked).unwrap_or_default();
        match rule {
            0 => asked,
            rule => asked.with(RuleSettings::load(&self.rule_settings[usize::from(rule)])),
        }
    }

    /// What is in force for a channel has changed: the fast path is told, and the collector.
    pub fn changed(&self, id: ChannelId) {
        self.renew(id);
        self.changes.fetch_add(1, Release);
    }

    /// Tells the fast path of every thread what is in force.
    pub fn renew(&self, id: ChannelId) {
        let Some(threaded) = self.threaded.get(usize::from(id)) else { return };
        self.tell(&self.modes[usize::from(id)], || match threaded.load(Relaxed) {
            0 => self.mode(self.configuration(id)),
            _ if self.is_on.load(Relaxed) == 0 => mode::NULL,
            _ => mode::OUT_OF_LINE,
        });
        // A thread that begins now either sees the channel or is seen here.
        fence(SeqCst);
        for table in &self.tables[..self.rings_used().min(MAPPED_TABLES.load(SeqCst))] {
            self.renew_in(table, id);
        }
    }

    /// The same for one thread.
    pub fn renew_in(&self, table: &Table, id: ChannelId) {
        self.tell(&table.modes[usize::from(id)], || self.mode(self.configuration_in(table, id)));
    }

    /// The owner and the collector may do so at once: who is last looks again.
    fn tell(&self, place: &AtomicU8, mode: impl Fn() -> u8) {
        loop {
            let is = mode();
            place.store(is, SeqCst);
            fence(SeqCst);
            if mode() == is {
                return;
            }
        }
    }

    fn mode(&self, configuration: Configuration) -> u8 {
        match self.is_on.load(Relaxed) {
            0 => mode::NULL,
            _ => configuration.mode(self.has_inline_clock()),
        }
    }

    /// A thread begins to write to a ring: what rules say of the one before is forgotten.
    pub fn begin_table(&self, place: usize) -> &Table {
        let table = &self.tables[place];
        fence(SeqCst);
        let used = (self.channels_used.load(Acquire) as usize).min(CHANNELS);
        // Events of channel 0, which is none, are discarded.
        for id in 1..used {
            loop {
                let rule = self.rule_of_channel[id].load(Relaxed);
                table.rule_of_channel[id].store(rule, SeqCst);
                fence(SeqCst);
                if self.rule_of_channel[id].load(Relaxed) == rule {
                    break;
                }
            }
            self.renew_in(table, id as ChannelId);
        }
        table
    }

    /// Whether times are those of the unfenced tick counter, which the fast path reads.
    fn has_inline_clock(&self) -> bool {
        self.clock.load(Relaxed) == 0
    }

    /// For the child of a fork: the channels of its parent, under the same numbers.
    pub fn inherit(&self, parents: &Self) {
        for (id, channel) in parents.opened() {
            let mut name = [0; LONGEST_NAME];
            let bytes = parents.name(channel);
            let length = bytes.zip(&mut name).map(|(byte, place)| *place = byte).count();
            self.channels_used.store(u32::from(id), Relaxed);
            let asked = Configuration::load(&channel.asked);
            self.open(&name[..length], channel.tid.load(Relaxed), asked);
            if channel.closed.load(Relaxed) != 0 {
                self.close(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::boxed::Box;

    fn process() -> Box<Process> {
        // SAFETY: atomics only; zeros are the segment of a process without channels.
        unsafe { Box::<Process>::new_zeroed().assume_init() }
    }

    #[test]
    #[cfg_attr(miri, ignore = "a segment of 200 MB")]
    fn hostile_counts_are_clamped() {
        for count in [MOST_RINGS as u32 + 1, 1 << 31, u32::MAX] {
            let process = process();
            process.rings_used.store(count, Relaxed);
            process.channels_used.store(count, Relaxed);
            process.names_used.store(count, Relaxed);
            process.states_used.store(u64::MAX, Relaxed);
            let channel = &process.channels[1];
            channel.opened.store(1, Relaxed);
            channel.name_at.store(count, Relaxed);
            channel.name_length.store(count, Relaxed);
            assert_eq!(process.rings_used(), MOST_RINGS);
            assert_eq!(process.opened().count(), 1);
            assert!(process.name(channel).count() <= LONGEST_NAME);
            process.open(b"name", 7, None);
            process.changed(1);
            process.begin_table(MOST_RINGS - 1);
            for place in [0, 1, u64::MAX] {
                channel.last_at.store(place, Relaxed);
                assert!(process.noted(channel).is_none());
                let _ = process.last(channel);
            }
        }
    }
}
