// SPDX-License-Identifier: Apache-2.0
//! A program that is searched and its tare-hook, each with its own mapping of what they share, while a
//! third changes anything in it, between their steps and during them: neither crashes or goes on for
//! ever, and what tare-hook writes is whole lines of JSON. Each input is one seed of `ROUNDS`
//! mutations, and of others at moments that no seed decides.
#![no_main]

use libc::{c_int, c_void};
use libfuzzer_sys::fuzz_target;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;
use tare_clock::Snapshot;
use tare_hook_segment::{
    Action, Control, Counters, Directions, EventRing, Generation, Keyword, Scope, Shared,
    Statistics, Symbol, VERSION,
};
use tare_shm::{Access, Segment};
use tare_tables::Vacant;

#[path = "../concurrent_mutation.rs"]
mod concurrent_mutation;
#[path = "../mutator.rs"]
mod mutator;

#[allow(dead_code, reason = "it is the library's")]
#[path = "../../crates/hook/preload/src"]
mod library {
    pub mod calls;
    pub mod connection;
    pub mod memory;
    pub mod record;
    pub mod search;
    pub mod thread;
}

#[allow(dead_code, reason = "it is tare-hook's")]
#[path = "../../crates/hook/command/src"]
mod command {
    pub mod costs;
    pub mod drain;
    pub mod event_accounts;
    pub mod event_file;
    pub mod event_line;
    pub mod event_times;
    pub mod poll_interval;
    pub mod rules_file;
    pub mod segments;
    pub mod stats;
}

// As they call one another.
use command::{
    costs, drain, event_accounts, event_file, event_line, event_times, poll_interval, rules_file,
    segments, stats,
};
use library::{calls, connection, memory, record, search, thread};

use calls::{receive, send};
use concurrent_mutation::ConcurrentMutation;
use costs::Costs;
use drain::Drain;
use event_accounts::{EventAccounts, EventCounts};
use event_file::EventFile;
use mutator::Mutator;
use poll_interval::Pace;
use record::hook::{DESCRIPTORS, Hook};
use rules_file::RuleBook;
use segments::Segments;

const ROUNDS: usize = 100;
const QUIET: c_int = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;

/// The program of this process, its tare-hook, and whoever changes what they share.
struct Setup {
    hook: Segments,
    memory: &'static [AtomicU64],
    /// Connected to each other.
    sockets: [c_int; 2],
}

static SETUP: LazyLock<Setup> = LazyLock::new(|| {
    let (hook, handover) = Segments::create().expect("there is memory");
    let open = |fd, kind, access| Segment::open(fd, kind, VERSION, access).expect("it is one");
    let control = open(handover.control, Control::KIND, Access::ReadOnly);
    let shared = open(handover.shared, Shared::KIND, Access::ReadWrite);
    // SAFETY: both types hold atomics only.
    let (control, shared) = unsafe { (control.at::<Control>(0), shared.at::<Shared>(0)) };
    Hook::start(control.expect("its size"), shared.expect("its size"));
    let keywords = [&b"ab"[..], b"bba"].map(|text| Keyword {
        text,
        ignore_case: true,
        scope: Scope::All,
        directions: Directions::Both,
        action: Action::Trace,
    });
    hook.control.publish(&Generation::build(&keywords).expect("they fit"));
    let mutation = open(handover.shared, Shared::KIND, Access::ReadWrite);
    let memory = mutation.words(0, size_of::<Shared>() / 8).expect("its size");
    let mut sockets = [-1; 2];
    // SAFETY: the kernel writes two descriptors.
    let made =
        unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, &raw mut sockets[0]) };
    assert_eq!(made, 0);
    DESCRIPTORS.opened(sockets[0], libc::AF_UNIX, libc::SOCK_STREAM);
    Setup { hook, memory, sockets }
});

/// A word that something is kept in, as its place in the memory.
fn place(mutator: &mut Mutator) -> usize {
    let statistics = size_of::<Statistics>() / 8;
    let counters = Symbol::ALL.len() * size_of::<Counters>() / 8;
    let (first, ring) = (offset_of!(Shared, rings) / 8, size_of::<EventRing>() / 8);
    let places = [
        (0, 64),
        (offset_of!(Shared, attached) / 8, 150),
        (offset_of!(Shared, owners) / 8, 4),
        (offset_of!(Shared, written) / 8, 9),
        (offset_of!(Shared, statistics) / 8, counters),
        (offset_of!(Shared, statistics) / 8, 8 * statistics),
        (first, 32),
        (first, 32),
        (first, ring),
        (first, 8 * ring),
    ];
    let (begin, words) = places[mutator.below(places.len())];
    begin + mutator.below(words)
}

/// The program sends and receives some bytes, in which the keywords are.
fn search_some(setup: &Setup, mutator: &mut Mutator) {
    let [fd, peer] = setup.sockets;
    let letters = |_| b"abAB"[mutator.below(4)];
    let bytes: Vec<u8> = (0..256).map(letters).collect();
    let (first, length) = (bytes.as_ptr().cast::<c_void>(), 1 + mutator.below(bytes.len()));
    send::buffer(Symbol::send, fd, first, length, 0, |first, length| {
        // SAFETY: the bytes live as long as the call.
        unsafe { libc::send(fd, first, length, QUIET) }
    });
    // SAFETY: as above.
    unsafe { libc::send(peer, first, length, QUIET) };
    let mut room = [0u8; 1024];
    let first = room.as_mut_ptr().cast();
    let length = 1 + mutator.below(room.len());
    receive::buffer(Symbol::recv, fd, first, length, 0, || {
        // SAFETY: the room is as long.
        unsafe { libc::recv(fd, first, length, QUIET) }
    });
    // SAFETY: as above; nothing is left there.
    while unsafe { libc::recv(peer, first, room.len(), QUIET) } > 0 {}
}

/// What a tare-hook has of a session.
struct Session {
    drain: Drain,
    accounts: EventAccounts,
    book: RuleBook,
    events: EventFile,
    pace: Pace,
}

impl Session {
    /// One that takes over what another has left.
    fn open(setup: &Setup, path: &Path) -> Self {
        let shared = setup.hook.shared;
        let drain = Drain::new(shared);
        let accounts = EventAccounts::open(shared, drain.taken());
        let book = RuleBook::adopt(setup.hook.control);
        let mut events = EventFile::open_again(path).expect("/dev/shm is there");
        events.go_on().expect("/dev/shm has room");
        Self { drain, accounts, book, events, pace: Pace::of(shared) }
    }

    fn turn(&mut self) {
        self.drain.collect();
        let (now, rate) = (Snapshot::take(), self.pace.rate());
        let (book, file) = (&self.book, &mut self.events);
        let done = self.drain.until(u64::MAX, |events| file.append(events, book, &now, rate));
        done.expect("/dev/shm has room");
        self.accounts.enter(self.counts());
    }

    fn counts(&self) -> EventCounts {
        let unwritten = self.events.lost() + self.drain.damaged();
        EventCounts { written: self.events.written, unwritten, unwanted: 0 }
    }

    /// What is told of the session, in all forms.
    fn tell(&mut self, setup: &Setup) {
        let (costs, rate) = (Costs::read(setup.hook.shared), self.pace.rate());
        let counts = self.accounts.total(self.counts());
        let run = stats::Run {
            keywords: self.book.keywords(),
            reloads: self.book.reloads,
            rules_refused: self.book.refused,
            events_written: counts.written,
            events_lost: self.drain.dropped().saturating_add(counts.unwritten),
            events_unwanted: counts.unwanted,
            ticks_invariant: true,
        };
        let _ = (stats::to_json(&costs, &run, rate), stats::to_table(&costs, &run, rate));
        let file = File::options().write(true).open("/dev/null").and_then(Vacant::of);
        let written = file.and_then(|file| costs.write(file, rate, run.events_lost));
        written.expect("/dev/null has room");
    }
}

fn check(path: &Path) -> io::Result<()> {
    for line in BufReader::new(File::open(path)?).lines() {
        serde_json::from_str::<serde_json::Value>(&line?).expect("a line is an event");
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    let setup = &*SETUP;
    let path = PathBuf::from(format!("/dev/shm/tare-fuzz-{}", std::process::id()));
    let mut mutator = Mutator::of(data);
    ConcurrentMutation::run(setup.memory, place, 1 << 16, &mut mutator, |mutation, mutator| {
        search_and_tell(setup, &path, mutation, mutator);
    });
    check(&path).expect("it was written");
    fs::remove_file(&path).expect("it was written");
});

fn search_and_tell(
    setup: &Setup,
    path: &Path,
    mutation: &ConcurrentMutation<'_>,
    mutator: &mut Mutator,
) {
    let mut session = Session::open(setup, path);
    for _ in 0..ROUNDS {
        mutation.change(mutator);
        search_some(setup, mutator);
        match mutator.below(64) {
            0 => session = Session::open(setup, path),
            1 => session.tell(setup),
            2 => session.drain.reclaim(),
            3..32 => session.turn(),
            _ => {}
        }
    }
    session.turn();
}
