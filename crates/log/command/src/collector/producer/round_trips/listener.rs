// SPDX-License-Identifier: Apache-2.0
//! The one thread of a collector that takes what comes to the sockets of all round trips.

use super::{RoundTripEnd, address};
use crate::collector::producer::event_clock::EventClock;
use crate::epoll::{Epoll, Ready};
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use tare_clock::Source;
use tare_log_segment::{ChannelId, Configuration, Handler};

type BySocket = HashMap<RawFd, Vec<Arc<RoundTripEnd>>>;

pub struct Listener {
    epoll: Epoll,
    /// Programs and channels that start at one address share its socket. The first of them takes
    /// what comes, and whoever ends leaves it to the others.
    round_trips: Mutex<BySocket>,
}

impl Listener {
    /// It begins when there is something to listen to, and ends with the collector.
    fn get() -> io::Result<Arc<Self>> {
        static LISTENER: Mutex<Option<Arc<Listener>>> = Mutex::new(None);
        let mut listener = LISTENER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = &*listener {
            return Ok(listener.clone());
        }
        let new = Arc::new(Self { epoll: Epoll::new()?, round_trips: Mutex::default() });
        let own = new.clone();
        thread::Builder::new().name("fox".to_owned()).spawn(move || own.listen())?;
        Ok(listener.insert(new).clone())
    }

    pub fn start(
        id: ChannelId,
        is: Configuration,
        event_clock: EventClock,
    ) -> io::Result<Arc<RoundTripEnd>> {
        let listener = Self::get()?;
        let mut round_trips = listener.round_trips();
        let socket = match shared(&round_trips, is) {
            Some(socket) => socket,
            None => {
                let socket = open(is)?;
                listener.epoll.add(socket.as_raw_fd())?;
                Arc::new(socket)
            }
        };
        let fd = socket.as_raw_fd();
        let trip_end = Arc::new(RoundTripEnd::new(id, is, event_clock, socket, listener.clone()));
        round_trips.entry(fd).or_default().push(trip_end.clone());
        Ok(trip_end)
    }

    /// Nothing comes to it any more.
    pub fn end(&self, trip_end: &Arc<RoundTripEnd>) {
        let mut round_trips = self.round_trips();
        let fd = trip_end.socket.as_raw_fd();
        let Some(sharing) = round_trips.get_mut(&fd) else { return };
        sharing.retain(|other| !Arc::ptr_eq(other, trip_end));
        if sharing.is_empty() {
            round_trips.remove(&fd);
            // Closing it is not enough: the program has it, too.
            let _ = self.epoll.remove(fd);
        }
    }

    fn round_trips(&self) -> MutexGuard<'_, BySocket> {
        self.round_trips.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One datagram of each socket at a time: the clock read after the wait is that of them all.
    fn listen(&self) {
        loop {
            let ready = self.epoll.ready(-1);
            let now_ns = Source::Monotonic.now();
            let round_trips = self.round_trips();
            for Ready { fd, is_shut } in ready {
                if let Some(trip_end) = round_trips.get(&fd).and_then(|all| all.first()) {
                    trip_end.take(now_ns);
                }
                // Its program has shut it down, and it would be ready for ever.
                if is_shut {
                    let _ = self.epoll.remove(fd);
                }
            }
        }
    }
}

/// The socket of another that starts at the same address.
fn shared(round_trips: &BySocket, is: Configuration) -> Option<Arc<UdpSocket>> {
    let start = |of: Configuration| (of.handler == Handler::FoxStart).then(|| address(of));
    let own = start(is)?;
    let mut others = round_trips.values().flatten();
    others
        .find(|trip_end| start(trip_end.configuration) == Some(own))
        .map(|trip_end| trip_end.socket.clone())
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
