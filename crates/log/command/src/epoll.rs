// SPDX-License-Identifier: Apache-2.0
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Descriptors that are looked at after one wait.
const READY: usize = 64;

/// Waits for many descriptors at once. It is itself readable while one of them is.
pub struct Epoll(OwnedFd);

/// What has become of a descriptor.
pub struct Ready {
    pub fd: RawFd,
    /// Whether nothing more will come.
    pub is_shut: bool,
}

impl Epoll {
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is touched.
        let fd = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: a new descriptor, owned by nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub fn add(&self, fd: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd)
    }

    pub fn remove(&self, fd: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd)
    }

    fn control(&self, what: i32, fd: RawFd) -> io::Result<()> {
        let events = (libc::EPOLLIN | libc::EPOLLRDHUP) as u32;
        let mut event = libc::epoll_event { events, u64: fd as u64 };
        // SAFETY: the kernel reads one entry.
        checked(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), what, fd, &raw mut event) })?;
        Ok(())
    }

    /// Those that are readable, some of them if they are many; waits for one at most for so many
    /// milliseconds, -1 for as long as it takes.
    pub fn ready(&self, most_ms: i32) -> impl Iterator<Item = Ready> + use<> {
        let mut ready = [libc::epoll_event { events: 0, u64: 0 }; READY];
        // SAFETY: there are so many entries.
        let count = unsafe {
            libc::epoll_wait(self.0.as_raw_fd(), ready.as_mut_ptr(), READY as i32, most_ms)
        };
        ready.into_iter().take(count.max(0) as usize).map(|event| Ready {
            fd: event.u64 as RawFd,
            is_shut: event.events & libc::EPOLLRDHUP as u32 != 0,
        })
    }
}

impl AsRawFd for Epoll {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
