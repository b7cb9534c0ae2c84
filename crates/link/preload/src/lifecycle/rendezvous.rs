// SPDX-License-Identifier: Apache-2.0
//! How the two ends of a connection find each other: at a socket in the abstract namespace (of the
//! network namespace) whose name is made from the connection's two addresses. The end that is first
//! waits there, the other one makes the memory and sends it.

use crate::descriptors::{io_uring_detection, reserved_descriptors};
use crate::epoll::{epoll_sets, one_shot};
use crate::lifecycle::endpoint_name::{HAS_COME, Name, ends, forget};
use crate::lifecycle::{connection_log, negative_cache, service_thread};
use crate::links::fork_handlers;
use crate::links::memory::memory_limit;
use crate::links::slots::{self, LinkMapping, Slot};
use crate::state::connection::{Connection, Stage};
use crate::{kernel, state};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use tare_link_segment::{Counter, Link, Reason, SMALLEST_RING};
use tare_shm::syscall::{self, Errno, call};
use tare_shm::{memory, peer, process, rights};

/// A connection is linked from its second message on, or from this many bytes on: one of a single
/// request stays TCP's. What is sent in several calls, with none that receives between them, is one
/// message.
const UPGRADE_BYTES: u64 = 16 << 10;
/// Calls that send on a connection to a server that was absent lately, before it is waited for.
const SENDS_BEFORE_RETRY: u32 = 16;
/// Times that an end tries to reach the other one, which is just beginning to wait.
const MAX_ATTEMPTS: u32 = 64;
/// Calls during which the first end looks whether the other one has come.
const MAX_CHECKS: u32 = 1024;
/// The link of a connection, which is made if it is time. Its user must `leave` it.
pub fn try_link(fd: c_int, connection: &Connection, sends: bool) -> Option<&'static Slot> {
    match connection.stage() {
        Stage::Linked => slots::enter(connection.slot.load(Relaxed)),
        _ if fork_handlers::is_in_progress() => None,
        Stage::New if is_due(connection, sends) && !is_likely_absent(fd, connection) => {
            uninterrupted(|| begin(fd, connection))
        }
        Stage::Waiting if is_check_due(connection) => {
            uninterrupted(|| check_listener(fd, connection, sends))
        }
        _ => None,
    }
}

/// A signal handler that uses the connection would wait for the call that it has interrupted.
fn uninterrupted(change: impl FnOnce() -> Option<&'static Slot>) -> Option<&'static Slot> {
    syscall::with_signals_blocked(syscall::FROM_OTHERS, change).ok().flatten()
}

fn is_due(connection: &Connection, sends: bool) -> bool {
    if connection.forks.load(Relaxed) == 0 {
        connection.forks.store(state::forks(), Relaxed);
    }
    let is_second =
        sends && connection.sends.load(Relaxed) > 0 && connection.has_received.load(Relaxed) != 0;
    is_second || connection.bytes.load(Relaxed) >= UPGRADE_BYTES || state::is_eager()
}

/// Whether the server is not likely to come, and the connection has done too little to wait for it.
fn is_likely_absent(fd: c_int, connection: &Connection) -> bool {
    connection.is_accepted.load(Relaxed) == 0
        && connection.sends.load(Relaxed) < SENDS_BEFORE_RETRY
        && connection.bytes.load(Relaxed) < UPGRADE_BYTES
        && !state::is_eager()
        && (connection.is_absent.load(Relaxed) != 0 || was_absent_lately(fd, connection))
}

/// Asked once: it costs two system calls.
fn was_absent_lately(fd: c_int, connection: &Connection) -> bool {
    let is_likely = negative_cache::contains(fd);
    connection.is_absent.store(is_likely.into(), Relaxed);
    is_likely
}

/// Remembers that a server which is waited for has not come, if it has sent since.
pub fn cache_absence(fd: c_int, connection: &Connection) {
    let listener = connection.listener.load(Relaxed);
    let has_come =
        || listener & HAS_COME != 0 || kernel::events(listener as c_int, libc::POLLIN) != 0;
    let is_server = connection.is_accepted.load(Relaxed) != 0;
    if !is_server && connection.has_received.load(Relaxed) != 0 && !has_come() {
        negative_cache::insert(fd);
    }
}

enum Outcome {
    Linked(u32),
    Waits(u32),
    /// It stays TCP, for this reason.
    No(Reason),
}

fn begin(fd: c_int, connection: &Connection) -> Option<&'static Slot> {
    if !connection.change_stage(Stage::New, Stage::Changing) {
        return None;
    }
    if !connection.hold() {
        connection.set_stage(Stage::New);
        return None;
    }
    let outcome = match reason_for_tcp(fd, connection) {
        None => find_other_end(fd, connection),
        Some(reason) => Outcome::No(reason),
    };
    finish(fd, connection, outcome)
}

/// Why a connection stays TCP, whatever the other end is.
fn reason_for_tcp(fd: c_int, connection: &Connection) -> Option<Reason> {
    let settings = state::statistics()?.settings();
    if connection.is_found.load(Relaxed) != 0 {
        Some(Reason::Inherited)
    } else if connection.forks.load(Relaxed) != state::forks() {
        Some(Reason::Forked)
    } else if state::is_off() || syscall::are_forbidden() {
        Some(Reason::Restricted)
    } else if io_uring_detection::is_used() {
        Some(Reason::IoUring)
    } else if !memory_limit::has_room(1 << SMALLEST_RING) {
        state::count(Counter::Refused, 1);
        Some(Reason::Limit)
    } else if settings.has_rules() && !ends(fd).is_some_and(|ends| settings.selects(&ends)) {
        Some(Reason::Excluded)
    } else {
        None
    }
}

fn finish(fd: c_int, connection: &Connection, outcome: Outcome) -> Option<&'static Slot> {
    match outcome {
        Outcome::Linked(place) => {
            state::count(Counter::Links, 1);
            connection_log::line(fd, ["linked", ""]);
            connection.slot.store(place, Relaxed);
            // Its first user, as `slots::add` has it.
            let slot = slots::first(place)?;
            epoll_sets::linked(connection, slot, place);
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
            connection_log::stays_tcp(fd, reason);
            connection.let_go(false);
            connection.set_stage(Stage::Never);
            None
        }
    }
}

/// Goes to the other end if it waits, else waits for it.
fn find_other_end(fd: c_int, connection: &Connection) -> Outcome {
    let Some(name) = Name::of(fd) else { return Outcome::No(Reason::NoAddresses) };
    for attempt in 0..MAX_ATTEMPTS {
        // The other end has its name, and does not listen yet.
        if attempt > 1 {
            kernel::yield_now();
        }
        match name.connect() {
            Ok(socket) => {
                let outcome = if is_admitted(socket) {
                    make(fd, connection, socket)
                        .map_or(Outcome::No(Reason::NoMemory), Outcome::Linked)
                } else {
                    Outcome::No(Reason::OtherUser)
                };
                syscall::close(socket);
                return outcome;
            }
            Err(Errno(libc::ECONNREFUSED)) => {}
            Err(_) => return Outcome::No(Reason::NotMet),
        }
        match name.listen() {
            Ok(Some(listener)) => return Outcome::Waits(listener as u32),
            Ok(None) => return Outcome::No(Reason::NoMemory),
            Err(Errno(libc::EADDRINUSE)) => {}
            Err(_) => return Outcome::No(Reason::NotMet),
        }
    }
    Outcome::No(Reason::NotMet)
}

/// Ever more seldom.
fn is_check_due(connection: &Connection) -> bool {
    let looks = connection.looks.fetch_add(1, Relaxed);
    looks <= 8 || looks.is_power_of_two()
}

/// Looks whether the other end has come.
#[cold]
fn check_listener(fd: c_int, connection: &Connection, sends: bool) -> Option<&'static Slot> {
    if !connection.change_stage(Stage::Waiting, Stage::Changing) {
        return None;
    }
    if !connection.hold() {
        connection.set_stage(Stage::Waiting);
        return None;
    }
    let listener = connection.listener.load(Relaxed);
    let is_ours = connection.forks.load(Relaxed) == state::forks();
    let outcome = if is_ours && !state::is_off() && connection.looks.load(Relaxed) <= MAX_CHECKS {
        receive(fd, connection, listener)
    } else {
        Outcome::No(Reason::NoAnswer)
    };
    if !matches!(outcome, Outcome::Waits(_)) {
        forget(connection);
    } else if sends {
        cache_absence(fd, connection);
    }
    finish(fd, connection, outcome)
}

fn receive(fd: c_int, connection: &Connection, listener: u32) -> Outcome {
    let mut socket = (listener & !HAS_COME) as c_int;
    if listener & HAS_COME == 0 {
        let flags = (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as usize;
        // SAFETY: no memory is touched.
        let accepted = unsafe { call(libc::SYS_accept4, [socket as usize, 0, 0, flags, 0, 0]) };
        let accepted = match accepted {
            Ok(accepted) => accepted as c_int,
            Err(Errno(libc::EAGAIN)) => return Outcome::Waits(listener),
            Err(_) => return Outcome::No(Reason::NotMet),
        };
        reserved_descriptors::close(socket);
        connection.listener.store(0, Relaxed);
        if !is_admitted(accepted) {
            syscall::close(accepted);
            return Outcome::No(Reason::OtherUser);
        }
        let Some(hidden) = reserved_descriptors::hide(accepted) else {
            return Outcome::No(Reason::NoMemory);
        };
        socket = hidden;
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
    let taken = take(fd, connection, fds);
    syscall::close(fds[0]);
    taken.map_or(Outcome::No(Reason::NoMemory), Outcome::Linked)
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
    let (memory, link) = count_if_refused(Link::make().ok())?;
    let eventfds = eventfds();
    // Before it is sent: the other end takes a link that it has got.
    let place = add(fd, connection, link, read, eventfds);
    let fds = eventfds.map(|[own, other]| [memory, other, own]).filter(|_| place.is_some());
    let is_sent = fds.is_some_and(|fds| fds.iter().all(|fd| rights::send(socket, *fd).is_ok()));
    syscall::close(memory);
    if is_sent {
        return place;
    }
    if let Some(slot) = place.and_then(slots::first) {
        epoll_sets::withdraw(connection, slot.own_eventfd());
        slot.close();
        slot.leave();
        state::count(Counter::Refused, 1);
    }
    None
}

/// Takes the link that the other end has made, of which -1 did not come. Its eventfds are closed once,
/// whatever happens: another thread of the program may have their numbers from then on.
fn take(fd: c_int, connection: &Connection, [memory, own, other]: [c_int; 3]) -> Option<u32> {
    let eventfds = both_or_none([own, other].map(reserved_descriptors::hide));
    let Some((read, link)) = kernel::read(fd).zip(Link::take(memory).ok()) else {
        eventfds.into_iter().flatten().for_each(reserved_descriptors::close);
        return None;
    };
    add(fd, connection, link, read, eventfds)
}

/// Puts a link into a slot, for its first user, and begins to receive. Without room it is unmapped,
/// and its eventfds are closed.
fn add(
    fd: c_int,
    connection: &Connection,
    link: Link,
    read: u64,
    eventfds: Option<[c_int; 2]>,
) -> Option<u32> {
    let admitted = eventfds.filter(|_| slots::have_address_space());
    let place = admitted.zip(LinkMapping::new(link)).and_then(|(eventfds, mapping)| {
        let place = slots::add(mapping, fd, eventfds)?;
        begin_receiving(connection, &mapping, read, eventfds[0]);
        Some(place)
    });
    if place.is_none() {
        eventfds.into_iter().flatten().for_each(reserved_descriptors::close);
        // SAFETY: no slot has it.
        unsafe { link.unmap() };
    }
    count_if_refused(place)
}

fn begin_receiving(connection: &Connection, mapping: &LinkMapping, read: u64, own_eventfd: c_int) {
    service_thread::begin(&mapping.link);
    if let Some([own, _]) = mapping.link.namespaces() {
        own.store(process::pid_namespace().unwrap_or(0), Relaxed);
    }
    // What could not be mapped later could not be read.
    if memory::is_limited() || slots::must_stay_small() {
        mapping.incoming.keep_small();
    }
    mapping.incoming.doorbell().arm();
    epoll_sets::register(connection, own_eventfd);
    mapping.incoming.begin(read);
    if !one_shot::is_one_shot(connection) {
        mapping.incoming.be_ready();
    }
}

fn eventfds() -> Option<[c_int; 2]> {
    both_or_none([(); 2].map(|()| kernel::eventfd().ok().and_then(reserved_descriptors::hide)))
}

/// Two hidden descriptors; closes one that is alone.
fn both_or_none(fds: [Option<c_int>; 2]) -> Option<[c_int; 2]> {
    if let [Some(own), Some(other)] = fds {
        return Some([own, other]);
    }
    fds.into_iter().flatten().for_each(reserved_descriptors::close);
    None
}

fn count_if_refused<T>(found: Option<T>) -> Option<T> {
    if found.is_none() {
        state::count(Counter::Refused, 1);
    }
    found
}

/// Whether a process of the same user, or of one that was allowed, is at the other end.
fn is_admitted(socket: c_int) -> bool {
    peer::credentials(socket).is_ok_and(|other| {
        let is_allowed =
            || state::statistics().is_some_and(|shared| shared.settings().allows(other.uid));
        peer::is_own(other.uid) || is_allowed()
    })
}
