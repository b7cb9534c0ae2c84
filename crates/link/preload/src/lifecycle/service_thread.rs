// SPDX-License-Identifier: Apache-2.0
//! The service thread: takes bytes back from rings for other ends that want TCP, and sends what TCP
//! did not accept at once, while the program makes no call; and gives the memory of idle rings back.
//! It starts with the first link, and sleeps until a datagram comes to its socket, or TCP accepts bytes
//! that it has.

use crate::descriptors::reserved_descriptors;
use crate::links::memory::idle_rings;
use crate::links::service_socket::{self, MUST_END, NAME, PROCESS, SOCKET, THREAD, is_here};
use crate::links::slots::{self, Slot};
use crate::stream::downgrade;
use crate::{kernel, state};
use core::ffi::c_int;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use libc::pollfd;
use tare_interpose::background;
use tare_link_segment::{Counter, Link, SERVICES};
use tare_shm::syscall::call;

/// As `ps -L` shows the thread.
const THREAD_NAME: &core::ffi::CStr = c"tare-link";
/// Connections whose room the thread waits for; further ones are looked at every `OFTEN` ms.
const MOST: usize = 64;
const OFTEN: i64 = 10;

/// The number of forks when the thread was last checked, and the process that starts it now.
static FORKS: AtomicU32 = AtomicU32::new(0);
static STARTER: AtomicU32 = AtomicU32::new(0);

/// A link of this process is about to be used: its service thread must know of it.
pub fn begin(link: &Link) {
    start();
    announce(link);
}

/// A program makes a call on a link: after a fork, the child needs a thread of its own.
#[inline]
pub fn ensure() {
    if FORKS.load(Relaxed) != state::forks() {
        ensure_after_fork();
    }
}

#[cold]
fn ensure_after_fork() {
    let is_new = PROCESS.load(Relaxed) != state::process_number();
    FORKS.store(state::forks(), Relaxed);
    if is_new && slots::any() {
        start();
        slots::each(|slot| announce(&slot.mapping().link));
    }
}

fn start() {
    let own = state::process_number();
    let starter = STARTER.load(Acquire);
    // A signal handler that comes in between does without; so does a second thread.
    if is_here() || state::is_off() || starter == own {
        return;
    }
    if STARTER.compare_exchange(starter, own, AcqRel, Relaxed).is_err() {
        return;
    }
    if !is_here() {
        FORKS.store(state::forks(), Relaxed);
        let is_child = PROCESS.swap(own, AcqRel) != own;
        if is_child {
            THREAD.forget();
        }
        MUST_END.store(false, Relaxed);
        NAME.store(0, Relaxed);
        // A parent's socket is not this process's.
        reserved_descriptors::close(SOCKET.swap(0, AcqRel));
        match service_socket::open() {
            Some((socket, name)) => {
                SOCKET.store(socket, Release);
                if THREAD.start(run).is_ok() {
                    NAME.store(name, Release);
                } else {
                    state::count(Counter::Unserved, 1);
                }
            }
            None => state::count(Counter::Unserved, 1),
        }
    }
    STARTER.store(0, Release);
}

/// Lets the other end find the thread: children of forks share an end, each with its thread.
fn announce(link: &Link) {
    let name = NAME.load(Acquire);
    if name == 0 || !is_here() {
        return;
    }
    if let Some([own, _]) = link.services()
        && own.iter().all(|place| place.load(Relaxed) != name)
    {
        let free = |place: &&core::sync::atomic::AtomicU64| {
            place.compare_exchange(0, name, AcqRel, Relaxed).is_ok()
        };
        if own.iter().find(free).is_none() {
            // The first is that of the process which made the link.
            let place = 1 + PROCESS.load(Relaxed) as usize % (SERVICES - 1);
            own[place].store(name, Relaxed);
        }
    }
}

/// Before the program changes what its threads may do: the thread would keep what it has now.
pub fn end() {
    if is_here() && !MUST_END.swap(true, AcqRel) {
        NAME.store(0, Relaxed);
        service_socket::wake(SOCKET.load(Relaxed), None);
        THREAD.join();
        // `ensure` starts it again.
        PROCESS.store(0, Relaxed);
        FORKS.store(0, Relaxed);
    }
}

/// Starts the thread again, after `end`.
pub fn begin_again() {
    if MUST_END.load(Acquire) && slots::any() && !is_here() {
        start();
        slots::each(|slot| announce(&slot.mapping().link));
    }
}

/// The thread. It calls nothing of libc that has thread-local memory.
extern "C" fn run() -> ! {
    let name = THREAD_NAME.as_ptr().addr();
    // SAFETY: the kernel reads the name.
    let _ = unsafe { call(libc::SYS_prctl, [libc::PR_SET_NAME as usize, name, 0, 0, 0, 0]) };
    let socket = SOCKET.load(Acquire);
    while !MUST_END.load(Acquire) && drain(socket) {
        // What is asked for from here on wakes again.
        let mut places = [pollfd { fd: socket, events: libc::POLLIN, revents: 0 }; 1 + MOST];
        let waits = serve(&mut places[1..]);
        let looks = idle_rings::reclaim();
        let time = if waits.has_others { Some(OFTEN) } else { looks };
        kernel::poll(&mut places[..1 + waits.for_room], time);
    }
    NAME.store(0, Relaxed);
    loop {
        background::end();
    }
}

/// Takes all datagrams; false if the descriptor is not the thread's any more: a program that makes
/// raw system calls may have closed it, and have another file with its number.
fn drain(socket: c_int) -> bool {
    let dgram = Ok(libc::SOCK_DGRAM);
    if tare_interpose::socket_option(socket, libc::SO_TYPE) != dgram {
        return false;
    }
    const TIMES: u32 = 64;
    for _ in 0..TIMES {
        let flags = libc::MSG_DONTWAIT as usize;
        // SAFETY: no memory is touched: a datagram goes, bytes of a stream would stay.
        match unsafe { call(libc::SYS_recvfrom, [socket as usize, 0, 0, flags, 0, 0]) } {
            Ok(_) if !MUST_END.load(Acquire) => {}
            _ => break,
        }
    }
    true
}

/// Links that wait: for room in TCP, and for something else, such as a thread that has a lock.
#[derive(Clone, Copy, Default)]
struct Waits {
    for_room: usize,
    has_others: bool,
}

/// Serves all links. `places` gets the descriptors of those that wait for room.
fn serve(places: &mut [pollfd]) -> Waits {
    let mut waits = Waits::default();
    slots::each(|slot| {
        if !downgrade::has_work(slot) && slot.is_closed.load(Acquire) == 0 {
            return;
        }
        // The program cannot close the descriptor meanwhile.
        let Some(fd) = downgrade::while_locked(slot, |fd| serve_link(fd, slot)) else {
            waits.has_others = true;
            return;
        };
        if downgrade::has_work(slot) {
            match places.get_mut(waits.for_room) {
                Some(place) if !downgrade::is_due(slot) => {
                    *place = pollfd { fd, events: libc::POLLOUT, revents: 0 };
                    waits.for_room += 1;
                }
                _ => waits.has_others = true,
            }
        }
    });
    waits
}

/// Under the sender's lock. Returns the descriptor.
fn serve_link(fd: c_int, slot: &Slot) -> c_int {
    downgrade::serve_locked(fd, slot);
    if downgrade::has_work(slot) {
        return fd;
    }
    if slot.ends.compare_exchange(slots::ENDS, slots::ENDED, AcqRel, Relaxed).is_ok() {
        kernel::shutdown(fd, libc::SHUT_WR);
    }
    if slot.is_closed.load(Acquire) != 0 {
        // A child of a fork may have the copy of the descriptor, too.
        kernel::set_linger(fd, None);
        kernel::shutdown(fd, libc::SHUT_WR);
        slot.close();
    }
    fd
}
