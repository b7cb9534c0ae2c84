// SPDX-License-Identifier: Apache-2.0
use crate::costs;
use crate::door::{self, Door, Guest, Wish};
use crate::orphans;
use crate::output::Output;
use crate::porter::Porter;
use crate::press::Press;
use crate::program;
use crate::rule_book::RuleBook;
use crate::target::Target;
use crate::totals::Totals;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use tare_command::{Complaints, CostsFile, Failure, Obstacle, said, say};
use tare_log_file::How;
use tare_log_segment::Identity;
use tare_shm::Refusal;

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
const FALLBACK: &str = "a program has no tick counter to rely on: its times are read by \
                        clock_gettime, which takes longer";

/// A program that logs nothing is looked at so often whether it is still the same; all together
/// take one part in so many of the time.
const LOOKS: Duration = Duration::from_secs(1);
const LOOKING: u32 = 500;

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

    pub fn door(&self) -> &Door {
        &self.door
    }

    pub fn rules(&self) -> &RuleBook {
        &self.rules
    }

    /// Of all programs, also of those that go on.
    pub fn totals(&self) -> Totals {
        let all = self.targets.iter().fold(self.ended, |sum, target| sum.with(&target.totals()));
        Totals { events: all.events - self.unwritten, ..all }
    }

    /// Says from now on in `file` what collecting costs.
    pub fn write_costs(&mut self, file: &Path) -> Result<(), Failure> {
        self.costs = Some(CostsFile::create(file, |vacant| costs::write(self, vacant))?);
        Ok(())
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

    /// Everything once.
    pub fn turn(&mut self) {
        self.open_door();
        self.costs(|file, collector| file.turn(|vacant| costs::write(collector, vacant)));
        self.rules.renew();
        if self.stuck.is_some_and(|since| since.elapsed() < RETRY) {
            return;
        }
        match self.move_events() {
            Ok(_) => {
                if self.stuck.take().is_some() {
                    say("the file can be written again");
                }
            }
            Err(error) => {
                if self.stuck.is_none() {
                    say(format_args!(
                        "the file cannot be written: {error}; events stay where they are as long \
                         as there is room"
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
        let (begin, most) = (Instant::now(), busy.min(due));
        let is_rung = porter.sleep(&bells, most, || !is_stuck && is_full());
        let nobody_was_woken = is_rung && begin.elapsed() >= most;
        self.poll = if nobody_was_woken { POLL } else { (2 * self.poll).min(LONGEST) };
    }

    /// Whoever has come is let in, whether or not the file can be written.
    fn open_door(&mut self) {
        for guest in self.door.guests() {
            self.receive(guest);
        }
    }

    /// Says how many batches it has taken.
    fn move_events(&mut self) -> io::Result<usize> {
        self.read_clocks()?;
        self.look();
        let mut batches = 0;
        let mut place = 0;
        while place < self.targets.len() {
            self.targets[place].rule(&self.rules);
            // Asked before the rings are looked at: nothing follows what is found then.
            let target = &mut self.targets[place];
            let has_ended = target.has_ended() && target.is_answered();
            batches += self.copy(place, has_ended)?;
            if has_ended {
                while self.copy(place, true)? > 0 {}
                self.targets[place].end(&mut self.output, &mut self.press, None)?;
                self.add_up(place);
            } else {
                place += 1;
            }
        }
        self.write(false)?;
        Ok(batches)
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
        if !self.has_told_of_socket && !self.door.path().exists() {
            self.has_told_of_socket = true;
            say(format_args!(
                "{}: the socket was deleted; programs that start now are not collected from",
                self.door.path().display()
            ));
        }
    }

    /// Copies what one target has, a batch of each ring, and writes what is compressed; all of
    /// it where `all`. Says how many batches there were.
    fn copy(&mut self, place: usize, all: bool) -> io::Result<usize> {
        self.targets[place].introduce(&mut self.output)?;
        self.targets[place].count(&mut self.output, &mut self.press)?;
        let mut batches = 0;
        for ring in 0..self.targets[place].used_rings() {
            while !self.press.has_room() {
                self.write_first(true)?;
            }
            batches += usize::from(self.targets[place].copy(ring, &mut self.press, all)?);
            self.write(false)?;
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

    fn receive(&mut self, guest: Guest) {
        match guest.wish {
            Wish::Serve(segment) => self.adopt(segment, guest.pid, Some(guest.connection)),
            // A file of this user is nobody else's to write into.
            Wish::Borrow(what) if guest.user == program::user() => {
                self.lend(&guest.connection, what)
            }
            Wish::Borrow(_) => {}
        }
    }

    /// Who is given nothing sees the connection end.
    fn lend(&mut self, connection: &UnixStream, what: Identity) {
        if self.output.identity() == Some(what) {
            let _ = door::lend(connection, self.output.lend());
        } else if let Some(socket) = self.targets.iter().find_map(|target| target.socket(what)) {
            let _ = door::lend(connection, socket);
        }
    }

    fn adopt(&mut self, segment: OwnedFd, pid: u32, connection: Option<UnixStream>) {
        let identity = Identity::of(segment.as_raw_fd()).ok();
        if identity.is_some() && identity == self.output.identity() {
            drop(segment);
            self.complaints.say(format_args!("process {pid} sent the file of events, no segment"));
            // Closing any descriptor of the file has released the lock on it.
            if let Err(reason) = self.output.claim() {
                self.complaints.say(reason);
            }
            return;
        }
        // One that was found among orphans while it was on its way to the door.
        if let Some(known) = self.targets.iter_mut().find(|target| target.has(&segment)) {
            known.join(segment, connection);
            return;
        }
        let (number, codec) = (self.output.next_process(), self.output.codec);
        match Target::adopt(segment, pid, connection, number, codec) {
            Ok(mut target) => {
                // Before the program goes on: they hold from the first event on.
                target.rule(&self.rules);
                target.welcome();
                if target.has_fallen_back() && !self.has_told_of_fallback {
                    self.has_told_of_fallback = true;
                    say(FALLBACK);
                }
                self.targets.push(target);
                self.programs += 1;
            }
            Err(obstacle) => self.complaints.say(match obstacle {
                Obstacle::Served(0) => format!("process {pid}: another collector has it already"),
                Obstacle::Served(other) => {
                    format!("process {pid}: collector {other} has it already")
                }
                Obstacle::Refused(Refusal::OtherVersion(_)) => {
                    format!("process {pid} has another version of libtare_log")
                }
                Obstacle::Refused(refusal) => {
                    format!("the segment of process {pid} is refused: {}", said(refusal))
                }
            }),
        }
    }

    /// Takes over the programs whose collector at this socket has died.
    pub fn take_over(&mut self) {
        for orphan in orphans::find(self.door.path()) {
            self.adopt(orphan.segment, orphan.pid, None);
        }
    }

    fn add_up(&mut self, place: usize) {
        let ended = self.targets.swap_remove(place).totals();
        self.ended = self.ended.with(&ended);
    }

    /// Takes what is there, and leaves programs that go on to who comes next. Where it cannot be
    /// written, what those have that ended is counted.
    pub fn finish(&mut self) -> io::Result<()> {
        let written = self.write_rest();
        if written.is_err() {
            self.count_rest();
        }
        self.costs(|file, collector| file.renew(|vacant| costs::write(collector, vacant)));
        written
    }

    fn count_rest(&mut self) {
        while let Some(place) = self.targets.iter_mut().position(|one| !one.has_ended()) {
            self.left += 1;
            self.add_up(place);
        }
        let written = self.totals().events;
        self.output.give_up();
        let _ = self.write_rest();
        self.unwritten = self.totals().events - written;
    }

    fn write_rest(&mut self) -> io::Result<()> {
        let begin = Instant::now();
        loop {
            self.open_door();
            let is_empty = self.move_events()? == 0 && self.press.is_empty();
            // Of those that have ended, the rest is on its way.
            let is_answered = !self.targets.iter_mut().any(Target::has_ended);
            if is_empty && is_answered || !is_empty && begin.elapsed() > Duration::from_secs(1) {
                break;
            }
            if is_empty {
                thread::sleep(SHORT);
            }
        }
        while let Some(place) = self.targets.len().checked_sub(1) {
            // One that has ended meanwhile has left nothing to others.
            let has_ended = self.targets[place].has_ended();
            while self.copy(place, true)? > 0 && has_ended {}
            let how = (!has_ended).then_some(How::Left);
            self.targets[place].end(&mut self.output, &mut self.press, how)?;
            self.left += u64::from(!has_ended);
            self.add_up(place);
        }
        self.output.clock()
    }
}
