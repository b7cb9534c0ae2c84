// SPDX-License-Identifier: Apache-2.0
//! One run of a program under the hook, from its start to its end.

use crate::arguments::Run;
use crate::costs::Costs;
use crate::costs_file::CostsFile;
use crate::drain::Drain;
use crate::event_file::EventFile;
use crate::rule_book::RuleBook;
use crate::segments::Segments;
use crate::watch::Watch;
use crate::{launch, program, stats};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};
use tare_clock::{Rate, Snapshot};
use tare_command::{Child, Failure, ResultExt, Signals, exit_code, say};

/// Passed on to the program: what ends servers or tells them something. SIGHUP is not, it
/// reloads the rules.
const FORWARDED: [i32; 9] = [
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGALRM,
    libc::SIGTTIN,
    libc::SIGTTOU,
];

/// How long events wait in the rings: the first while they come, the second, by doubling,
/// when none do. A ring holds 3,200 events, which bounds both.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);
const LONGEST_SLEEP: Duration = Duration::from_millis(32);
/// How often the rings of ended threads are looked for.
const RECLAIM: Duration = Duration::from_millis(10);
/// How often costs are written.
const TURN: Duration = Duration::from_secs(1);

pub fn run(arguments: Run) -> Result<ExitCode, Failure> {
    let found = program::check(arguments.command.first().map_or("".as_ref(), |name| name))?;
    let library = launch::library()?;
    let events = arguments.events.as_deref().map(EventFile::open).transpose()?;
    // Before any file is written: one that meets its limit is an error, not our end.
    let taken = [&FORWARDED[..], &[libc::SIGHUP, libc::SIGXFSZ, libc::SIGCHLD]].concat();
    let signals = Signals::take(&taken).or_failed("signals cannot be received")?;
    let segments = Segments::create()?;
    let mut session = Session::open(&arguments, events, &segments)?;
    let mut child =
        launch::start(&found, &arguments.command, &library, segments.handover, &signals)?;
    let status = session.follow(&mut child, &signals)?;
    session.finish(&arguments);
    if !arguments.stats && !arguments.json {
        session.tell_if_unattached(&library, status);
    }
    Ok(ExitCode::from(exit_code(status)))
}

struct Session<'s> {
    segments: &'s Segments,
    book: Option<RuleBook>,
    watch: Option<Watch>,
    drain: Drain,
    events: Option<EventFile>,
    costs: Option<CostsFile>,
    first: Snapshot,
}

impl<'s> Session<'s> {
    fn open(
        arguments: &Run,
        events: Option<EventFile>,
        segments: &'s Segments,
    ) -> Result<Self, Failure> {
        let first = Snapshot::take();
        let rules = arguments.rules.as_deref();
        let book = rules.map(|path| RuleBook::open(path, segments.control)).transpose()?;
        let watch = rules
            .map(|path| Watch::new(path).or_failed(format_args!("--rules {}", path.display())))
            .transpose()?;
        events.as_ref().map_or(Ok(()), EventFile::empty)?;
        let drain = Drain::new(segments.shared);
        let mut session = Self { segments, book, watch, drain, events, costs: None, first };
        if let Some(path) = &arguments.costs {
            let costs = Costs::read(segments.shared);
            session.costs = Some(CostsFile::create(path, &costs, session.rate())?);
        }
        Ok(session)
    }

    /// Drains, reloads and passes signals on until the program has ended.
    fn follow(&mut self, child: &mut Child, signals: &Signals) -> Result<ExitStatus, Failure> {
        // What changed between the first reading and the watch was not seen.
        self.rules(RuleBook::reload_if_changed);
        let mut sleep = SHORTEST_SLEEP;
        let (mut reclaimed, mut turn) = (Instant::now(), Instant::now());
        loop {
            self.wait(signals, sleep);
            while let Some(signal) = signals.next() {
                match signal.number {
                    libc::SIGHUP => self.rules(RuleBook::reload),
                    // The write that met the limit has told; the child is asked below.
                    libc::SIGXFSZ | libc::SIGCHLD => {}
                    // What the terminal sent went to the program as well.
                    number if !signal.from_kernel => child.send(number),
                    _ => {}
                }
            }
            if self.watch.as_ref().is_some_and(Watch::clear) {
                self.rules(RuleBook::reload_if_changed);
            }
            self.rules(RuleBook::renew);
            let ended = child.ended().or_failed("the program cannot be waited for")?;
            let any = self.collect(tare_clock::ticks());
            if let Some(status) = ended {
                return Ok(status);
            }
            sleep = if any { SHORTEST_SLEEP } else { (2 * sleep).min(self.longest_sleep()) };
            if reclaimed.elapsed() >= RECLAIM {
                reclaimed = Instant::now();
                self.drain.reclaim();
            }
            if turn.elapsed() >= TURN {
                turn = Instant::now();
                self.renew_costs();
            }
        }
    }

    fn wait(&self, signals: &Signals, longest: Duration) {
        let watch = self.watch.as_ref().map_or(-1, |watch| watch.as_fd().as_raw_fd());
        let mut places = [signals.as_fd().as_raw_fd(), watch].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: the descriptors are open, or -1, which poll leaves out.
        unsafe { libc::poll(places.as_mut_ptr(), 2, longest.as_millis() as i32) };
    }

    /// Without keywords there are no events to wait for.
    fn longest_sleep(&self) -> Duration {
        if self.book.is_some() { LONGEST_SLEEP } else { TURN }
    }

    fn rules(&mut self, how: fn(&mut RuleBook) -> Result<(), Failure>) {
        if let Some(book) = &mut self.book
            && let Err(failure) = how(book)
        {
            say(format_args!("{failure}; the old rules stay in force"));
        }
    }

    /// Moves events from the rings, and those up to `ticks` on to their file; whether there
    /// were any in the rings.
    fn collect(&mut self, ticks: u64) -> bool {
        let any = self.drain.collect();
        let events = self.drain.until(ticks);
        let (now, rate) = (Snapshot::take(), self.rate());
        if let (Some(file), Some(book)) = (&mut self.events, &self.book)
            && let Err(failure) = file.append(&events, book, &now, rate)
        {
            say(failure);
        }
        any
    }

    fn renew_costs(&mut self) {
        let (rate, lost) = (self.rate(), self.events_lost());
        if let Some(file) = &mut self.costs
            && let Err(failure) = file.renew(&Costs::read(self.segments.shared), rate, lost)
        {
            say(failure);
        }
    }

    fn finish(&mut self, arguments: &Run) {
        self.collect(u64::MAX);
        self.renew_costs();
        if !arguments.stats && !arguments.json {
            return;
        }
        let book = self.book.as_ref();
        let run = stats::Run {
            keywords: book.map_or(0, RuleBook::keywords),
            reloads: book.map_or(0, |book| book.reloads),
            rules_refused: book.map_or(0, |book| book.refused),
            events_written: self.events.as_ref().map_or(0, |file| file.written),
            events_lost: self.events_lost(),
            ticks_invariant: tare_clock::is_invariant(),
        };
        let costs = Costs::read(self.segments.shared);
        let text = if arguments.json {
            format!("{}\n", stats::to_json(&costs, &run, self.rate()))
        } else {
            stats::to_table(&costs, &run, self.rate())
        };
        // The program's exit code counts, whether or not anyone reads this.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    /// A program that was killed may not have come to load the library, which is no news.
    fn tell_if_unattached(&self, library: &Path, status: ExitStatus) {
        if status.code().is_some() && self.segments.shared.attached.load(Relaxed) == 0 {
            say(format_args!(
                "the program ended without the hook: {} was not loaded or is of another build; \
                 build both with 'make native'",
                library.display()
            ));
        }
    }

    fn events_lost(&self) -> u64 {
        self.drain.lost() + self.events.as_ref().map_or(0, EventFile::lost)
    }

    /// The tick rate since the beginning.
    fn rate(&self) -> Rate {
        loop {
            if let Some(rate) = Rate::between(&self.first, &Snapshot::take()) {
                return rate;
            }
            thread::sleep(SHORTEST_SLEEP);
        }
    }
}
