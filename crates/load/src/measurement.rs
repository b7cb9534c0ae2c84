// SPDX-License-Identifier: Apache-2.0
//! One measurement: the threads that send, and this one, which records.

use crate::clock::Nanoseconds;
use crate::http2::Http2;
use crate::net::connections::Connections;
use crate::record::live::Live;
use crate::record::readings::{Gauges, Process};
use crate::record::recorder::{PlannedTable, Recorder};
use crate::record::sample_queue::SampleQueue;
use crate::record::summary::Summary;
use crate::record::tables;
use crate::schedule::arrivals::{Arrivals, Mode, Share};
use crate::schedule::slices::Schedule;
use crate::stop;
use crate::workers::single_user::SingleUser;
use crate::workers::user_pool::UserPool;
use crate::workers::{Leader, Sender, Settings, Workers};
use rtrb::RingBuffer;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use tare_command::{Failure, ResultExt};
use tare_tables::{MACHINE, SAMPLES};

/// Files that each thread keeps open: its epoll set and its schedstat.
pub const FILES_OF_A_THREAD: usize = 2;
/// Slices that wait for the recorder: about a second of the shortest ones.
const SLICES: usize = 1 << 14;

pub struct Measurement {
    pub settings: Settings,
    pub mode: Mode,
    /// The most that a slice has, of all threads together.
    pub users: usize,
    pub threads: usize,
    /// Of HTTP/2, of all threads together; else each user has its own.
    pub connections: Option<usize>,
    /// The most requests that a user has under way.
    pub pipeline: usize,
    pub schedule: Box<dyn Schedule>,
    /// Processes by target.
    pub watched: Vec<Vec<Process>>,
    pub samples: PlannedTable,
    pub machine: PlannedTable,
    pub live: Live,
}

impl Measurement {
    /// Carries the schedule out and returns what came of each target.
    pub fn carry_out(self) -> Result<Vec<Summary>, Failure> {
        let (measured, slices) = RingBuffer::new(SLICES);
        let (queues, samples): (Vec<_>, Vec<_>) =
            (0..self.threads).map(|_| SampleQueue::new()).unzip();
        let workers = Arc::new(Workers::new(self.threads, self.settings.clock));
        let started = queues
            .into_iter()
            .enumerate()
            .map(|(thread, queue)| {
                let share = Share { thread, threads: self.threads, pipeline: self.pipeline };
                start(self.sender(share)?, queue, workers.clone())
            })
            .collect::<Result<Vec<_>, Failure>>()?;
        let identifiers: Vec<_> = started.iter().filter_map(|thread| thread.identify()).collect();
        let gauges = Gauges::open(&identifiers, self.watched);
        // From here on nothing is refused any more: what stood in the files may go.
        let samples_file = self.samples.begin(&SAMPLES, &tables::SAMPLES)?;
        let machine_file = self.machine.begin(&MACHINE, &tables::MACHINE)?;
        let mut leader = Some(Leader { schedule: self.schedule, gauges, measured });
        for thread in &started {
            // A thread that is gone already is seen as finished below.
            let _ = thread.go.send(leader.take());
        }
        let handles: Vec<_> = started.into_iter().map(|thread| thread.handle).collect();
        let targets = self.settings.targets.iter();
        let recorder = Recorder {
            samples: samples_file,
            machine: machine_file,
            queues: samples,
            measured: slices,
            summaries: targets.map(|target| Summary::new(target.name.clone())).collect(),
            live: self.live,
        };
        let summaries = recorder.record(&handles)?;
        if handles.into_iter().any(|handle| handle.join().is_err()) {
            return Err(Failure::work("a thread of the generator failed"));
        }
        match stop::failure() {
            Some(why) => Err(Failure::work(why)),
            None => Ok(summaries),
        }
    }

    fn sender(&self, share: Share) -> Result<Box<dyn Sender + Send>, Failure> {
        let settings = self.settings.clone();
        let one_by_one = self.users == 1 && self.pipeline == 1;
        if self.mode == Mode::Closed && one_by_one && self.connections.is_none() {
            return Ok(Box::new(SingleUser::new(settings)));
        }
        let arrivals = || match self.mode {
            Mode::Closed => Arrivals::closed(),
            Mode::Constant { rate } => Arrivals::constant(rate, self.users, share),
            Mode::Open { rate } => Arrivals::open(rate, self.users, share),
        };
        let users = share.of(self.users);
        if let Some(connections) = self.connections {
            let transport = Http2::new(settings.clone(), users, share.of(connections));
            let transport = transport.or_failed("epoll")?;
            return Ok(Box::new(UserPool::new(settings, self.users, share, transport, arrivals)));
        }
        let targets = settings.targets.clone();
        let transport = Connections::new(targets, users, self.pipeline, settings.per_request);
        let transport = transport.or_failed("epoll")?;
        Ok(Box::new(UserPool::new(settings, self.users, share, transport, arrivals)))
    }
}

struct Started {
    identity: mpsc::Receiver<libc::pid_t>,
    /// The thread waits for this; the leader's is not empty.
    go: mpsc::Sender<Option<Leader>>,
    handle: JoinHandle<()>,
}

impl Started {
    fn identify(&self) -> Option<libc::pid_t> {
        self.identity.recv().ok()
    }
}

fn start(
    mut sender: Box<dyn Sender + Send>,
    mut queue: SampleQueue,
    workers: Arc<Workers>,
) -> Result<Started, Failure> {
    let (announce, identity) = mpsc::channel();
    let (go, gone) = mpsc::channel();
    let handle = thread::Builder::new().spawn(move || {
        be_punctual();
        let _ = announce.send(thread_identifier());
        if let Ok(leader) = gone.recv() {
            workers.work(&mut *sender, &mut queue, leader);
        }
    });
    let handle = handle
        .or_failed("a thread cannot be started, lower --threads or raise the limit (ulimit -u)")?;
    Ok(Started { identity, go, handle })
}

/// The kernel may wake a thread 50 µs late to save power, unless it is told not to.
fn be_punctual() {
    let slack: Nanoseconds = 1;
    // SAFETY: no pointers are passed.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack) };
}

fn thread_identifier() -> libc::pid_t {
    // glibc has a function for it since 2.30 only.
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}
