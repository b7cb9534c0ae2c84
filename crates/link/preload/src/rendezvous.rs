// SPDX-License-Identifier: Apache-2.0
//! How the two ends of a connection find each other: at a socket in the abstract namespace (of the
//! network namespace) whose name is made from the connection's two addresses. The end that is first
//! waits there, the other one makes the memory and sends it.

use crate::connection::{Connection, Stage};
use crate::slots::{self, Parts, Slot};
use crate::{closing, debug, hidden, kernel, service, sets, state};
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;
use libc::{sockaddr_storage, sockaddr_un, socklen_t};
use tare_link_segment::{Counter, Endpoint, Link};
use tare_shm::syscall::{self, Errno, call};
use tare_shm::{memory, peer, rights};

/// A connection is linked from its second message on, or from this many bytes on: one of a single
/// request stays TCP's. What is sent in several calls, with none that receives between them, is one
/// message.
const MANY_BYTES: u64 = 16 << 10;
/// Times that an end tries to reach the other one, which is just beginning to wait.
const MOST_ATTEMPTS: u32 = 64;
/// Calls during which the first end looks whether the other one has come.
const MOST_LOOKS: u32 = 1024;
/// In `Connection::listener`: the other end has come, its message has not.
const HAS_COME: u32 = 1 << 30;

/// The link of a connection, which is made if it is time. Its user must `leave` it.
pub fn turn(fd: c_int, connection: &Connection, sends: bool) -> Option<&'static Slot> {
    match connection.stage() {
        Stage::Linked => slots::enter(connection.slot.load(Relaxed)),
        Stage::New if is_time(connection, sends) => begin(fd, connection),
        Stage::Waiting => look(fd, connection),
        _ => None,
    }
}

fn is_time(connection: &Connection, sends: bool) -> bool {
    if connection.forks.load(Relaxed) == 0 {
        connection.forks.store(state::forks(), Relaxed);
    }
    let is_second =
        sends && connection.sends.load(Relaxed) > 0 && connection.has_received.load(Relaxed) != 0;
    is_second || connection.bytes.load(Relaxed) >= MANY_BYTES || state::is_eager()
}

enum Outcome {
    Linked(u32),
    Waits(u32),
    /// It stays TCP, for this reason.
    No(&'static str),
}

fn begin(fd: c_int, connection: &Connection) -> Option<&'static Slot> {
    if !connection.change_stage(Stage::New, Stage::Changing) {
        return None;
    }
    if !connection.hold() {
        connection.set_stage(Stage::New);
        return None;
    }
    let outcome = match obstacle(fd, connection) {
        None => meet(fd, connection),
        Some(reason) => Outcome::No(reason),
    };
    finish(fd, connection, outcome)
}

/// Why a connection stays TCP, whatever the other end is.
fn obstacle(fd: c_int, connection: &Connection) -> Option<&'static str> {
    let choice = state::statistics()?.choice();
    if connection.is_found.load(Relaxed) != 0 {
        Some("another program opened it")
    } else if connection.forks.load(Relaxed) != state::forks() {
        Some("the program has forked since the connection was opened")
    } else if state::is_off() || syscall::are_forbidden() {
        Some("the program restricts its system calls")
    } else if choice.has_rules() && !ends(fd).is_some_and(|ends| choice.chooses(&ends)) {
        Some("excluded by --only or --except")
    } else {
        None
    }
}

fn finish(fd: c_int, connection: &Connection, outcome: Outcome) -> Option<&'static Slot> {
    match outcome {
        Outcome::Linked(place) => {
            state::count(Counter::Links, 1);
            debug::line(fd, ["linked", ""]);
            connection.slot.store(place, Relaxed);
            // Its first user, as `slots::add` has it.
            let slot = slots::first(place)?;
            sets::linked(connection, slot, place);
            ends(fd).into_iter().for_each(|ends| slot.list(ends));
            connection.let_go(true);
            connection.set_stage(Stage::Linked);
            Some(slot)
        }
        Outcome::Waits(listener) => {
            connection.listener.store(listener, Relaxed);
            connection.let_go(false);
            connection.set_stage(Stage::Waiting);
            None
        }
        Outcome::No(reason) => {
            debug::line(fd, ["stays TCP: ", reason]);
            connection.let_go(false);
            connection.set_stage(Stage::Never);
            None
        }
    }
}

const NO_MEMORY: &str = "no memory or descriptor for a link";
const STRANGER: &str = "the other end is of another user or PID namespace (see --allow-uid)";
const NOT_MET: &str = "the other end cannot be asked";

/// Goes to the other end if it waits, else waits for it.
fn meet(fd: c_int, connection: &Connection) -> Outcome {
    let Some(name) = Name::of(fd) else { return Outcome::No("it has no two addresses") };
    for attempt in 0..MOST_ATTEMPTS {
        // The other end has its name, and does not listen yet.
        if attempt > 1 {
            kernel::yield_now();
        }
        match name.connect() {
            Ok(socket) => {
                let outcome = if is_admitted(socket) {
                    make(fd, connection, socket).map_or(Outcome::No(NO_MEMORY), Outcome::Linked)
                } else {
                    Outcome::No(STRANGER)
                };
                syscall::close(socket);
                return outcome;
            }
            Err(Errno(libc::ECONNREFUSED)) => {}
            Err(_) => return Outcome::No(NOT_MET),
        }
        match name.listen() {
            Ok(Some(listener)) => return Outcome::Waits(listener as u32),
            Ok(None) => return Outcome::No(NO_MEMORY),
            Err(Errno(libc::EADDRINUSE)) => {}
            Err(_) => return Outcome::No(NOT_MET),
        }
    }
    Outcome::No(NOT_MET)
}

/// Looks, ever more seldom, whether the other end has come.
#[cold]
fn look(fd: c_int, connection: &Connection) -> Option<&'static Slot> {
    let looks = connection.looks.fetch_add(1, Relaxed);
    if looks > 8 && !looks.is_power_of_two() {
        return None;
    }
    if !connection.change_stage(Stage::Waiting, Stage::Changing) {
        return None;
    }
    if !connection.hold() {
        connection.set_stage(Stage::Waiting);
        return None;
    }
    let listener = connection.listener.load(Relaxed);
    let is_ours = connection.forks.load(Relaxed) == state::forks();
    let outcome = if is_ours && !state::is_off() && looks < MOST_LOOKS {
        receive(fd, connection, listener)
    } else {
        Outcome::No("the other end did not answer: it may not be linked")
    };
    if !matches!(outcome, Outcome::Waits(_)) {
        forget(connection);
    }
    finish(fd, connection, outcome)
}

/// Closes the socket of a connection that waits.
pub fn forget(connection: &Connection) {
    let listener = connection.listener.swap(0, Relaxed);
    if listener != 0 {
        hidden::close((listener & !HAS_COME) as c_int);
    }
}

fn receive(fd: c_int, connection: &Connection, listener: u32) -> Outcome {
    let mut socket = (listener & !HAS_COME) as c_int;
    if listener & HAS_COME == 0 {
        let flags = (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as usize;
        // SAFETY: no memory is touched.
        let come = unsafe { call(libc::SYS_accept4, [socket as usize, 0, 0, flags, 0, 0]) };
        let come = match come {
            Ok(come) => come as c_int,
            Err(Errno(libc::EAGAIN)) => return Outcome::Waits(listener),
            Err(_) => return Outcome::No(NOT_MET),
        };
        hidden::close(socket);
        connection.listener.store(0, Relaxed);
        if !is_admitted(come) {
            syscall::close(come);
            return Outcome::No(STRANGER);
        }
        let Some(hid) = hidden::hide(come) else { return Outcome::No(NO_MEMORY) };
        socket = hid;
        connection.listener.store(socket as u32 | HAS_COME, Relaxed);
    }
    let mut fds = [-1; 3];
    for (place, got) in fds.iter_mut().enumerate() {
        match receive_one(socket, place > 0) {
            Ok(Some(fd)) => *got = fd,
            Err(Errno(libc::EAGAIN)) if place == 0 => {
                return Outcome::Waits(socket as u32 | HAS_COME);
            }
            _ => break,
        }
    }
    let taken = if fds.contains(&-1) { None } else { take(fd, connection, fds) };
    syscall::close(fds[0]);
    if taken.is_none() {
        syscall::close(fds[1]);
        syscall::close(fds[2]);
    }
    taken.map_or(Outcome::No(NO_MEMORY), Outcome::Linked)
}

/// The rest of a message that has begun follows at once.
fn receive_one(socket: c_int, has_begun: bool) -> Result<Option<c_int>, Errno> {
    let mut times = 0;
    loop {
        match rights::receive(socket, &mut [0]) {
            Err(Errno(libc::EAGAIN)) if has_begun && times < 1000 => {
                times += 1;
                kernel::yield_now();
            }
            Err(error) => return Err(error),
            Ok(message) if message.length == 1 && !message.is_cut => return Ok(message.fd),
            Ok(message) => {
                message.fd.into_iter().for_each(syscall::close);
                return Ok(None);
            }
        }
    }
}

/// Makes the link and sends it.
fn make(fd: c_int, connection: &Connection, socket: c_int) -> Option<u32> {
    let read = kernel::read(fd)?;
    let (memory, link) = refused(Link::make().ok())?;
    let sent = bells().and_then(|[own, other]| {
        let parts = Parts::new(link)?;
        begin_receiving(connection, &parts, read, own);
        let sent = [memory, other, own].iter().all(|fd| rights::send(socket, *fd).is_ok());
        let place = if sent { slots::add(parts, fd, own, other) } else { None };
        if place.is_none() {
            sets::unregister(connection, own);
            hidden::close(own);
            hidden::close(other);
        }
        place
    });
    syscall::close(memory);
    if sent.is_none() {
        // SAFETY: no slot has it.
        unsafe { link.unmap() };
    }
    refused(sent)
}

/// Takes the link that the other end has made.
fn take(fd: c_int, connection: &Connection, [memory, own, other]: [c_int; 3]) -> Option<u32> {
    let read = kernel::read(fd)?;
    let link = Link::take(memory).ok()?;
    let [own, other] = [own, other].map(hidden::hide);
    let place = Parts::new(link).and_then(|parts| {
        let place = slots::add(parts, fd, own?, other?)?;
        begin_receiving(connection, &parts, read, own?);
        Some(place)
    });
    if place.is_none() {
        [own, other].into_iter().flatten().for_each(hidden::close);
        // SAFETY: no slot has it.
        unsafe { link.unmap() };
    }
    refused(place)
}

fn begin_receiving(connection: &Connection, parts: &Parts, read: u64, own_bell: c_int) {
    service::begin(&parts.link);
    // What could not be mapped later could not be read.
    if memory::is_limited() {
        parts.incoming.keep_small();
    }
    parts.incoming.bell().arm();
    sets::register(connection, own_bell);
    parts.incoming.ready(read);
}

fn bells() -> Option<[c_int; 2]> {
    let [own, other] = [(); 2].map(|()| kernel::eventfd().ok().and_then(hidden::hide));
    if let (Some(own), Some(other)) = (own, other) {
        return Some([own, other]);
    }
    [own, other].into_iter().flatten().for_each(hidden::close);
    None
}

fn refused<T>(found: Option<T>) -> Option<T> {
    if found.is_none() {
        state::count(Counter::Refused, 1);
    }
    found
}

/// Whether a process of the same user, or of one that was allowed, is at the other end, and of the
/// same PID namespace: locks have the numbers of threads.
fn is_admitted(socket: c_int) -> bool {
    peer::credentials(socket).is_ok_and(|other| {
        let is_allowed =
            || state::statistics().is_some_and(|shared| shared.choice().allows(other.uid));
        other.pid > 0 && (other.uid == syscall::geteuid() || is_allowed())
    })
}

/// The addresses of a connection: of this end, and of the other.
pub fn ends(fd: c_int) -> Option<[Endpoint; 2]> {
    let endpoint = |number| {
        let End(bytes) = End::get(number, fd)?;
        let (address, port) = bytes.split_first_chunk::<16>()?;
        Some(Endpoint { address: *address, port: u16::from_be_bytes(port.try_into().ok()?) })
    };
    Some([endpoint(libc::SYS_getsockname)?, endpoint(libc::SYS_getpeername)?])
}

/// The name at which the ends of a connection meet.
struct Name {
    address: sockaddr_un,
    length: usize,
}

impl Name {
    fn of(fd: c_int) -> Option<Self> {
        let (own, other) =
            (End::get(libc::SYS_getsockname, fd)?, End::get(libc::SYS_getpeername, fd)?);
        if own.0 == other.0 {
            return None;
        }
        let (low, high) = if own.0 < other.0 { (own, other) } else { (other, own) };
        // SAFETY: zeros are an address.
        let mut address: sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
        address.sun_family = libc::AF_UNIX as u16;
        let digits =
            |byte: u8| [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[digit as usize]);
        let ends = low.0.into_iter().chain(high.0).flat_map(digits);
        let text = b"\0tare-link1/".iter().copied().chain(ends);
        let mut length = 0;
        for (place, byte) in address.sun_path.iter_mut().zip(text) {
            *place = byte as _;
            length += 1;
        }
        Some(Self { address, length: size_of::<libc::sa_family_t>() + length })
    }

    fn socket() -> Result<c_int, Errno> {
        let kind = (libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as usize;
        // SAFETY: no memory is touched.
        let socket = unsafe { call(libc::SYS_socket, [libc::AF_UNIX as usize, kind, 0, 0, 0, 0]) }?;
        Ok(socket as c_int)
    }

    fn with(&self, number: i64, socket: c_int) -> Result<(), Errno> {
        let place = (&raw const self.address).addr();
        // SAFETY: the kernel reads the address.
        unsafe { call(number, [socket as usize, place, self.length, 0, 0, 0]) }.map(drop)
    }

    fn connect(&self) -> Result<c_int, Errno> {
        let socket = Self::socket()?;
        self.with(libc::SYS_connect, socket)
            .map(|()| socket)
            .inspect_err(|_| syscall::close(socket))
    }

    /// A hidden socket; `None` if there is no number for one.
    fn listen(&self) -> Result<Option<c_int>, Errno> {
        let socket = Self::socket()?;
        let listens = self.with(libc::SYS_bind, socket).and_then(|()| {
            // SAFETY: no memory is touched.
            unsafe { call(libc::SYS_listen, [socket as usize, 1, 0, 0, 0, 0]) }
        });
        match listens {
            Ok(_) => Ok(hidden::hide(socket)),
            Err(error) => {
                syscall::close(socket);
                Err(error)
            }
        }
    }
}

/// Address and port, IPv4 addresses as IPv6 has them.
struct End([u8; 18]);

impl End {
    fn get(number: i64, fd: c_int) -> Option<Self> {
        let mut address = MaybeUninit::<sockaddr_storage>::zeroed();
        let mut length = size_of::<sockaddr_storage>() as socklen_t;
        let arguments =
            [fd as usize, address.as_mut_ptr().addr(), (&raw mut length).addr(), 0, 0, 0];
        // SAFETY: the kernel writes at most `length` bytes; zeros are an address.
        let address = unsafe {
            call(number, arguments).ok()?;
            address.assume_init_ref()
        };
        let mut end = [0; 18];
        let port = match c_int::from(address.ss_family) {
            libc::AF_INET => {
                // SAFETY: of this family, and no longer than the storage.
                let address = unsafe { &*core::ptr::from_ref(address).cast::<libc::sockaddr_in>() };
                end[10..12].fill(0xff);
                end[12..16].copy_from_slice(&address.sin_addr.s_addr.to_ne_bytes());
                address.sin_port
            }
            libc::AF_INET6 => {
                // SAFETY: of this family, and no longer than the storage.
                let address =
                    unsafe { &*core::ptr::from_ref(address).cast::<libc::sockaddr_in6>() };
                end[..16].copy_from_slice(&address.sin6_addr.s6_addr);
                address.sin6_port
            }
            _ => return None,
        };
        end[16..].copy_from_slice(&port.to_ne_bytes());
        Some(Self(end))
    }
}

/// The connection stays TCP from now on, or goes back to it.
pub fn give_up(fd: c_int, connection: &Connection) {
    loop {
        match connection.stage() {
            Stage::New => {
                if connection.change_stage(Stage::New, Stage::Never) {
                    return;
                }
            }
            Stage::Waiting => {
                if connection.change_stage(Stage::Waiting, Stage::Changing) {
                    forget(connection);
                    connection.set_stage(Stage::Never);
                    return;
                }
            }
            Stage::Changing => kernel::yield_now(),
            Stage::Linked => {
                if let Some(slot) = slots::enter(connection.slot.load(Relaxed)) {
                    debug::line(fd, ["goes back to TCP for good", ""]);
                    closing::leave_link(fd, slot);
                    slot.leave();
                }
                return;
            }
            Stage::Never => return,
        }
    }
}
