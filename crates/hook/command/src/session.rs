// SPDX-License-Identifier: Apache-2.0
//! One run of a program under the hook, from its start to its end.

use crate::arguments::Run;
use crate::costs::Costs;
use crate::drain::Drain;
use crate::event_accounts::{EventAccounts, EventCounts};
use crate::event_file::EventFile;
use crate::poll_interval::Pace;
use crate::rules_file::{FirstRules, RuleBook};
use crate::segments::Segments;
use crate::target::{Followed, Started};
use crate::{attach, launch, stats};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tare_clock::Snapshot;
use tare_command::{
    CostsFile, Failure, ResultExt, Signals, Watch, exit_code, preload, program, say,
};
use tare_hook_segment::Unseen;
use tare_tables::Vacant;

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
/// when none do. A ring holds 6,500 events, which bounds both.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);
const LONGEST_SLEEP: Duration = Duration::from_millis(32);
/// How often the rings of ended threads are looked for.
const RECLAIM: Duration = Duration::from_millis(10);
/// Without anything to wait for.
const TURN: Duration = Duration::from_secs(1);

/// Runs a program, or takes over one that runs.
pub fn run(arguments: Run) -> Result<ExitCode, Failure> {
    match arguments.attach {
        Some(pid) => take_over(pid, &arguments),
        None => start(&arguments),
    }
}

fn start(arguments: &Run) -> Result<ExitCode, Failure> {
    let name = arguments.command.first().map_or(OsStr::new(""), |name| name);
    let found = program::check(name, "the hook")?;
    let library = preload::library("libtare_hook.so")?;
    let events = arguments.events.as_deref().map(EventFile::open).transpose()?;
    // Before any file is written: one that meets its limit is an error, not our end.
    let signals = take_signals(&[&FORWARDED[..], &[libc::SIGCHLD]].concat())?;
    let (segments, handover) = Segments::create()?;
    let mut session = Session::open(arguments, events, &segments)?;
    let child = launch::start(&found, &arguments.command, &library, handover, &signals)?;
    let mut program = Started::new(child);
    session.follow(&mut program, &signals)?;
    session.finish(arguments);
    let Some(status) = program.status else { return Ok(ExitCode::FAILURE) };
    if !arguments.stats && !arguments.json {
        session.tell_if_unattached(&library, status);
    }
    Ok(ExitCode::from(exit_code(status)))
}

fn take_over(pid: u32, arguments: &Run) -> Result<ExitCode, Failure> {
    let (segments, mut programs) = attach::attach(pid)?;
    let events = arguments.events.as_deref().map(EventFile::open_again).transpose()?;
    let signals = take_signals(&[libc::SIGTERM, libc::SIGINT])?;
    let mut session = Session::open(arguments, events, &segments)?;
    let (event_counts, lost) = (session.event_counts(), session.events_lost());
    let (written, unwanted) = (event_counts.written, event_counts.unwanted);
    let now = if arguments.events.is_none() {
        ". Without --events, no further events are written"
    } else {
        ""
    };
    say(format_args!(
        "attached to process {pid}. Events so far: {written} written, {lost} lost, {unwanted} \
         without a file{now}"
    ));
    session.follow(&mut programs, &signals)?;
    say(if programs.go_on() {
        "detached: the programs continue under the last rules"
    } else {
        "all programs have exited; only their parent processes know their exit codes"
    });
    session.finish(arguments);
    Ok(ExitCode::SUCCESS)
}

fn take_signals(others: &[i32]) -> Result<Signals, Failure> {
    let taken = [others, &[libc::SIGHUP, libc::SIGXFSZ]].concat();
    Signals::take(&taken).or_failed("signals cannot be received")
}

struct Session<'s> {
    segments: &'s Segments,
    book: Option<RuleBook>,
    watch: Option<Watch>,
    drain: Drain,
    event_accounts: EventAccounts,
    events: Option<EventFile>,
    /// Events that there was no file for.
    unwanted: u64,
    costs: Option<CostsFile>,
    pace: Pace,
}

impl<'s> Session<'s> {
    /// What can be refused is, before a file loses what it has or rules change.
    fn open(
        arguments: &Run,
        events: Option<EventFile>,
        segments: &'s Segments,
    ) -> Result<Self, Failure> {
        let path = arguments.rules.as_deref();
        let rules = path.map(FirstRules::read).transpose()?;
        let watch = path
            .map(|path| Watch::new(path).or_failed(format_args!("--rules {}", path.display())))
            .transpose()?;
        let pace = Pace::of(segments.shared);
        let drain = Drain::new(segments.shared);
        let event_accounts = EventAccounts::open(segments.shared, drain.taken());
        let (book, unwanted, costs) = (None, 0, None);
        let mut session =
            Self { segments, book, watch, drain, event_accounts, events, unwanted, costs, pace };
        if let Some(path) = &arguments.costs {
            let file = CostsFile::create(path, |vacant| session.write_costs(vacant))?;
            session.costs = Some(file);
        }
        let is_new = arguments.attach.is_none();
        if let Some(events) = &mut session.events {
            if is_new { events.empty() } else { events.go_on() }?;
        }
        session.book = match rules {
            Some(rules) => Some(RuleBook::open(rules, segments.control)),
            None if is_new => None,
            None => Some(RuleBook::adopt(segments.control)),
        };
        Ok(session)
    }

    /// Drains, reloads and passes signals on until the program has ended.
    fn follow(&mut self, programs: &mut impl Followed, signals: &Signals) -> Result<(), Failure> {
        // What changed between the first reading and the watch was not seen.
        self.rules(RuleBook::reload_if_changed);
        let mut sleep = SHORTEST_SLEEP;
        let mut reclaimed = Instant::now();
        loop {
            self.wait(signals, programs.fd(), sleep);
            while let Some(signal) = signals.next() {
                match signal.number {
                    libc::SIGHUP => self.rules(RuleBook::reload),
                    // The write that met the limit has told.
                    libc::SIGXFSZ => {}
                    _ => programs.signal(signal),
                }
            }
            if self.watch.as_ref().is_some_and(Watch::clear) {
                self.rules(RuleBook::reload_if_changed);
            }
            self.rules(RuleBook::renew);
            let ended = programs.has_ended()?;
            let any = self.collect(tare_clock::ticks());
            if ended {
                return Ok(());
            }
            sleep = if any { SHORTEST_SLEEP } else { (2 * sleep).min(self.longest_sleep()) };
            if reclaimed.elapsed() >= RECLAIM {
                reclaimed = Instant::now();
                self.drain.reclaim();
            }
            self.costs(|file, session| file.turn(false, |vacant| session.write_costs(vacant)));
        }
    }

    fn wait(&self, signals: &Signals, programs: RawFd, longest: Duration) {
        let watch = self.watch.as_ref().map_or(-1, |watch| watch.as_fd().as_raw_fd());
        let mut places = [signals.as_fd().as_raw_fd(), watch, programs].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: the descriptors are open, or -1, which poll leaves out.
        unsafe { libc::poll(places.as_mut_ptr(), 3, longest.as_millis() as i32) };
    }

    /// Without keywords there are no events to wait for.
    fn longest_sleep(&self) -> Duration {
        if self.book.is_some() { LONGEST_SLEEP } else { TURN }
    }

    fn rules(&mut self, how: fn(&mut RuleBook) -> Result<(), Failure>) {
        if let Some(book) = &mut self.book
            && let Err(failure) = how(book)
        {
            say(format_args!("{failure}; the previous rules stay in force"));
        }
    }

    /// Moves events from the rings, and those up to `ticks` on to their file; whether there
    /// were any in the rings.
    fn collect(&mut self, ticks: u64) -> bool {
        let any = self.drain.collect();
        let (now, rate) = (Snapshot::take(), self.pace.rate());
        let done = self.drain.until(ticks, |events| match (&mut self.events, &self.book) {
            (Some(file), Some(book)) => file.append(events, book, &now, rate),
            _ => {
                self.unwanted += events.len() as u64;
                Ok(())
            }
        });
        if let Err(failure) = done {
            say(failure);
        }
        self.event_accounts.enter(self.session_counts());
        any
    }

    fn costs(&mut self, write: impl FnOnce(&mut CostsFile, &mut Self)) {
        if let Some(mut file) = self.costs.take() {
            write(&mut file, self);
            self.costs = Some(file);
        }
    }

    fn write_costs(&mut self, vacant: Vacant) -> io::Result<()> {
        let (rate, lost) = (self.pace.rate(), self.events_lost());
        Costs::read(self.segments.shared).write(vacant, rate, lost)
    }

    fn finish(&mut self, arguments: &Run) {
        self.collect(u64::MAX);
        self.costs(|file, session| file.renew(|vacant| session.write_costs(vacant)));
        let costs = Costs::read(self.segments.shared);
        warn_of_unblocked(&costs);
        if !arguments.stats && !arguments.json {
            return;
        }
        let book = self.book.as_ref();
        let run = stats::Run {
            keywords: book.map_or(0, RuleBook::keywords),
            reloads: book.map_or(0, |book| book.reloads),
            rules_refused: book.map_or(0, |book| book.refused),
            events_written: self.event_counts().written,
            events_lost: self.events_lost(),
            events_unwanted: self.event_counts().unwanted,
            ticks_invariant: tare_clock::is_invariant(),
        };
        let text = if arguments.json {
            format!("{}\n", stats::to_json(&costs, &run, self.pace.rate()))
        } else {
            stats::to_table(&costs, &run, self.pace.rate())
        };
        // The program's exit code counts, whether or not anyone reads this.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    /// A program that was killed may not have come to load the library, which is no news.
    fn tell_if_unattached(&self, library: &Path, status: ExitStatus) {
        if status.code().is_some() && self.segments.shared.attached.load(Relaxed) == 0 {
            say(format_args!(
                "the program ran without the hook, because {} was not loaded or comes from \
                 another build. Build both with 'make native'",
                library.display()
            ));
        }
    }

    /// What became of the events that this session took out of the rings.
    fn session_counts(&self) -> EventCounts {
        let file = self.events.as_ref();
        EventCounts {
            written: file.map_or(0, |file| file.written),
            unwritten: file.map_or(0, EventFile::lost) + self.drain.damaged(),
            unwanted: self.unwanted,
        }
    }

    /// The same of all sessions of this hook.
    fn event_counts(&self) -> EventCounts {
        self.event_accounts.total(self.session_counts())
    }

    fn events_lost(&self) -> u64 {
        self.drain.dropped().saturating_add(self.event_counts().unwritten)
    }
}

/// Bytes left that a rule was to keep back.
fn warn_of_unblocked(costs: &Costs) {
    let is_it = |(name, count): &&(&str, u64)| *name == Unseen::Unblocked.name() && *count > 0;
    if let Some((_, count)) = costs.unseen.iter().find(is_it) {
        say(format_args!(
            "{count} calls sent bytes unsearched, although a rule could have blocked them: a \
             seccomp filter forbids process_vm_readv. Allow that call, or block incoming data \
             instead."
        ));
    }
}
