// SPDX-License-Identifier: Apache-2.0
//! The collector: what it does in each turn, and how long it sleeps between them.

mod accept;
mod housekeeping;
mod shutdown;

use super::compressor::Compressor;
use super::event_counts::EventCounts;
use super::poll_thread::PollThread;
use super::producer::Producer;
use crate::collector::accept::acceptor::Acceptor;
use crate::collector::accept::request::Client;
use crate::collector::accept::takeover::SegmentSearch;
use crate::collector::quotas::name_quota::{self, NameQuota, NameQuotas};
use crate::collector::quotas::resource_quota::{ResourceQuotas, Resources};
use crate::collector::quotas::time_share::TimeShares;
use crate::collector::rules::rules_file::RulesFile;
use crate::log_file::LogFile;
use crate::procfs;
use std::collections::VecDeque;
use std::io;
use std::mem;
use std::time::{Duration, Instant};
use tare_command::{CostsFile, UserWarnings, say};
use tare_log_file::How;

/// The longest sleep. Programs wake the collector when a ring is an eighth full; what is less is
/// looked for so often.
const LONGEST: Duration = Duration::from_millis(100);

/// The shortest sleep for programs that cannot wake the collector, because a seccomp filter forbids
/// it: their bell is found rung at the end of a sleep. It doubles while that is not so.
const POLL: Duration = Duration::from_millis(1);

/// While other threads compress.
const SHORT: Duration = Duration::from_micros(250);

/// How full a ring is at which there is no sleep: it has been rung for already.
const URGENT: f64 = 0.125;

/// Once, however many programs there are.
const FALLBACK: &str = "a program has no reliable tick counter, so it reads times with \
                        clock_gettime, which takes longer";

/// Of a turn, for programs whose collector has died.
const SEARCH: Duration = Duration::from_millis(10);

/// After the disk was full.
const RETRY: Duration = Duration::from_millis(500);

/// Serves all producers, one turn at a time.
pub struct Collector {
    acceptor: Acceptor,
    log_file: LogFile,
    compressor: Compressor,
    rules: RulesFile,
    user_warnings: UserWarnings,
    producers: Vec<Producer>,
    /// Programs that wait because their users have spent their shares of the turn.
    clients: VecDeque<Client>,
    /// For programs whose collector has died, until it has seen all.
    search: Option<SegmentSearch>,
    resource_quotas: ResourceQuotas,
    time_shares: TimeShares,
    name_quotas: NameQuotas,
    turns: u64,
    /// When the clocks were read last, and how long after that they are read again.
    clocks: (Instant, Duration),
    /// When a program is to be looked at next, and the place of the one before.
    looks: (Instant, usize),
    /// The longest sleep at the moment.
    poll: Duration,
    has_told_of_fallback: bool,
    stuck: Option<Instant>,
    ended: EventCounts,
    costs: Option<CostsFile>,
    /// The last turn had nothing to copy.
    is_idle: bool,
    has_told_of_socket: bool,
    pub programs: u64,
    /// Those that went on when this collector ended.
    pub left: u64,
    /// Events of programs that have ended, which are in no file.
    pub unwritten: u64,
}

impl Collector {
    pub fn new(
        acceptor: Acceptor,
        log_file: LogFile,
        compressor: Compressor,
        rules: RulesFile,
    ) -> Self {
        Self {
            acceptor,
            log_file,
            compressor,
            rules,
            user_warnings: UserWarnings::default(),
            producers: Vec::new(),
            clients: VecDeque::new(),
            search: None,
            resource_quotas: ResourceQuotas::of_this_process(),
            time_shares: TimeShares::default(),
            name_quotas: NameQuotas::default(),
            turns: 0,
            clocks: (Instant::now(), Duration::ZERO),
            looks: (Instant::now(), 0),
            poll: LONGEST,
            has_told_of_fallback: false,
            stuck: None,
            ended: EventCounts::default(),
            costs: None,
            is_idle: false,
            has_told_of_socket: false,
            programs: 0,
            left: 0,
            unwritten: 0,
        }
    }

    /// Takes over, from the next turn on, the programs whose collector at this socket has died.
    pub fn search(&mut self) {
        self.search = Some(SegmentSearch::begin(self.acceptor.paths()));
    }

    pub fn acceptor(&self) -> &Acceptor {
        &self.acceptor
    }

    pub fn rules(&self) -> &RulesFile {
        &self.rules
    }

    /// Of all programs, also of those that go on.
    pub fn event_counts(&self) -> EventCounts {
        let all = self
            .producers
            .iter()
            .fold(self.ended, |sum, producer| sum.with(&producer.event_counts()));
        EventCounts { events: all.events.saturating_sub(self.unwritten), ..all }
    }

    pub fn bytes(&self) -> u64 {
        self.log_file.bytes()
    }

    /// The file of events, as errors name it.
    pub fn file(&self) -> String {
        self.log_file.path().display().to_string()
    }

    /// Everything once.
    pub fn turn(&mut self) {
        self.time_shares.renew();
        self.accept_clients();
        self.take_over(SEARCH);
        let is_idle = self.is_idle;
        self.costs(|file, collector| file.turn(is_idle, |vacant| collector.cost_table(vacant)));
        self.rules.renew();
        if self.stuck.is_some_and(|since| since.elapsed() < RETRY) {
            return;
        }
        match self.move_events() {
            Ok(batches) => {
                self.is_idle = batches == 0;
                if self.stuck.take().is_some() {
                    say(format_args!("{}: can be written again", self.file()));
                }
            }
            Err(error) => {
                if self.stuck.is_none() {
                    say(format_args!(
                        "{}: cannot be written: {error}; programs keep their events in memory \
                         while there is room",
                        self.file()
                    ));
                }
                self.stuck = Some(Instant::now());
            }
        }
    }

    /// Until there is something to do.
    pub fn sleep(&mut self, poll_thread: &PollThread) {
        let is_stuck = self.stuck.is_some();
        let busy = if self.compressor.is_empty() || is_stuck { self.poll } else { SHORT };
        let due = self.producers.iter().filter_map(Producer::due).chain([self.clocks_due()]).min();
        let due = due.filter(|_| !is_stuck);
        let due = due.map_or(LONGEST, |due| due.saturating_duration_since(Instant::now()));
        let bells: Vec<_> = self.producers.iter().map(Producer::bell).collect();
        let is_full =
            || self.producers.iter().any(|one| one.fullness() >= URGENT || one.has_batch());
        let is_late =
            || !self.clients.is_empty() || self.search.is_some() || !is_stuck && is_full();
        let (begin, most) = (Instant::now(), busy.min(due));
        let is_rung = poll_thread.sleep(&bells, most, is_late);
        let nobody_was_woken = is_rung && begin.elapsed() >= most;
        self.poll = if nobody_was_woken { POLL } else { (2 * self.poll).min(LONGEST) };
    }

    /// Serves the programs, those first that have waited longest, until the share of their user
    /// ends. Says how many batches it has taken.
    fn move_events(&mut self) -> io::Result<usize> {
        self.read_clocks()?;
        self.look();
        self.remove_ended();
        self.turns += 1;
        let mut order: Vec<usize> = (0..self.producers.len()).collect();
        order.sort_by_key(|place| self.producers[*place].turn);
        let mut batches = 0;
        for place in order {
            let (user, begin) = (self.producers[place].user, Instant::now());
            let Some(until) = self.time_shares.end(user, begin) else { continue };
            self.producers[place].turn = self.turns;
            let taken = self.serve(place, until);
            self.time_shares.spend(user, begin);
            batches += taken?;
        }
        self.remove_ended();
        self.write(false)?;
        Ok(batches)
    }

    fn serve(&mut self, place: usize, until: Instant) -> io::Result<usize> {
        let before = self.producers[place].bytes();
        // Asked before anything is looked at, new rings too: nothing follows what is found then.
        let producer = &mut self.producers[place];
        let has_ended = producer.has_ended() && producer.is_answered();
        self.rule(place, until);
        self.write_metadata(place, (!has_ended).then_some(until))?;
        let batches = self.copy(place, has_ended, Some(until))?;
        if has_ended && self.producers[place].is_empty() {
            self.end(place, None)?;
        } else if !self.charge_memory(place, before) {
            self.end(place, Some(How::Left))?;
        }
        Ok(batches)
    }

    /// Writes what is new of a producer besides its rings.
    fn write_metadata(&mut self, place: usize, until: Option<Instant>) -> io::Result<()> {
        self.named(place, |producer, log_file, _, name_quota| {
            producer.write_metadata(log_file, until, name_quota)
        })?;
        self.producers[place].count(&mut self.log_file, &mut self.compressor)
    }

    fn rule(&mut self, place: usize, until: Instant) {
        self.allow_rings(place);
        self.producers[place].rule(&self.rules, until);
    }

    /// Serves new rings of a program as far as the quota of its user goes.
    fn allow_rings(&mut self, place: usize) {
        let producer = &mut self.producers[place];
        let mappings = producer.new_rings() as u64;
        let is_own = procfs::is_own(producer.user);
        let bytes = if is_own { 0 } else { mappings * producer.bytes_of_ring() };
        if mappings > 0 && self.take(place, Resources { mappings, bytes, descriptors: 0 }) {
            self.producers[place].allow_rings(mappings as usize);
        }
    }

    /// Whether the quota has the memory that was allocated while a program was served: here, and
    /// in its segment, by the program itself, or because this process has read or written a page
    /// first.
    fn charge_memory(&mut self, place: usize, before: (u64, u64)) -> bool {
        let producer = &mut self.producers[place];
        if procfs::is_own(producer.user) {
            return true;
        }
        let left = Producer::MOST_BYTES.saturating_sub(producer.held_of_segment);
        let (segment, own) = producer.bytes();
        let segment = segment.saturating_sub(before.0).min(left);
        producer.held_of_segment += segment;
        let bytes = segment + own.saturating_sub(before.1);
        self.take(place, Resources { bytes, ..Resources::default() })
    }

    fn take(&mut self, place: usize, more: Resources) -> bool {
        let producer = &mut self.producers[place];
        match self.resource_quotas.take(producer.user, more) {
            Ok(()) => {
                producer.held = producer.held.plus(more);
                true
            }
            Err(_) if mem::replace(&mut producer.is_limited, true) => false,
            Err(what) => {
                let (user, pid) = (producer.user, producer.pid);
                let text = format_args!(
                    "process {pid} of user {user} gets no further rings: its user reached the \
                     limit of {what}"
                );
                self.user_warnings.warn(user, text);
                false
            }
        }
    }

    fn end(&mut self, place: usize, how: Option<How>) -> io::Result<()> {
        self.named(place, |producer, log_file, compressor, name_quota| {
            producer.end(log_file, compressor, how, name_quota)
        })?;
        self.producers[place].is_over = true;
        Ok(())
    }

    /// Writes of a producer what needs room for names.
    fn named(
        &mut self,
        place: usize,
        write: impl FnOnce(
            &mut Producer,
            &mut LogFile,
            &mut Compressor,
            &mut NameQuota,
        ) -> io::Result<()>,
    ) -> io::Result<()> {
        let (producer, now) = (&mut self.producers[place], Instant::now());
        let mut name_quota = self.name_quotas.of(producer.user, now);
        let written = write(producer, &mut self.log_file, &mut self.compressor, &mut name_quota);
        self.name_quotas.keep(producer.user, &name_quota, now);
        if name_quota.left_out > 0 && !mem::replace(&mut producer.is_abridged, true) {
            let (user, pid, names) = (producer.user, producer.pid, name_quota.left_out);
            let text = format_args!(
                "process {pid} of user {user}: its user reached the limit of {} MiB of names; \
                 {names} of them are left out until there is room",
                name_quota::MOST >> 20
            );
            self.user_warnings.warn(user, text);
        }
        written
    }

    /// Copies what one producer has until then, a batch of each ring, and writes what is compressed;
    /// all of it where `all`. Says how many batches there were.
    fn copy(&mut self, place: usize, all: bool, until: Option<Instant>) -> io::Result<usize> {
        let mut batches = 0;
        for _ in 0..self.producers[place].served_rings() {
            while !self.compressor.has_room() {
                self.write_first(true)?;
            }
            batches += usize::from(self.producers[place].copy(&mut self.compressor, all)?);
            self.write(false)?;
            if until.is_some_and(|until| Instant::now() > until) {
                break;
            }
        }
        self.write(all)?;
        Ok(batches)
    }

    /// Writes what is compressed; with `wait` all that was copied.
    fn write(&mut self, wait: bool) -> io::Result<()> {
        while self.write_first(wait)? {}
        Ok(())
    }

    /// The oldest batch. It is kept where the file cannot be written.
    fn write_first(&mut self, wait: bool) -> io::Result<bool> {
        let Some(compressed) = self.compressor.first(wait)? else { return Ok(false) };
        let number = compressed.batch.producer;
        if let Some(producer) =
            self.producers.iter_mut().find(|producer| producer.number() == number)
        {
            producer.write(&mut self.log_file, compressed)?;
        }
        self.compressor.take();
        Ok(true)
    }

    fn remove_ended(&mut self) {
        while let Some(place) = self.producers.iter().position(|producer| producer.is_over) {
            self.remove(place);
        }
    }

    fn remove(&mut self, place: usize) {
        let producer = self.producers.swap_remove(place);
        self.ended = self.ended.with(&producer.event_counts());
        self.resource_quotas.give_back(producer.user, producer.held);
    }
}
