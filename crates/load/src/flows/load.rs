// SPDX-License-Identifier: Apache-2.0
//! The load of many flows: when each sends, what came back, and the report.

use crate::arguments::flows::{Flavor, FlowProtocol, Flows};
use crate::clock::{Clock, Nanoseconds};
use crate::flows::flow::{Done, Flow, Stream};
use crate::flows::report::{self, Row, TOTAL};
use crate::net::epoll::{Epoll, Interest};
use crate::record::recorder::Output;
use crate::record::sample::{ErrorKind, Outcome, Sample};
use crate::record::summary::Summary;
use crate::record::tables::write_sample;
use crate::stop::{self, LOOK_UP};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;
use tare_command::{Failure, ResultExt};
use tare_tables::Writer;

/// How long to wait for a slot where as many flows are under way as there can be, ns.
const FULL: Nanoseconds = 1_000_000;
/// Messages that are sent before replies are read, and a wish to stop is seen, again.
const BURST: usize = 256;

pub struct Load<'a> {
    transport: FlowProtocol,
    flavor: Flavor,
    arguments: &'a Flows,
    peers: Vec<SocketAddr>,
    clock: Clock,
    epoll: Epoll,
    flows: Vec<Flow>,
    /// How often a slot has had another flow: events of the one before are ignored.
    generations: Vec<u32>,
    free: Vec<usize>,
    /// Flows that there can be.
    most: usize,
    under_way: usize,
    /// When who sends next: a flow (persistent), or the next flow to a server (ephemeral).
    due: BinaryHeap<Reverse<(Nanoseconds, usize)>>,
    /// When which flow is given up, if it still has its message of that mark.
    deadlines: VecDeque<(Nanoseconds, usize, u64)>,
    marks: Vec<u64>,
    mark: u64,
    message: Vec<u8>,
    buffer: Vec<u8>,
    period: Nanoseconds,
    started: Nanoseconds,
    reported: Nanoseconds,
    /// When the last message was due, or sent late; 0 before.
    ended: Nanoseconds,
    sending: bool,
    interval: Vec<Summary>,
    total: Vec<Summary>,
    /// Why the first message that failed did.
    reason: Option<String>,
    pub samples: Output,
}

impl<'a> Load<'a> {
    pub fn new(
        transport: FlowProtocol,
        flavor: Flavor,
        arguments: &'a Flows,
        peers: Vec<SocketAddr>,
        most: usize,
    ) -> Result<Self, Failure> {
        let length = arguments.message_bytes as usize;
        let message: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(length).collect();
        let summaries = || peers.iter().map(|peer| Summary::new(peer.to_string())).collect();
        let mut load = Self {
            transport,
            flavor,
            arguments,
            clock: Clock::start(),
            epoll: Epoll::new().or_failed("no epoll")?,
            flows: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            most,
            under_way: 0,
            due: BinaryHeap::new(),
            deadlines: VecDeque::new(),
            marks: Vec::new(),
            mark: fastrand::u64(..1 << 62),
            message,
            buffer: vec![0; length + 1],
            period: (1e9 / arguments.rate) as Nanoseconds,
            started: 0,
            reported: 0,
            ended: 0,
            sending: true,
            interval: summaries(),
            total: summaries(),
            reason: None,
            samples: Output::default(),
            peers,
        };
        if flavor == Flavor::Persistent {
            load.connect_all()?;
        }
        Ok(load)
    }

    /// Makes the connections that stay.
    fn connect_all(&mut self) -> Result<(), Failure> {
        for peer in 0..self.peers.len() {
            for _ in 0..self.arguments.connections {
                let address = self.peers[peer];
                let stream = Stream::connected(self.transport, &address, self.arguments.timeout)
                    .or_failed(format_args!("{address} cannot be reached"))?;
                if stop::asked() {
                    return Ok(());
                }
                let at = self.insert(Flow::idle(peer, Some(stream)));
                self.watch(at)?;
            }
        }
        Ok(())
    }

    fn insert(&mut self, flow: Flow) -> usize {
        if let Some(at) = self.free.pop() {
            self.generations[at] = self.generations[at].wrapping_add(1);
            self.flows[at] = flow;
            return at;
        }
        self.flows.push(flow);
        self.generations.push(0);
        self.marks.push(0);
        self.flows.len() - 1
    }

    fn watch(&self, at: usize) -> Result<(), Failure> {
        let key = u64::from(self.generations[at]) << 32 | at as u64;
        let Some(stream) = &self.flows[at].stream else { return Ok(()) };
        self.epoll.add(stream.raw(), key, Interest::Edges).or_failed("a socket cannot be polled")
    }

    pub fn carry_out(&mut self) -> Result<(), Failure> {
        self.started = self.clock.now();
        self.reported = self.started;
        let senders = match self.flavor {
            Flavor::Persistent => self.flows.len(),
            Flavor::Ephemeral => self.peers.len(),
        };
        for sender in 0..senders {
            // Spread, so that they do not all send at one moment.
            let share = self.period as f64 * sender as f64 / senders as f64;
            self.due.push(Reverse((self.started + share as Nanoseconds, sender)));
        }
        let end = self.started + nanoseconds(self.arguments.duration);
        loop {
            let now = self.clock.now();
            let nothing_due = self.due.peek().is_none_or(|Reverse((due, _))| *due >= end);
            let too_late = now >= end + nanoseconds(self.arguments.timeout);
            if self.sending && now >= end && (nothing_due || too_late || stop::asked()) {
                self.sending = false;
                self.ended = now;
            }
            if stop::asked() || (!self.sending && self.under_way == 0) {
                return Ok(());
            }
            if self.sending {
                self.send_what_is_due(now.min(end - 1))?;
            }
            self.give_up_late(now);
            if self.sending && now >= self.reported + nanoseconds(self.arguments.interval) {
                self.report(now)?;
            }
            self.samples.write(Writer::flush_if_due);
            self.epoll.wait(self.next(end) - self.clock.now());
            for event in 0..self.epoll.ready() {
                let (key, writable) = self.epoll.event(event);
                let (at, generation) = ((key & u64::from(u32::MAX)) as usize, (key >> 32) as u32);
                if self.generations[at] == generation && self.flows[at].is_under_way() {
                    self.go_on(at, writable);
                }
            }
        }
    }

    /// When there is something to do besides events.
    fn next(&self, end: Nanoseconds) -> Nanoseconds {
        let now = self.clock.now();
        let mut next = now + LOOK_UP.as_nanos() as Nanoseconds;
        if self.sending {
            next = next.min(self.reported + nanoseconds(self.arguments.interval));
            next = if now < end { next.min(end) } else { next };
            if self.under_way >= self.most {
                next = next.min(now + FULL);
            } else if let Some(Reverse((due, _))) = self.due.peek().filter(|one| one.0.0 < end) {
                next = next.min(*due);
            }
        }
        self.deadlines.front().map_or(next, |(deadline, ..)| next.min(*deadline))
    }

    fn send_what_is_due(&mut self, now: Nanoseconds) -> Result<(), Failure> {
        for _ in 0..BURST {
            let Some(Reverse((due, sender))) = self.due.peek().copied() else { return Ok(()) };
            if due > now || self.under_way >= self.most {
                return Ok(());
            }
            self.due.pop();
            let start = self.clock.now();
            match self.flavor {
                Flavor::Persistent => self.begin(sender, due, start)?,
                Flavor::Ephemeral => {
                    self.due.push(Reverse((due + self.period, sender)));
                    let at = self.insert(Flow::idle(sender, None));
                    self.begin(at, due, start)?;
                }
            }
        }
        Ok(())
    }

    /// Begins a message, on a new connection if the flow has none.
    fn begin(&mut self, at: usize, due: Nanoseconds, start: Nanoseconds) -> Result<(), Failure> {
        self.mark += 1;
        self.marks[at] = self.mark;
        self.under_way += 1;
        let timeout = nanoseconds(self.arguments.timeout);
        self.deadlines.push_back((start + timeout, at, self.mark));
        let connects = self.flows[at].stream.is_none();
        let is_tcp = self.transport == FlowProtocol::Tcp;
        self.flows[at].begin(due, start, self.mark, connects && is_tcp);
        if connects {
            match Stream::begin(self.transport, &self.peers[self.flows[at].peer]) {
                Ok(stream) => self.flows[at].stream = Some(stream),
                Err(error) => {
                    self.flows[at].refusal = Some(error);
                    self.end(at, Err(ErrorKind::Connect));
                    return Ok(());
                }
            }
            self.watch(at)?;
        }
        if !(connects && is_tcp) {
            self.go_on(at, false);
        }
        Ok(())
    }

    fn go_on(&mut self, at: usize, writable: bool) {
        let done = self.flows[at].go_on(writable, &mut self.message, &mut self.buffer);
        if let Some(done) = done {
            self.end(at, done);
        }
    }

    fn give_up_late(&mut self, now: Nanoseconds) {
        while let Some(&(deadline, at, mark)) = self.deadlines.front() {
            let over = !self.flows[at].is_under_way() || self.marks[at] != mark;
            if !over && deadline > now {
                return;
            }
            self.deadlines.pop_front();
            if !over {
                self.end(at, Err(ErrorKind::Timeout));
            }
        }
    }

    /// Records a message; a connection that failed is closed, and made anew for the next one.
    fn end(&mut self, at: usize, done: Done) {
        let now = self.clock.now();
        let flow = &mut self.flows[at];
        flow.end();
        self.under_way -= 1;
        let refusal = flow.refusal.take();
        if let Err(kind) = done
            && self.reason.is_none()
        {
            self.reason = Some(match (refusal, kind) {
                (Some(error), _) => error.to_string(),
                (None, ErrorKind::Timeout) => {
                    format!("no complete reply within {:?}", self.arguments.timeout)
                }
                (None, ErrorKind::Body) => "other bytes came back".to_owned(),
                (None, _) => "the server closed the connection".to_owned(),
            });
        }
        let outcome = Outcome { status: 0, error: done.err(), bytes: flow.received as u64 };
        let sample = Sample {
            target: 0,
            slice: 0,
            intended: flow.intended,
            start: flow.start,
            duration: now - flow.start,
            outcome,
        };
        let total = &mut self.total[flow.peer];
        let (name, seq) = (&total.name, total.requests.cast_signed());
        self.samples.write(|writer| write_sample(writer, name, seq, &sample));
        total.add(&sample);
        self.interval[flow.peer].add(&sample);
        match self.flavor {
            Flavor::Ephemeral => {
                flow.stream = None;
                self.free.push(at);
            }
            Flavor::Persistent => {
                if outcome.error.is_some() {
                    flow.stream = None;
                    self.generations[at] = self.generations[at].wrapping_add(1);
                }
                // One message at a time: what is late does not catch up.
                self.due.push(Reverse(((flow.intended + self.period).max(now), at)));
            }
        }
    }

    fn report(&mut self, now: Nanoseconds) -> Result<(), Failure> {
        let fresh = self.peers.iter().map(|peer| Summary::new(peer.to_string())).collect();
        let summaries = std::mem::replace(&mut self.interval, fresh);
        let rows = self.rows(summaries, now - self.reported);
        self.reported = now;
        match (self.arguments.json || self.arguments.show_only_results, self.arguments.jsonlines) {
            (true, _) => Ok(()),
            (false, true) => tare_command::print(report::json_lines(&rows, now, false)),
            (false, false) => tare_command::print(report::table(&rows)),
        }
    }

    fn rows(&self, summaries: Vec<Summary>, duration: Nanoseconds) -> Vec<Row> {
        let row = |mut summary: Summary| {
            summary.duration = duration;
            Row { peer: summary.name.clone(), summary }
        };
        summaries.into_iter().map(row).collect()
    }

    /// Prints the report of the whole time.
    pub fn finish(mut self) -> Result<ExitCode, Failure> {
        let now = self.clock.now();
        let samples = std::mem::take(&mut self.samples);
        samples.finish()?;
        // A signal comes before the end.
        let ended = if self.ended > 0 { self.ended } else { now };
        let duration = (ended - self.started).max(1);
        let total = std::mem::take(&mut self.total);
        let mut rows = self.rows(total, duration);
        let (requests, errors) = rows.iter().fold((0, 0), |(requests, errors), row| {
            (requests + row.summary.requests, errors + row.summary.errors)
        });
        let first = rows[0].peer.clone();
        if self.arguments.merge_results_each_host {
            rows = report::merged(&self.peers, rows);
        }
        let text = if self.arguments.json {
            format!("{}\n", report::json(&rows, self.asked()))
        } else if self.arguments.jsonlines {
            report::json_lines(&rows, now, true)
        } else {
            let reached: f64 = rows.iter().map(|row| row.summary.rate()).sum();
            format!(
                "{TOTAL}{}{reached:.0} of {:.0} messages/s came back\n",
                report::table(&rows),
                self.asked()
            )
        };
        tare_command::print(text)?;
        if requests == errors && errors > 0 {
            return Err(Failure::work(format_args!(
                "{first}: no message came back: {}; is a server running there? \
                 Start one with: tare load serve",
                self.reason.unwrap_or_default()
            )));
        }
        Ok(match stop::signal() {
            Some(signal) => ExitCode::from(128 + signal as u8),
            None => ExitCode::SUCCESS,
        })
    }

    /// Messages per second that all servers together should have.
    fn asked(&self) -> f64 {
        let each = match self.flavor {
            Flavor::Persistent => f64::from(self.arguments.connections),
            Flavor::Ephemeral => 1.0,
        };
        self.arguments.rate * each * self.peers.len() as f64
    }
}

fn nanoseconds(time: Duration) -> Nanoseconds {
    Nanoseconds::try_from(time.as_nanos()).unwrap_or(Nanoseconds::MAX)
}
