// SPDX-License-Identifier: Apache-2.0
//! The one thread of a collector that takes what comes to the sockets of all round trips.

use super::{Fox, address};
use crate::timer::Timer;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use tare_clock::Source;
use tare_log_segment::{ChannelId, Configuration, Handler};

/// Sockets that are looked at after one wait.
const READY: usize = 64;

type BySocket = HashMap<RawFd, Vec<Arc<Fox>>>;

pub struct Listener {
    epoll: OwnedFd,
    /// Programs and channels that start at one address share its socket. The first of them takes
    /// what comes, and whoever ends leaves it to the others.
    foxes: Mutex<BySocket>,
}

impl Listener {
    /// It begins when there is something to listen to, and ends with the collector.
    fn get() -> io::Result<Arc<Self>> {
        static ONE: Mutex<Option<Arc<Listener>>> = Mutex::new(None);
        let mut one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(one) = &*one {
            return Ok(one.clone());
        }
        // SAFETY: no memory is touched.
        let epoll = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: a new descriptor, owned by nobody else.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        let new = Arc::new(Self { epoll, foxes: Mutex::default() });
        let own = new.clone();
        thread::Builder::new().name("fox".to_owned()).spawn(move || own.listen())?;
        Ok(one.insert(new).clone())
    }

    pub fn start(id: ChannelId, is: Configuration, timer: Timer) -> io::Result<Arc<Fox>> {
        let listener = Self::get()?;
        let mut foxes = listener.foxes();
        let socket = match shared(&foxes, is) {
            Some(socket) => socket,
            None => {
                let socket = open(is)?;
                listener.control(libc::EPOLL_CTL_ADD, socket.as_raw_fd())?;
                Arc::new(socket)
            }
        };
        let fd = socket.as_raw_fd();
        let fox = Arc::new(Fox::new(id, is, timer, socket, listener.clone()));
        foxes.entry(fd).or_default().push(fox.clone());
        Ok(fox)
    }

    /// Nothing comes to it any more.
    pub fn end(&self, fox: &Arc<Fox>) {
        let mut foxes = self.foxes();
        let fd = fox.socket.as_raw_fd();
        let Some(sharing) = foxes.get_mut(&fd) else { return };
        sharing.retain(|other| !Arc::ptr_eq(other, fox));
        if sharing.is_empty() {
            foxes.remove(&fd);
            // Closing it is not enough: the program has it, too.
            let _ = self.control(libc::EPOLL_CTL_DEL, fd);
        }
    }

    fn foxes(&self) -> MutexGuard<'_, BySocket> {
        self.foxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn control(&self, what: i32, fd: RawFd) -> io::Result<()> {
        let events = (libc::EPOLLIN | libc::EPOLLRDHUP) as u32;
        let mut event = libc::epoll_event { events, u64: fd as u64 };
        // SAFETY: the kernel reads one entry.
        checked(unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), what, fd, &raw mut event) })?;
        Ok(())
    }

    /// One datagram of each socket at a time: the clock read after the wait is that of them all.
    fn listen(&self) {
        let mut ready = [libc::epoll_event { events: 0, u64: 0 }; READY];
        let (epoll, most) = (self.epoll.as_raw_fd(), READY as i32);
        loop {
            // SAFETY: there are so many entries.
            let count = unsafe { libc::epoll_wait(epoll, ready.as_mut_ptr(), most, -1) };
            let now_ns = Source::Monotonic.now();
            let foxes = self.foxes();
            for event in ready.iter().take(count.max(0) as usize) {
                let fd = event.u64 as RawFd;
                if let Some(fox) = foxes.get(&fd).and_then(|all| all.first()) {
                    fox.take(now_ns);
                }
                // Its program has shut it down, and it would be ready for ever.
                if event.events & libc::EPOLLRDHUP as u32 != 0 {
                    let _ = self.control(libc::EPOLL_CTL_DEL, fd);
                }
            }
        }
    }
}

/// The socket of another that starts at the same address.
fn shared(foxes: &BySocket, is: Configuration) -> Option<Arc<UdpSocket>> {
    let start = |of: Configuration| (of.handler == Handler::FoxStart).then(|| address(of));
    let own = start(is)?;
    let mut others = foxes.values().flatten();
    others.find(|fox| start(fox.configuration) == Some(own)).map(|fox| fox.socket.clone())
}

fn open(is: Configuration) -> io::Result<UdpSocket> {
    let socket = if is.handler == Handler::FoxEnd {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        // Nothing goes to, or is taken from, anybody else.
        socket.connect(address(is))?;
        socket
    } else {
        UdpSocket::bind(address(is))?
    };
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
