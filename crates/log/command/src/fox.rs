// SPDX-License-Identifier: Apache-2.0
//! Round trips between two programs of different hosts. A start's collector answers at an
//! address; an end's lends its program the socket that asks, and takes the answers.

use crate::timer::Timer;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tare_clock::Source;
use tare_command::say;
use tare_log_segment::probe::{ANSWERS, BYTES, Probe};
use tare_log_segment::record::{number_tag, short_tag};
use tare_log_segment::{ChannelId, Configuration, Handler, Identity, Process};

/// How often a thread looks whether it is to end.
const PATIENCE: Duration = Duration::from_millis(50);
/// What waits to be written. An answer beyond that is lost; so is the note of one given.
const WAITING: usize = 1 << 16;
/// A duplicate comes within so many others.
const RECENT: usize = 1 << 12;

/// Those of one program.
#[derive(Default)]
pub struct Foxes(Vec<Fox>);

struct Fox {
    id: ChannelId,
    configuration: Configuration,
    socket: Arc<UdpSocket>,
    seen: Receiver<Seen>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What becomes an event.
struct Seen {
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

impl Foxes {
    /// What is in force for a channel is this now.
    pub fn learn(&mut self, process: &Process, id: ChannelId, is: Configuration, timer: Timer) {
        if self.0.iter().any(|fox| fox.id == id && fox.configuration == is) {
            return;
        }
        // Before the address is used again.
        self.forget(process, id);
        let mut lent = None;
        if matches!(is.handler, Handler::FoxStart | Handler::FoxEnd) {
            match Fox::start(id, is, timer) {
                Ok(fox) => {
                    lent = fox.identity().filter(|_| is.handler == Handler::FoxEnd);
                    self.0.push(fox);
                }
                Err(error) => say(format_args!(
                    "address {} of a fox-start or fox-end: {error}; round trips with it get no answer",
                    address(is)
                )),
            }
        }
        process.channels[usize::from(id)].lend(lent);
    }

    /// Nothing is asked or answered for the channel.
    pub fn forget(&mut self, process: &Process, id: ChannelId) {
        self.0.retain(|fox| fox.id != id);
        process.channels[usize::from(id)].lend(None);
    }

    /// The socket that a program asks for.
    pub fn socket(&self, what: Identity) -> Option<BorrowedFd<'_>> {
        let fox = self.0.iter().find(|fox| fox.identity() == Some(what))?;
        Some(fox.socket.as_fd())
    }

    /// Appends to `words` what has come; says how many answers those are, by channel. They count
    /// once the words are in the file, see `tell`.
    pub fn read(&self, words: &mut Vec<u64>) -> Vec<(ChannelId, u64)> {
        let read = self.0.iter().map(|fox| {
            let mut count = 0;
            for Seen { ticks, number } in fox.seen.try_iter().take(WAITING) {
                words.push(ticks);
                match short_tag(fox.id | ANSWERS, number) {
                    Some(tag) => words.push(tag),
                    None => words.extend([number_tag(fox.id | ANSWERS), number as u64, 0]),
                }
                count += 1;
            }
            (fox.id, count)
        });
        read.filter(|(_, count)| *count > 0).collect()
    }

    /// Nobody asks or answers here any more; what has come is still to be read.
    pub fn end(&mut self) {
        self.0.iter().for_each(|fox| fox.is_over.store(true, Relaxed));
        self.0.iter_mut().for_each(Fox::end);
    }

    /// How long answers to what was asked may still come; `None` where there are all.
    pub fn patience(&self, process: &Process) -> Option<Duration> {
        let open = self.0.iter().filter(|fox| unanswered(process, fox.id) > 0);
        open.map(|fox| timeout(fox.configuration)).max()
    }
}

/// The answers are in the file.
pub fn tell(process: &Process, told: &[(ChannelId, u64)]) {
    for (id, count) in told {
        process.channels[usize::from(*id)].answered.fetch_add(*count, Relaxed);
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

impl Fox {
    fn start(id: ChannelId, configuration: Configuration, timer: Timer) -> io::Result<Self> {
        let address = address(configuration);
        let is_end = configuration.handler == Handler::FoxEnd;
        let socket = if is_end {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            // Nothing goes to, or is taken from, anybody else.
            socket.connect(address)?;
            Arc::new(socket)
        } else {
            bound(address)?
        };
        socket.set_read_timeout(Some(PATIENCE))?;
        let (sender, seen) = sync_channel(WAITING);
        let is_over = Arc::new(AtomicBool::new(false));
        let (own, until) = (socket.clone(), is_over.clone());
        let most = timeout(configuration);
        let thread = thread::Builder::new().name("fox".to_owned()).spawn(move || {
            if is_end {
                take_answers(&own, &until, &sender, timer, most);
            } else {
                answer(&own, &until, &sender, timer);
            }
        })?;
        Ok(Self { id, configuration, socket, seen, is_over, thread: Some(thread) })
    }

    fn end(&mut self) {
        self.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    fn identity(&self) -> Option<Identity> {
        Identity::of(self.socket.as_raw_fd()).ok()
    }
}

impl Drop for Fox {
    fn drop(&mut self) {
        self.end();
    }
}

/// The socket of a start. Programs and channels of one collector that have one address share it:
/// one of them takes each question, and whoever ends leaves it to the others.
fn bound(address: SocketAddrV4) -> io::Result<Arc<UdpSocket>> {
    static BOUND: Mutex<Vec<(SocketAddrV4, Weak<UdpSocket>)>> = Mutex::new(Vec::new());
    let mut bound = BOUND.lock().unwrap_or_else(PoisonError::into_inner);
    bound.retain(|(_, socket)| socket.strong_count() > 0);
    let known = bound.iter().find(|(of, _)| *of == address);
    if let Some(socket) = known.and_then(|(_, socket)| socket.upgrade()) {
        return Ok(socket);
    }
    let socket = Arc::new(UdpSocket::bind(address)?);
    bound.push((address, Arc::downgrade(&socket)));
    Ok(socket)
}

/// At the start: what was asked goes back at once, and is noted with the time of here.
fn answer(socket: &UdpSocket, is_over: &AtomicBool, seen: &SyncSender<Seen>, timer: Timer) {
    let mut bytes = [0; BYTES + 1];
    while !is_over.load(Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
        let ticks = timer.now();
        let Some(question) = Probe::read(&bytes[..length]).filter(|probe| !probe.is_answer) else {
            continue;
        };
        let _ = socket.send_to(&Probe { is_answer: true, ..question }.bytes(), from);
        let _ = seen.try_send(Seen { ticks, number: question.payload });
    }
}

/// At the end: how long it took, at the time of the event that asked.
fn take_answers(
    socket: &UdpSocket,
    is_over: &AtomicBool,
    seen: &SyncSender<Seen>,
    timer: Timer,
    most: Duration,
) {
    let mut bytes = [0; BYTES + 1];
    let mut recent = [u64::MAX; RECENT];
    while !is_over.load(Relaxed) {
        let Ok(length) = socket.recv(&mut bytes) else { continue };
        let now = Source::Monotonic.now().wrapping_add_signed(timer.ahead_ns);
        let Some(answer) = Probe::read(&bytes[..length]).filter(|probe| probe.is_answer) else {
            continue;
        };
        let took = now.wrapping_sub(answer.sent_ns);
        let known = &mut recent[answer.number as usize % RECENT];
        if *known != answer.number && u128::from(took) <= most.as_nanos() {
            *known = answer.number;
            let _ = seen.try_send(Seen { ticks: answer.ticks, number: took as i64 });
        }
    }
}
