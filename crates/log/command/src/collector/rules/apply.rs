// SPDX-License-Identifier: Apache-2.0
//! Carries rules into a program: they are matched here, and the program finds the result in its
//! segment.

use super::parse::Rules;
use std::collections::HashMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;
use tare_log_segment::layout::{Process, RULE_SETTINGS, RingHead, rules};
use tare_log_segment::{Channel, ChannelId, Configuration, RuleSettings};

/// What was carried into one program.
pub struct AppliedRules {
    /// The names that a rule can mean the program by.
    names: Vec<String>,
    generation: Option<u64>,
    changes: u32,
    /// What is new and not all carried over yet.
    pass: Option<Pass>,
    know_threads: bool,
    /// Places in the segment: what stands there.
    places: [RuleSettings; RULE_SETTINGS],
    /// By channel: rules that speak of it, in their order.
    of_channels: HashMap<ChannelId, Vec<usize>>,
    /// The number of these rules.
    matches: usize,
}

/// A program may have thousands of channels and of threads: they are gone through in pieces.
struct Pass {
    changes: u32,
    /// Those before these places are done.
    channel: usize,
    ring: usize,
}

impl AppliedRules {
    pub fn new(names: Vec<String>) -> Self {
        Self {
            names,
            generation: None,
            changes: 0,
            pass: None,
            know_threads: false,
            places: [RuleSettings::default(); RULE_SETTINGS],
            of_channels: HashMap::new(),
            matches: 0,
        }
    }

    /// Bytes of memory that grow with the program's channels.
    pub fn bytes(&self) -> usize {
        self.of_channels.capacity() * size_of::<(ChannelId, Vec<usize>)>()
            + self.matches * size_of::<usize>()
    }

    /// Carries over what is new until then: rules, of which these are the `generation`th, channels
    /// and threads. Says whether all of something new is.
    pub fn apply(
        &mut self,
        rules: &Rules,
        generation: u64,
        process: &Process,
        rings: &[(usize, &RingHead)],
        until: Instant,
    ) -> bool {
        let is_other = self.generation != Some(generation);
        if is_other {
            self.generation = Some(generation);
            self.know_threads = rules.know_threads();
            self.store_settings(rules, process);
            self.of_channels.clear();
            self.matches = 0;
            let any = if rules.rules.is_empty() { 0 } else { rules::ANY };
            let of_threads = if self.know_threads { rules::OF_THREADS } else { 0 };
            process.rules.store(any | of_threads, Release);
        }
        let changes = process.changes.load(Acquire);
        if is_other || self.pass.is_none() && changes != self.changes {
            self.pass = Some(Pass { changes, channel: 0, ring: 0 });
        }
        let mut is_changed = false;
        if let Some(mut pass) = self.pass.take() {
            if !self.go_on(&mut pass, rules, process, rings, until) {
                self.pass = Some(pass);
                return false;
            }
            self.changes = pass.changes;
            is_changed = true;
        }
        for (place, ring) in rings.iter().filter(|_| self.know_threads) {
            let begun = ring.begun.load(Acquire);
            if ring.ruled_thread.load(Relaxed) != begun {
                self.match_thread(rules, process, *place, ring);
                ring.ruled_thread.store(begun, Release);
                is_changed = true;
            }
        }
        process.ruled_changes.store(self.changes, Release);
        is_changed
    }

    /// Whether it is at its end.
    fn go_on(
        &mut self,
        pass: &mut Pass,
        rules: &Rules,
        process: &Process,
        rings: &[(usize, &RingHead)],
        until: Instant,
    ) -> bool {
        let Pass { channel: first, ring: first_ring, .. } = *pass;
        for (id, channel) in process.opened().skip_while(|(id, _)| usize::from(*id) < first) {
            self.match_channel(rules, process, id, channel);
            pass.channel = usize::from(id) + 1;
            if Instant::now() > until {
                return false;
            }
        }
        for (place, ring) in rings.iter().skip_while(|(place, _)| *place < first_ring) {
            let begun = ring.begun.load(Acquire);
            self.match_thread(rules, process, *place, ring);
            ring.ruled_thread.store(begun, Release);
            pass.ring = place + 1;
            if Instant::now() > until {
                return false;
            }
        }
        true
    }

    /// Whether a rule asks for just this, whatever the program has made of its segment.
    pub fn asks_for(&self, is: &Configuration) -> bool {
        self.places.iter().any(|settings| settings.handler == Some((is.handler, is.a, is.b)))
    }

    /// Writes what the rules ask for into places that none of them needs as they are.
    fn store_settings(&mut self, rules: &Rules, process: &Process) {
        let all_settings: Vec<RuleSettings> =
            rules.rules.iter().map(|rule| rule.settings).collect();
        for settings in &all_settings {
            if self.places.contains(settings) {
                continue;
            }
            let is_free = |place: &RuleSettings| {
                *place == RuleSettings::default() || !all_settings.contains(place)
            };
            // There is one: there are fewer rules than places.
            let never_used =
                self.places[1..].iter().position(|place| *place == RuleSettings::default());
            let free = never_used.or_else(|| self.places[1..].iter().position(is_free));
            let Some(place) = free.map(|place| place + 1) else { continue };
            self.places[place] = *settings;
            settings.store(&process.rule_settings[place]);
        }
    }

    fn match_channel(
        &mut self,
        rules: &Rules,
        process: &Process,
        id: ChannelId,
        channel: &Channel,
    ) {
        let (names, matches) = (&self.names, &mut self.matches);
        let its = self.of_channels.entry(id).or_insert_with(|| {
            let name: Vec<u8> = process.name(channel).collect();
            let name = String::from_utf8_lossy(&name);
            let all = rules.rules.iter().enumerate();
            let its = all.filter(|(_, rule)| rule.is_of(&name, names)).map(|(place, _)| place);
            let its: Vec<_> = its.collect();
            *matches += its.capacity();
            its
        });
        let first = its.iter().find(|place| rules.rules[**place].is_of_thread(None));
        let place = place_of(&self.places, first.map(|place| rules.rules[*place].settings));
        process.rule_of_channel[usize::from(id)].store(place, Release);
        let is_threaded = its.iter().any(|place| rules.rules[*place].knows_threads());
        process.threaded[usize::from(id)].store(is_threaded.into(), Release);
        process.renew(id);
    }

    fn match_thread(&self, rules: &Rules, process: &Process, place: usize, ring: &RingHead) {
        let name = ring.owner_name.each_ref().map(|half| half.load(Relaxed).to_le_bytes());
        let name = name.as_flattened();
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        let tid = ring.owner.load(Relaxed) & !(1 << 31);
        let thread = [String::from_utf8_lossy(&name[..end]).into_owned(), tid.to_string()];
        let of_thread: Vec<bool> =
            rules.rules.iter().map(|rule| rule.is_of_thread(Some(&thread))).collect();
        let table = &process.tables[place];
        for (id, its) in &self.of_channels {
            let first = its.iter().find(|place| of_thread[**place]);
            let place = place_of(&self.places, first.map(|place| rules.rules[*place].settings));
            table.rule_of_channel[usize::from(*id)].store(place, Release);
            process.renew_in(table, *id);
        }
    }
}

/// 0 for no settings.
fn place_of(places: &[RuleSettings; RULE_SETTINGS], settings: Option<RuleSettings>) -> u8 {
    settings.and_then(|settings| places.iter().position(|place| *place == settings)).unwrap_or(0)
        as u8
}
