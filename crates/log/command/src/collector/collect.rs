// SPDX-License-Identifier: Apache-2.0
mod finish;
mod receive;

use super::costs;
use super::porter::Porter;
use super::press::Press;
use super::producer::Target;
use super::totals::Totals;
use crate::collector::accept::door::Door;
use crate::collector::accept::orphans::Search;
use crate::collector::accept::request::Guest;
use crate::collector::quotas::budget::{Amount, Budget};
use crate::collector::quotas::naming::{self, Naming, Room};
use crate::collector::quotas::slices::Slices;
use crate::collector::rules::rule_book::RuleBook;
use crate::output::Output;
use crate::program;
use std::collections::VecDeque;
use std::io;
use std::mem;
use std::path::Path;
use std::time::{Duration, Instant};
use tare_command::{Complaints, CostsFile, Failure, say};
use tare_log_file::How;
use tare_tables::Vacant;

/// The longest sleep. Programs wake the collector when a ring is an eighth full; what is less is
/// looked for so often.
const LONGEST: Duration = Duration::from_millis(50);

/// The shortest sleep for programs that cannot wake the collector, because a seccomp filter forbids
/// it: their bell is found rung at the end of a sleep. It doubles while that is not so.
const POLL: Duration = Duration::from_millis(1);

/// While other threads compress.
const SHORT: Duration = Duration::from_micros(250);

/// How full a ring is at which there is no sleep: it has been rung for already.
const URGENT: f64 = 0.125;

/// Between the first two readings of the clocks in the file, and between later ones. The time
/// between grows from one to the other by doubling: a file that ends early, too, has readings
/// over half of its time at least.
const FIRST_CLOCKS: Duration = Duration::from_millis(1);
const CLOCKS: Duration = Duration::from_secs(1);

/// Once, however many programs there are.
const FALLBACK: &str = "a program has no reliable tick counter, so it reads times with \
                        clock_gettime, which takes longer";

/// A program that logs nothing is looked at so often whether it is still the same; all together
/// take one part in so many of the time.
const LOOKS: Duration = Duration::from_secs(1);
const LOOKING: u32 = 500;

/// Of a turn, for programs whose collector has died.
const SEARCH: Duration = Duration::from_millis(10);

/// After the disk was full.
const RETRY: Duration = Duration::from_millis(500);

/// Serves all targets, one turn at a time.
pub struct Collector {
    door: Door,
    output: Output,
    press: Press,
    rules: RuleBook,
    complaints: Complaints,
    targets: Vec<Target>,
    /// Programs that wait because their users have spent their slices of the turn.
    guests: VecDeque<Guest>,
    /// For programs whose collector has died, until it has seen all.
    search: Option<Search>,
    budget: Budget,
    slices: Slices,
    naming: Naming,
    turns: u64,
    /// When the clocks are to be read next, and how long after that again.
    clocks: (Instant, Duration),
    /// When a program is to be looked at next, and the place of the one before.
    looks: (Instant, usize),
    /// The longest sleep at the moment.
    poll: Duration,
    has_told_of_fallback: bool,
    stuck: Option<Instant>,
    ended: Totals,
    costs: Option<CostsFile>,
    has_told_of_socket: bool,
    pub programs: u64,
    /// Those that went on when this collector ended.
    pub left: u64,
    /// Events of programs that have ended, which are in no file.
    pub unwritten: u64,
}

impl Collector {
    pub fn new(door: Door, output: Output, press: Press, rules: RuleBook) -> Self {
        Self {
            door,
            output,
            press,
            rules,
            complaints: Complaints::default(),
            targets: Vec::new(),
            guests: VecDeque::new(),
            search: None,
            budget: Budget::of_this_process(),
            slices: Slices::default(),
            naming: Naming::default(),
            turns: 0,
            clocks: (Instant::now(), FIRST_CLOCKS),
            looks: (Instant::now(), 0),
            poll: LONGEST,
            has_told_of_fallback: false,
            stuck: None,
            ended: Totals::default(),
            costs: None,
            has_told_of_socket: false,
            programs: 0,
            left: 0,
            unwritten: 0,
        }
    }

    /// Takes over, from the next turn on, the programs whose collector at this socket has died.
    pub fn search(&mut self) {
        self.search = Some(Search::begin(self.door.paths()));
    }

    pub fn door(&self) -> &Door {
        &self.door
    }

    pub fn rules(&self) -> &RuleBook {
        &self.rules
    }

    /// Of all programs, also of those that go on.
    pub fn totals(&self) -> Totals {
        let all = self.targets.iter().fold(self.ended, |sum, target| sum.with(&target.totals()));
        Totals { events: all.events.saturating_sub(self.unwritten), ..all }
    }

    /// Says from now on in `file` what collecting costs.
    pub fn write_costs(&mut self, file: &Path) -> Result<(), Failure> {
        self.costs = Some(CostsFile::create(file, |vacant| self.cost_table(vacant))?);
        Ok(())
    }

    fn cost_table(&self, vacant: Vacant) -> io::Result<()> {
        costs::write(self.programs, self.totals(), self.bytes(), vacant)
    }

    fn costs(&mut self, write: impl FnOnce(&mut CostsFile, &Self)) {
        if let Some(mut file) = self.costs.take() {
            write(&mut file, self);
            self.costs = Some(file);
        }
    }

    pub fn bytes(&self) -> u64 {
        self.output.bytes()
    }

    /// The file of events, as errors name it.
    pub fn file(&self) -> String {
        self.output.path().display().to_string()
    }

    /// Everything once.
    pub fn turn(&mut self) {
        self.slices.renew();
        self.open_door();
        self.take_over(SEARCH);
        self.costs(|file, collector| file.turn(|vacant| collector.cost_table(vacant)));
        self.rules.renew();
        if self.stuck.is_some_and(|since| since.elapsed() < RETRY) {
            return;
        }
        match self.move_events() {
            Ok(_) => {
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
    pub fn sleep(&mut self, porter: &Porter) {
        let is_stuck = self.stuck.is_some();
        let busy = if self.press.is_empty() || is_stuck { self.poll } else { SHORT };
        let due = self.targets.iter().filter_map(Target::due).chain([self.clocks.0]).min();
        let due = due.filter(|_| !is_stuck);
        let due = due.map_or(LONGEST, |due| due.saturating_duration_since(Instant::now()));
        let bells: Vec<_> = self.targets.iter().map(Target::bell).collect();
        let is_full = || self.targets.iter().any(|one| one.fullness() >= URGENT || one.has_batch());
        let is_late = || !self.guests.is_empty() || self.search.is_some() || !is_stuck && is_full();
        let (begin, most) = (Instant::now(), busy.min(due));
        let is_rung = porter.sleep(&bells, most, is_late);
        let nobody_was_woken = is_rung && begin.elapsed() >= most;
        self.poll = if nobody_was_woken { POLL } else { (2 * self.poll).min(LONGEST) };
    }

    /// Serves the programs, those first that have waited longest, until the slice of their user
    /// ends. Says how many batches it has taken.
    fn move_events(&mut self) -> io::Result<usize> {
        self.read_clocks()?;
        self.look();
        self.remove_ended();
        self.turns += 1;
        let mut order: Vec<usize> = (0..self.targets.len()).collect();
        order.sort_by_key(|place| self.targets[*place].turn);
        let mut batches = 0;
        for place in order {
            let (user, begin) = (self.targets[place].user, Instant::now());
            let Some(until) = self.slices.end(user, begin) else { continue };
            self.targets[place].turn = self.turns;
            let taken = self.serve(place, until);
            self.slices.spend(user, begin);
            batches += taken?;
        }
        self.remove_ended();
        self.write(false)?;
        Ok(batches)
    }

    fn serve(&mut self, place: usize, until: Instant) -> io::Result<usize> {
        let before = self.targets[place].bytes();
        // Asked before anything is looked at, new rings too: nothing follows what is found then.
        let target = &mut self.targets[place];
        let has_ended = target.has_ended() && target.is_answered();
        self.rule(place, until);
        self.introduce(place, (!has_ended).then_some(until))?;
        let batches = self.copy(place, has_ended, Some(until))?;
        if has_ended && self.targets[place].is_empty() {
            self.end(place, None)?;
        } else if !self.charge_memory(place, before) {
            self.end(place, Some(How::Left))?;
        }
        Ok(batches)
    }

    /// Writes what is new of a target besides its rings.
    fn introduce(&mut self, place: usize, until: Option<Instant>) -> io::Result<()> {
        self.named(place, |target, output, _, room| target.introduce(output, until, room))?;
        self.targets[place].count(&mut self.output, &mut self.press)
    }

    fn rule(&mut self, place: usize, until: Instant) {
        self.allow_rings(place);
        self.targets[place].rule(&self.rules, until);
    }

    /// Serves new rings of a program as far as its user's budget goes.
    fn allow_rings(&mut self, place: usize) {
        let target = &mut self.targets[place];
        let mappings = target.new_rings() as u64;
        let is_own = target.user == program::user();
        let bytes = if is_own { 0 } else { mappings * target.bytes_of_ring() };
        if mappings > 0 && self.take(place, Amount { mappings, bytes, descriptors: 0 }) {
            self.targets[place].allow_rings(mappings as usize);
        }
    }

    /// Whether the budget has the memory that was allocated while a program was served: here, and
    /// in its segment, by the program itself, or because this process has read or written a page
    /// first.
    fn charge_memory(&mut self, place: usize, before: (u64, u64)) -> bool {
        let target = &mut self.targets[place];
        if target.user == program::user() {
            return true;
        }
        let left = Target::MOST_BYTES.saturating_sub(target.held_of_segment);
        let (segment, own) = target.bytes();
        let segment = segment.saturating_sub(before.0).min(left);
        target.held_of_segment += segment;
        let bytes = segment + own.saturating_sub(before.1);
        self.take(place, Amount { bytes, ..Amount::default() })
    }

    fn take(&mut self, place: usize, more: Amount) -> bool {
        let target = &mut self.targets[place];
        match self.budget.take(target.user, more) {
            Ok(()) => {
                target.held = target.held.plus(more);
                true
            }
            Err(_) if mem::replace(&mut target.is_limited, true) => false,
            Err(what) => {
                let (user, pid) = (target.user, target.pid);
                let text = format_args!(
                    "process {pid} of user {user} gets no further rings: its user reached the \
                     limit of {what}"
                );
                self.complaints.say(user, text);
                false
            }
        }
    }

    fn end(&mut self, place: usize, how: Option<How>) -> io::Result<()> {
        self.named(place, |target, output, press, room| target.end(output, press, how, room))?;
        self.targets[place].is_over = true;
        Ok(())
    }

    /// Writes of a target what needs room for names.
    fn named(
        &mut self,
        place: usize,
        write: impl FnOnce(&mut Target, &mut Output, &mut Press, &mut Room) -> io::Result<()>,
    ) -> io::Result<()> {
        let (target, now) = (&mut self.targets[place], Instant::now());
        let mut room = self.naming.room(target.user, now);
        let written = write(target, &mut self.output, &mut self.press, &mut room);
        self.naming.keep(target.user, &room, now);
        if room.left_out > 0 && !mem::replace(&mut target.is_abridged, true) {
            let (user, pid, names) = (target.user, target.pid, room.left_out);
            let text = format_args!(
                "process {pid} of user {user}: its user reached the limit of {} MiB of names; \
                 {names} of them are left out until there is room",
                naming::MOST >> 20
            );
            self.complaints.say(user, text);
        }
        written
    }

    /// At one program, by turns.
    fn look(&mut self) {
        let begin = Instant::now();
        let (due, before) = self.looks;
        let count = self.targets.len();
        if begin < due || count == 0 {
            return;
        }
        let place = (before + 1) % count;
        self.targets[place].look();
        let gap = (LOOKS / count as u32).max(begin.elapsed() * LOOKING);
        self.looks = (begin + gap, place);
    }

    fn read_clocks(&mut self) -> io::Result<()> {
        let (due, gap) = self.clocks;
        if Instant::now() >= due {
            self.output.look();
            self.look_at_socket();
            self.output.clock()?;
            self.clocks = (Instant::now() + gap, (2 * gap).min(CLOCKS));
        }
        Ok(())
    }

    fn look_at_socket(&mut self) {
        if !self.has_told_of_socket && !self.door.is_there() {
            self.has_told_of_socket = true;
            say(format_args!(
                "{}: the socket was deleted, so new programs cannot connect. Restart the \
                 collector",
                self.door.path().display()
            ));
        }
    }

    /// Copies what one target has until then, a batch of each ring, and writes what is compressed;
    /// all of it where `all`. Says how many batches there were.
    fn copy(&mut self, place: usize, all: bool, until: Option<Instant>) -> io::Result<usize> {
        let mut batches = 0;
        for _ in 0..self.targets[place].served_rings() {
            while !self.press.has_room() {
                self.write_first(true)?;
            }
            batches += usize::from(self.targets[place].copy(&mut self.press, all)?);
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
        let Some(pressed) = self.press.first(wait)? else { return Ok(false) };
        let number = pressed.batch.target;
        if let Some(target) = self.targets.iter_mut().find(|target| target.number() == number) {
            target.write(&mut self.output, pressed)?;
        }
        self.press.take();
        Ok(true)
    }

    fn remove_ended(&mut self) {
        while let Some(place) = self.targets.iter().position(|target| target.is_over) {
            self.remove(place);
        }
    }

    fn remove(&mut self, place: usize) {
        let target = self.targets.swap_remove(place);
        self.ended = self.ended.with(&target.totals());
        self.budget.give_back(target.user, target.held);
    }
}
