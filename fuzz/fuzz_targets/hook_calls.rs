// SPDX-License-Identifier: Apache-2.0
//! Whatever a peer sends and however a program asks for it, with counts, lengths and addresses that
//! make no sense, the hook neither crashes nor reads outside, and every call returns; in a stream that
//! is read and written in the usual ways, it finds what comparing everywhere finds.
#![no_main]

use arbitrary::Arbitrary;
use libc::{c_int, c_void, iovec, mmsghdr, msghdr};
use libfuzzer_sys::fuzz_target;
use std::ptr::null_mut;
use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;
use tare_hook_segment::{
    Action, Control, Directions, Generation, Keyword, Scope, Shared, Symbol, VERSION,
};
use tare_shm::Segment;

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

// As they call one another.
use library::{calls, connection, memory, record, search, thread};

use calls::{receive, send, tracking};
use record::hook::{DESCRIPTORS, Hook};

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq)]
enum Socket {
    Tcp,
    Stream,
    Datagram,
}

#[derive(Arbitrary, Debug)]
struct Rule<'a> {
    text: &'a [u8],
    ignore_case: bool,
    blocks: bool,
    direction: u8,
}

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    PeerSends(&'a [u8]),
    PeerSendsDescriptors(u8, &'a [u8]),
    PeerSendsUrgent(u8),
    PeerCloses,
    Read(u8),
    Recv(u8, u16),
    Readv(Vec<u8>),
    Recvmsg { lengths: Vec<u8>, control: u8, flags: u16 },
    Recvmmsg { messages: Vec<Vec<u8>>, control: u8, flags: u16 },
    Write(&'a [u8]),
    Writev(Vec<&'a [u8]>),
    Sendmsg(Vec<&'a [u8]>),
    Sendmmsg(Vec<Vec<&'a [u8]>>),
    Absurd { call: u8, address: Address, count: u32, length: u64, flags: u16 },
    Rules(Vec<Rule<'a>>),
    ReplacedUnseen,
    Doubled,
}

/// Where there are no bytes, or fewer than the call is told.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Address {
    Null,
    Low,
    Kernel,
    Unreadable,
    /// Before the end of what can be read.
    Edge,
    /// Room for all that the peer sends.
    Room,
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    socket: Socket,
    rules: Vec<Rule<'a>>,
    steps: Vec<Step<'a>>,
}

/// Bytes that the peer sends at most.
const MOST: usize = 1 << 15;
const ROOM: usize = 1 << 16;
const FLAGS: c_int = libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_OOB | libc::MSG_ERRQUEUE;

struct Setup {
    hook: Hook,
    unreadable: usize,
    /// The lowest descriptor of an input.
    first: c_int,
}

static SETUP: LazyLock<Setup> = LazyLock::new(|| {
    let make = |kind, size| Segment::create(c"fuzz", kind, VERSION, size).expect("a segment").1;
    let control = Box::leak(Box::new(make(Control::KIND, size_of::<Control>())));
    let shared = Box::leak(Box::new(make(Shared::KIND, size_of::<Shared>())));
    // SAFETY: both types hold atomics only.
    let (control, shared) = unsafe { (control.at::<Control>(0), shared.at::<Shared>(0)) };
    let (control, shared) = (control.expect("its size"), shared.expect("its size"));
    tare_interpose::watch_forks();
    Hook::start(control, shared);
    // SAFETY: a mapping of its own, and a descriptor that is closed at once.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let readable = libc::PROT_READ | libc::PROT_WRITE;
        let mapped = libc::mmap(null_mut(), 1 << 17, readable, flags, -1, 0);
        let unreadable = mapped.byte_add(1 << 16);
        libc::mprotect(unreadable, 1 << 16, libc::PROT_NONE);
        let first = libc::dup(2);
        libc::close(first);
        Setup { hook: Hook::get().expect("it was started"), unreadable: unreadable.addr(), first }
    }
});

/// Few different letters: then keywords overlap, and texts have many of them.
fn spell(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| b"abAB"[usize::from(byte & 3)]).collect()
}

/// What the program has: two connected sockets, and memory for what it receives.
struct Program {
    fd: c_int,
    peer: c_int,
    room: Vec<u8>,
    sent_by_peer: usize,
    came: Vec<u8>,
    went: Vec<u8>,
    /// Only calls whose bytes are known were made.
    is_usual: bool,
}

impl Program {
    fn new(socket: Socket) -> Option<Self> {
        let (domain, kind) = match socket {
            Socket::Tcp => (libc::AF_INET, libc::SOCK_STREAM),
            Socket::Stream => (libc::AF_UNIX, libc::SOCK_STREAM),
            Socket::Datagram => (libc::AF_UNIX, libc::SOCK_DGRAM),
        };
        let [fd, peer] = if socket == Socket::Tcp { tcp()? } else { pair(domain, kind)? };
        DESCRIPTORS.opened(fd, domain, kind);
        let (room, came, went) = (vec![0; ROOM], vec![], vec![]);
        Some(Self { fd, peer, room, sent_by_peer: 0, came, went, is_usual: true })
    }

    fn address(&self, address: Address) -> *mut c_void {
        match address {
            Address::Null => null_mut(),
            Address::Low => 4096 as *mut c_void,
            Address::Kernel => (usize::MAX - 65535) as *mut c_void,
            Address::Unreadable => SETUP.unreadable as *mut c_void,
            Address::Edge => (SETUP.unreadable - 8) as *mut c_void,
            Address::Room => self.room.as_ptr().cast_mut().cast(),
        }
    }

    fn peer_sends(&mut self, bytes: &[u8], control: &mut [u8], flags: c_int) {
        let bytes = spell(&bytes[..bytes.len().min(MOST - self.sent_by_peer)]);
        let mut vector = iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let message = message(std::slice::from_mut(&mut vector), control);
        // SAFETY: the message and what it names live as long as the call.
        let sent = unsafe { libc::sendmsg(self.peer, &raw const message, flags | QUIET) };
        self.sent_by_peer += sent.max(0) as usize;
    }

    fn received(&mut self, result: isize, flags: c_int) {
        let length = usize::try_from(result).unwrap_or(0);
        if flags & FLAGS == 0 {
            self.came.extend(&self.room[..length.min(ROOM)]);
        } else {
            self.is_usual &= length == 0 || flags & FLAGS == libc::MSG_PEEK;
        }
    }

    /// Vectors of these lengths, one behind the other in the room.
    fn vectors(&mut self, lengths: &[u8]) -> Vec<iovec> {
        let mut place = 0;
        let vectors = lengths.iter().map(|length| {
            let base = self.room[place..].as_mut_ptr().cast();
            place += usize::from(*length);
            iovec { iov_base: base, iov_len: (*length).into() }
        });
        vectors.take(100).collect()
    }

    fn step(&mut self, step: &Step<'_>) {
        let (fd, room) = (self.fd, self.room.as_mut_ptr().cast::<c_void>());
        match step {
            Step::PeerSends(bytes) => self.peer_sends(bytes, &mut [], 0),
            Step::PeerSendsUrgent(byte) => {
                self.is_usual = false;
                self.peer_sends(&[*byte], &mut [], libc::MSG_OOB);
            }
            Step::PeerSendsDescriptors(count, bytes) => {
                let mut control = rights(self.peer, (*count % 254).into());
                self.peer_sends(bytes, &mut control, 0);
            }
            Step::PeerCloses => {
                // SAFETY: no memory is touched.
                unsafe { libc::shutdown(self.peer, libc::SHUT_WR) };
            }
            Step::Read(length) => {
                let length = (*length).into();
                let got = receive::buffer(Symbol::read, fd, room, length, 0, || {
                    // SAFETY: the room is larger.
                    unsafe { libc::read(fd, room, length) }
                });
                self.received(got, 0);
            }
            Step::Recv(length, flags) => {
                let (length, flags) = ((*length).into(), c_int::from(*flags) & FLAGS);
                let got = receive::buffer(Symbol::recv, fd, room, length, flags, || {
                    // SAFETY: the room is larger.
                    unsafe { libc::recv(fd, room, length, flags | QUIET) }
                });
                self.received(got, flags);
            }
            Step::Readv(lengths) => {
                let vectors = self.vectors(lengths);
                let (first, count) = (vectors.as_ptr(), vectors.len() as c_int);
                let got = receive::vectors(Symbol::readv, fd, first, count, || {
                    // SAFETY: the vectors are in the room.
                    unsafe { libc::readv(fd, first, count) }
                });
                self.received(got, 0);
            }
            Step::Recvmsg { lengths, control, flags } => {
                let (mut vectors, flags) = (self.vectors(lengths), c_int::from(*flags) & FLAGS);
                let mut control = vec![0; usize::from(*control)];
                let mut message = message(&mut vectors, &mut control);
                let at = &raw mut message;
                let got = receive::message(Symbol::recvmsg, fd, at, flags, || {
                    // SAFETY: the message and what it names live as long as the call.
                    unsafe { libc::recvmsg(fd, at, flags | QUIET) }
                });
                self.received(got, flags);
            }
            Step::Recvmmsg { messages, control, flags } => {
                let flags = c_int::from(*flags) & FLAGS;
                self.is_usual = false;
                let mut vectors: Vec<_> =
                    messages.iter().take(20).map(|lengths| self.vectors(lengths)).collect();
                let mut controls = vec![vec![0; usize::from(*control)]; vectors.len()];
                let mut headers: Vec<_> = vectors
                    .iter_mut()
                    .zip(&mut controls)
                    .map(|(vectors, control)| several(vectors, control))
                    .collect();
                let (first, count) = (headers.as_mut_ptr(), headers.len() as u32);
                receive::messages(Symbol::recvmmsg, fd, first, flags, || {
                    // SAFETY: the messages and what they name live as long as the call.
                    unsafe { libc::recvmmsg(fd, first, count, flags | QUIET, null_mut()) }
                });
            }
            Step::Write(bytes) => {
                let bytes = spell(bytes);
                let (first, length) = (bytes.as_ptr().cast(), bytes.len());
                let sent = send::buffer(Symbol::write, fd, first, length, 0, |first, length| {
                    // SAFETY: the bytes live as long as the call.
                    unsafe { libc::write(fd, first, length) }
                });
                self.went.extend(&bytes[..sent.max(0) as usize]);
            }
            Step::Writev(parts) => {
                let (bytes, vectors) = spelled(parts);
                let (first, count) = (vectors.as_ptr(), vectors.len() as c_int);
                let sent = send::array_of(Symbol::writev, fd, first, count, |first, count| {
                    // SAFETY: the vectors live as long as the call.
                    unsafe { libc::writev(fd, first, count) }
                });
                self.went.extend(&bytes.concat()[..sent.max(0) as usize]);
            }
            Step::Sendmsg(parts) => {
                let (bytes, mut vectors) = spelled(parts);
                let message = message(&mut vectors, &mut []);
                let at = &raw const message;
                let sent = send::message(Symbol::sendmsg, fd, at, 0, |at| {
                    // SAFETY: the message and what it names live as long as the call.
                    unsafe { libc::sendmsg(fd, at, QUIET) }
                });
                self.went.extend(&bytes.concat()[..sent.max(0) as usize]);
            }
            Step::Sendmmsg(messages) => {
                self.is_usual = false;
                let mut all: Vec<_> =
                    messages.iter().take(20).map(|parts| spelled(parts)).collect();
                let mut headers: Vec<_> =
                    all.iter_mut().map(|(_, vectors)| several(vectors, &mut [])).collect();
                let (first, count) = (headers.as_mut_ptr(), headers.len() as u32);
                send::messages(Symbol::sendmmsg, fd, first, count, 0, |count| {
                    // SAFETY: the messages and what they name live as long as the call.
                    unsafe { libc::sendmmsg(fd, first, count, QUIET) }
                });
            }
            Step::Absurd { call, address, count, length, flags } => {
                self.is_usual = false;
                self.absurd(*call, *address, *count, *length, c_int::from(*flags) & FLAGS);
            }
            Step::Rules(rules) => {
                self.is_usual = false;
                publish(rules);
            }
            Step::ReplacedUnseen => {
                self.is_usual = false;
                let of = if self.sent_by_peer.is_multiple_of(2) { tcp() } else { None };
                if let Some([fd, peer]) = of.or_else(|| pair(libc::AF_UNIX, libc::SOCK_STREAM)) {
                    // SAFETY: all are this input's.
                    unsafe { (libc::dup2(fd, self.fd), libc::dup2(peer, self.peer)) };
                }
            }
            Step::Doubled => {
                // SAFETY: a socket of this input.
                let new = tracking::duplicated(Symbol::dup, fd, || unsafe { libc::dup(fd) });
                self.fd = if new < 0 { self.fd } else { new };
            }
        }
    }

    /// The kernel may refuse it or do it; afterwards the same is asked of it as without the hook.
    fn absurd(&mut self, call: u8, address: Address, count: u32, length: u64, flags: c_int) {
        let (fd, at) = (self.fd, self.address(address));
        let most = if matches!(address, Address::Room) { ROOM } else { usize::MAX };
        let length = (length as usize).min(most);
        // As many vectors as the kernel takes and some more, all of them absurd.
        let some = (count as usize).min(1100);
        let mut vectors = vec![iovec { iov_base: at, iov_len: length }; some];
        let first = if call & 128 == 0 { vectors.as_mut_ptr() } else { at.cast() };
        let first = match address {
            // Its bytes would be addresses.
            Address::Room => vectors.as_mut_ptr(),
            _ => first,
        };
        let count = if call & 64 == 0 { some } else { count as usize };
        let is_array_whole = count <= some || first != vectors.as_mut_ptr();
        let count = if is_array_whole { count } else { some };
        let mut header = message(&mut [], &mut []);
        (header.msg_iov, header.msg_iovlen) = (first, count as _);
        (header.msg_control, header.msg_controllen) = match address {
            Address::Room => (null_mut(), length as _),
            _ => (at, length as _),
        };
        let (quiet, whole) = (flags | QUIET, &raw mut header);
        let mut several = mmsghdr { msg_hdr: header, msg_len: u32::MAX };
        let several = if call & 32 == 0 { &raw mut several } else { null_mut() };
        let whole = if call & 32 == 0 { whole } else { self.address(Address::Low).cast() };
        // SAFETY: where the kernel writes, there is room for all that the peer has sent, or no
        // memory at all.
        unsafe {
            match call % 9 {
                0 => drop(receive::buffer(Symbol::recv, fd, at, length, flags, || {
                    libc::recv(fd, at, length, quiet)
                })),
                1 => drop(receive::vectors(Symbol::readv, fd, first, count as c_int, || {
                    libc::readv(fd, first, count as c_int)
                })),
                2 => drop(receive::message(Symbol::recvmsg, fd, whole, flags, || {
                    libc::recvmsg(fd, whole, quiet)
                })),
                3 => drop(receive::messages(Symbol::recvmmsg, fd, several, flags, || {
                    libc::recvmmsg(fd, several, u32::from(!several.is_null()), quiet, null_mut())
                })),
                4 => drop(send::buffer(Symbol::send, fd, at, length, flags, |at, length| {
                    libc::send(fd, at, length, quiet)
                })),
                5 => drop(send::array_of(
                    Symbol::writev,
                    fd,
                    first,
                    count as c_int,
                    |first, count| libc::writev(fd, first, count),
                )),
                6 => drop(send::message(Symbol::sendmsg, fd, whole, flags, |whole| {
                    libc::sendmsg(fd, whole, quiet)
                })),
                7 => {
                    let most = if several.is_null() { u32::MAX } else { 1 };
                    send::messages(Symbol::sendmmsg, fd, several, most, flags, |count| {
                        libc::sendmmsg(fd, several, count, quiet)
                    });
                }
                _ => drop(send::file(Symbol::sendfile, fd, || {
                    libc::sendfile(fd, fd, null_mut(), length)
                })),
            }
        }
    }
}

const QUIET: c_int = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;

fn message(vectors: &mut [iovec], control: &mut [u8]) -> msghdr {
    // SAFETY: zeros are an empty message.
    let mut message: msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (vectors.as_mut_ptr(), vectors.len() as _);
    if !control.is_empty() {
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = control.len() as _;
    }
    message
}

fn several(vectors: &mut [iovec], control: &mut [u8]) -> mmsghdr {
    mmsghdr { msg_hdr: message(vectors, control), msg_len: 0 }
}

fn spelled(parts: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<iovec>) {
    let bytes: Vec<Vec<u8>> = parts.iter().take(100).map(|part| spell(part)).collect();
    let vector =
        |part: &Vec<u8>| iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() };
    let vectors = bytes.iter().map(vector).collect();
    (bytes, vectors)
}

/// A control message with so many copies of a descriptor.
fn rights(fd: c_int, count: usize) -> Vec<u8> {
    let bytes = (count * size_of::<c_int>()) as u32;
    // SAFETY: computes sizes; the header and its data are inside the vector, which is aligned by
    // its allocator to 16 bytes.
    unsafe {
        let mut control = vec![0u8; libc::CMSG_SPACE(bytes) as usize];
        let header = control.as_mut_ptr().cast::<libc::cmsghdr>();
        (*header).cmsg_len = libc::CMSG_LEN(bytes) as _;
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        for place in 0..count {
            libc::CMSG_DATA(header).cast::<c_int>().add(place).write_unaligned(fd);
        }
        control
    }
}

fn pair(domain: c_int, kind: c_int) -> Option<[c_int; 2]> {
    let mut ends = [-1; 2];
    // SAFETY: the kernel writes two descriptors.
    let made = unsafe { libc::socketpair(domain, kind | libc::SOCK_NONBLOCK, 0, &raw mut ends[0]) };
    (made == 0).then_some(ends)
}

fn tcp() -> Option<[c_int; 2]> {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::IntoRawFd;
    let listener = TcpListener::bind("127.0.0.1:0").ok()?;
    let client = TcpStream::connect(listener.local_addr().ok()?).ok()?;
    let (accepted, _) = listener.accept().ok()?;
    let ends = [client, accepted].map(|end| {
        end.set_nonblocking(true).expect("it is a socket");
        end.into_raw_fd()
    });
    // Closed at once: no port waits for what is on its way.
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    let size = size_of::<libc::linger>() as u32;
    for end in ends {
        let option = (&raw const at_once).cast();
        // SAFETY: the kernel reads the option.
        unsafe { libc::setsockopt(end, libc::SOL_SOCKET, libc::SO_LINGER, option, size) };
    }
    Some(ends)
}

/// The keywords that were published, none where they do not fit.
fn publish(rules: &[Rule<'_>]) -> Vec<(Vec<u8>, bool, Directions)> {
    let directions = [Directions::In, Directions::Out, Directions::Both];
    let words: Vec<_> = rules
        .iter()
        .take(8)
        .map(|rule| {
            let direction = directions[usize::from(rule.direction) % 3];
            (spell(&rule.text[..rule.text.len().min(40)]), rule.ignore_case, direction)
        })
        .collect();
    let keywords = words.iter().zip(rules).map(|((text, ignore_case, directions), rule)| {
        let action = if rule.blocks { Action::Block } else { Action::Trace };
        let (ignore_case, directions) = (*ignore_case, *directions);
        Keyword { text, ignore_case, scope: Scope::All, directions, action }
    });
    let keywords: Vec<_> = keywords.collect();
    let Ok(generation) = Generation::build(&keywords) else { return vec![] };
    SETUP.hook.control.publish(&generation);
    words
}

fn matches() -> u64 {
    let shards = SETUP.hook.shared.statistics.iter();
    shards.flat_map(|shard| &shard.counters).map(|counters| counters.matches.load(Relaxed)).sum()
}

fn expected(words: &[(Vec<u8>, bool, Directions)], bytes: &[u8], out: bool) -> u64 {
    use tare_hook_segment::Direction::{In, Out};
    let direction = if out { Out } else { In };
    let here = words.iter().filter(|(_, _, directions)| directions.contain(direction));
    let count = |(text, ignore_case, _): &(Vec<u8>, bool, Directions)| {
        let is_equal = |part: &[u8]| match ignore_case {
            true => part.eq_ignore_ascii_case(text),
            false => part == text,
        };
        bytes.windows(text.len()).filter(|part| is_equal(part)).count() as u64
    };
    here.map(count).sum()
}

fuzz_target!(|input: Input<'_>| {
    let first = SETUP.first;
    if let Some(mut program) = Program::new(input.socket) {
        let words = publish(&input.rules);
        let before = matches();
        for step in input.steps.iter().take(64) {
            program.step(step);
        }
        let blocks = input.rules.iter().any(|rule| rule.blocks);
        if program.is_usual && !blocks && input.socket != Socket::Datagram && !words.is_empty() {
            let came = expected(&words, &program.came, false);
            let went = expected(&words, &program.went, true);
            assert_eq!(matches() - before, came + went, "{input:?}");
        }
    }
    DESCRIPTORS.released_range(first as u32, u32::MAX);
    // SAFETY: from here on all are this input's.
    unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
});
