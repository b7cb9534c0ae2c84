// SPDX-License-Identifier: Apache-2.0
use crate::clock::Nanoseconds;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

const EVENTS: usize = 256;

/// What a socket is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    Readable,
    /// Also for the answer that a server may give before it has the whole request.
    Both,
    /// Changes of both: its owner goes on until it would have to wait.
    Edges,
}

/// Waits for many sockets at once; each has a key that its events carry.
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
    ready: usize,
    /// The kernel has epoll_pwait2 (Linux 5.11), whose time-out is in nanoseconds.
    fine: bool,
}

impl Epoll {
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            // SAFETY: the descriptor is fresh and owned by nobody else.
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
            events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS],
            ready: 0,
            fine: true,
        })
    }

    /// A socket that is closed leaves by itself.
    pub fn add(&self, socket: RawFd, key: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, key, interest)
    }

    pub fn change(&self, socket: RawFd, key: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket, key, interest)
    }

    fn control(&self, how: i32, socket: RawFd, key: u64, interest: Interest) -> io::Result<()> {
        let flags = match interest {
            Interest::Readable => libc::EPOLLIN,
            Interest::Both => libc::EPOLLIN | libc::EPOLLOUT,
            Interest::Edges => libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET,
        };
        let mut event = libc::epoll_event { events: flags.cast_unsigned(), u64: key };
        // SAFETY: `event` is a valid event.
        let code = unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), how, socket, &mut event) };
        if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits for events, for so many ns at most. The thread's timer slack decides how
    /// punctually it wakes.
    pub fn wait(&mut self, most: Nanoseconds) {
        let most = most.max(0);
        let count = if self.fine { self.wait_finely(most) } else { self.wait_coarsely(most) };
        self.ready = usize::try_from(count).unwrap_or(0);
    }

    fn wait_finely(&mut self, most: Nanoseconds) -> i64 {
        let time = libc::timespec { tv_sec: most / 1_000_000_000, tv_nsec: most % 1_000_000_000 };
        // SAFETY: the events and the time are valid; there is no signal mask. The raw
        // call is in no glibc before 2.35.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS as i32,
                &raw const time,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        let error = io::Error::last_os_error().raw_os_error();
        if count < 0 && matches!(error, Some(libc::ENOSYS | libc::EPERM)) {
            self.fine = false;
        }
        count
    }

    fn wait_coarsely(&mut self, most: Nanoseconds) -> i64 {
        let most = i32::try_from((most + 999_999) / 1_000_000).unwrap_or(i32::MAX);
        let (events, fd) = (self.events.as_mut_ptr(), self.fd.as_raw_fd());
        // SAFETY: the events are valid for their number.
        unsafe { libc::epoll_wait(fd, events, EVENTS as i32, most) }.into()
    }

    /// How many events the last wait brought.
    pub fn ready(&self) -> usize {
        self.ready
    }

    /// The key of one event and whether its socket can be written to.
    pub fn event(&self, at: usize) -> (u64, bool) {
        let event = self.events[at];
        (event.u64, event.events & libc::EPOLLOUT.cast_unsigned() != 0)
    }
}
