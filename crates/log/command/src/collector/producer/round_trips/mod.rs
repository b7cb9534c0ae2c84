// SPDX-License-Identifier: Apache-2.0
//! Round trips between two programs of different hosts. A start's collector answers at an
//! address; an end's lends its program the socket that asks, and takes the answers.

mod listener;

use super::event_clock::EventClock;
use listener::Listener;
use std::io;
use std::mem;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tare_command::say;
use tare_log_segment::probe::{ANSWERS, BYTES, Probe};
use tare_log_segment::record::{number_tag, short_tag};
use tare_log_segment::{ChannelId, Configuration, Handler, Identity, Process};

/// Between two attempts to have an address that was refused.
const RETRY: Duration = Duration::from_secs(1);
/// What waits to be written. An answer beyond that is lost; so is the note of one given.
const WAITING: usize = 1 << 16;
/// A duplicate comes within so many others.
const RECENT: usize = 1 << 12;

/// Those of one program.
#[derive(Default)]
pub struct RoundTrips {
    all: Vec<Arc<RoundTripEnd>>,
    refused: Vec<(ChannelId, Configuration)>,
    /// When the refused ones were last tried again.
    tried: Option<Instant>,
}

struct RoundTripEnd {
    id: ChannelId,
    configuration: Configuration,
    event_clock: EventClock,
    socket: Arc<UdpSocket>,
    listener: Arc<Listener>,
    got: Mutex<Received>,
}

/// What came.
struct Received {
    seen: Vec<Arrival>,
    /// Of an end: the numbers of answers, each at its place.
    recent: Vec<u64>,
}

/// What becomes an event.
struct Arrival {
    ticks: u64,
    number: i64,
}

/// What the channel of answers is called.
pub fn name(name: &str, handler: Handler) -> Option<String> {
    match handler {
        Handler::FoxStart => Some(format!("{name} answered")),
        Handler::FoxEnd => Some(format!("{name} rtt")),
        _ => None,
    }
}

impl RoundTrips {
    /// What is in force for a channel is this now.
    pub fn learn(
        &mut self,
        process: &Process,
        id: ChannelId,
        is: Configuration,
        event_clock: EventClock,
    ) {
        if self.all.iter().any(|trip_end| trip_end.id == id && trip_end.configuration == is) {
            return;
        }
        // Before the address is used again.
        self.forget(process, id);
        if matches!(is.handler, Handler::FoxStart | Handler::FoxEnd) {
            self.begin(process, id, is, event_clock);
        }
    }

    fn begin(
        &mut self,
        process: &Process,
        id: ChannelId,
        is: Configuration,
        event_clock: EventClock,
    ) {
        let begun = Listener::start(id, is, event_clock);
        tell_change(is, begun.as_ref().err());
        match begun {
            Ok(trip_end) => {
                let lent = trip_end.identity().filter(|_| is.handler == Handler::FoxEnd);
                process.channels[usize::from(id)].lend(lent);
                self.all.push(trip_end);
            }
            Err(_) => self.refused.push((id, is)),
        }
    }

    /// Tries from time to time to have what was refused.
    pub fn retry(&mut self, process: &Process, event_clock: EventClock) {
        let is_early = self.tried.is_some_and(|tried| tried.elapsed() < RETRY);
        if self.refused.is_empty() || is_early {
            return;
        }
        self.tried = Some(Instant::now());
        for (id, is) in mem::take(&mut self.refused) {
            self.begin(process, id, is, event_clock);
        }
    }

    /// Nothing is asked or answered for the channel.
    pub fn forget(&mut self, process: &Process, id: ChannelId) {
        self.all
            .iter()
            .filter(|trip_end| trip_end.id == id)
            .for_each(|trip_end| trip_end.listener.end(trip_end));
        self.all.retain(|trip_end| trip_end.id != id);
        self.refused.retain(|(refused, _)| *refused != id);
        process.channels[usize::from(id)].lend(None);
    }

    /// The socket that a program asks for.
    pub fn socket(&self, what: Identity) -> Option<BorrowedFd<'_>> {
        let trip_end = self.all.iter().find(|trip_end| trip_end.identity() == Some(what))?;
        Some(trip_end.socket.as_fd())
    }

    /// Appends to `words` what has come; says how many answers those are, by channel. They count,
    /// and are here no longer, once the words are in the file, see `acknowledge`.
    pub fn read(&self, words: &mut Vec<u64>) -> Vec<(ChannelId, usize)> {
        let read = self.all.iter().map(|trip_end| {
            let got = trip_end.received();
            for Arrival { ticks, number } in &got.seen {
                words.push(*ticks);
                match short_tag(trip_end.id | ANSWERS, *number) {
                    Some(tag) => words.push(tag),
                    None => words.extend([number_tag(trip_end.id | ANSWERS), *number as u64, 0]),
                }
            }
            (trip_end.id, got.seen.len())
        });
        read.filter(|(_, count)| *count > 0).collect()
    }

    /// The answers are in the file.
    pub fn acknowledge(&self, process: &Process, told: &[(ChannelId, usize)]) {
        for (id, count) in told {
            let trip_end = self.all.iter().find(|trip_end| trip_end.id == *id);
            if let Some(trip_end) = trip_end {
                trip_end.received().seen.drain(..count);
            }
            process.channels[usize::from(*id)].answered.fetch_add(*count as u64, Relaxed);
        }
    }

    /// Nobody asks or answers here any more; what has come is still to be read.
    pub fn end(&mut self) {
        self.all.iter().for_each(|trip_end| trip_end.listener.end(trip_end));
        self.refused.clear();
    }

    /// How long answers to what was asked may still come; `None` where there are all.
    pub fn patience(&self, process: &Process) -> Option<Duration> {
        let open = self.all.iter().filter(|trip_end| unanswered(process, trip_end.id) > 0);
        open.map(|trip_end| timeout(trip_end.configuration)).max()
    }
}

/// What a channel has asked without an answer in time, or up to now.
pub fn unanswered(process: &Process, id: ChannelId) -> u64 {
    let Some(channel) = process.channels.get(usize::from(id)) else { return 0 };
    match channel.asked_starts.load(Relaxed) {
        0 => 0,
        asked => asked.saturating_sub(channel.answered.load(Relaxed)),
    }
}

/// Where the start is.
fn address(is: Configuration) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from_bits(is.a), is.b as u16)
}

/// How long an answer may take.
fn timeout(is: Configuration) -> Duration {
    match is.b >> 16 {
        0 => Duration::from_secs(1),
        milliseconds => Duration::from_millis(milliseconds.into()),
    }
}

/// Says that an address is refused, and that it no longer is, each once.
fn tell_change(is: Configuration, refusal: Option<&io::Error>) {
    static REFUSED: Mutex<Vec<(Handler, SocketAddrV4)>> = Mutex::new(Vec::new());
    let mut refused = REFUSED.lock().unwrap_or_else(PoisonError::into_inner);
    let what = (is.handler, address(is));
    let known = refused.iter().position(|entry| *entry == what);
    let begin = format!("handlers fox-start and fox-end: address {}", what.1);
    match (refusal, known) {
        (Some(error), None) => {
            refused.push(what);
            say(format_args!(
                "{begin}: {error}; its round trips count as unanswered until the address works"
            ));
        }
        (None, Some(place)) => {
            refused.swap_remove(place);
            say(format_args!("{begin}: it works again"));
        }
        _ => {}
    }
}

impl RoundTripEnd {
    fn new(
        id: ChannelId,
        configuration: Configuration,
        event_clock: EventClock,
        socket: Arc<UdpSocket>,
        listener: Arc<Listener>,
    ) -> Self {
        let recent = if configuration.handler == Handler::FoxEnd { RECENT } else { 0 };
        let got = Mutex::new(Received { seen: Vec::new(), recent: vec![u64::MAX; recent] });
        Self { id, configuration, event_clock, socket, listener, got }
    }

    fn identity(&self) -> Option<Identity> {
        Identity::of(self.socket.as_raw_fd()).ok()
    }

    fn received(&self) -> MutexGuard<'_, Received> {
        self.got.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the datagram that came before `now_ns`, of CLOCK_MONOTONIC_RAW here.
    fn take(&self, now_ns: u64) {
        let ticks = self.event_clock.now();
        let is_end = self.configuration.handler == Handler::FoxEnd;
        let mut bytes = [0; BYTES + 1];
        let Ok((length, from)) = self.socket.recv_from(&mut bytes) else { return };
        let probe = Probe::read(&bytes[..length]).filter(|probe| probe.is_answer == is_end);
        let Some(probe) = probe else { return };
        let mut got = self.received();
        let seen = if is_end {
            self.round_trip(probe, now_ns, &mut got.recent)
        } else {
            // What was asked goes back at once, and is noted with the time of here.
            let _ = self.socket.send_to(&Probe { is_answer: true, ..probe }.bytes(), from);
            Some(Arrival { ticks, number: probe.payload })
        };
        if got.seen.len() < WAITING {
            got.seen.extend(seen);
        }
    }

    /// How long it took, at the time of the event that asked.
    fn round_trip(&self, answer: Probe, now_ns: u64, recent: &mut [u64]) -> Option<Arrival> {
        let now_ns = now_ns.wrapping_add_signed(self.event_clock.ahead_ns);
        let took = now_ns.wrapping_sub(answer.sent_ns);
        let known = &mut recent[answer.number as usize % RECENT];
        let is_late = u128::from(took) > timeout(self.configuration).as_nanos();
        if *known == answer.number || is_late {
            return None;
        }
        *known = answer.number;
        Some(Arrival { ticks: answer.ticks, number: took as i64 })
    }
}
