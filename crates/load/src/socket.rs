// SPDX-License-Identifier: Apache-2.0
//! A TCP connection by plain system calls. The one place that would learn of TLS.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// How the calls on a socket wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Calls block, for so long at most: then they fail with `WouldBlock`.
    Blocking { connect: Duration, call: Duration },
    /// Calls never block.
    Polled,
}

#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// Starts to connect. `Ok` of a polled socket means that it may still go on:
    /// [`Socket::connected`] tells the result once the socket can be written to.
    pub fn connect(address: &SocketAddr, waiting: Waiting) -> io::Result<Self> {
        let (family, kind) = match (address, waiting) {
            (SocketAddr::V4(_), Waiting::Polled) => (libc::AF_INET, libc::SOCK_NONBLOCK),
            (SocketAddr::V6(_), Waiting::Polled) => (libc::AF_INET6, libc::SOCK_NONBLOCK),
            (SocketAddr::V4(_), Waiting::Blocking { .. }) => (libc::AF_INET, 0),
            (SocketAddr::V6(_), Waiting::Blocking { .. }) => (libc::AF_INET6, 0),
        };
        // SAFETY: no pointers are passed.
        let fd = check(unsafe {
            libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC | kind, 0)
        })?;
        // SAFETY: the descriptor is fresh and owned by nobody else.
        let socket = Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } };
        socket.set(libc::IPPROTO_TCP, libc::TCP_NODELAY, &1i32)?;
        if let Waiting::Blocking { connect, .. } = waiting {
            socket.set(libc::SOL_SOCKET, libc::SO_SNDTIMEO, &time_value(connect))?;
        }
        let (storage, length) = as_raw(address);
        // SAFETY: `storage` holds an address of `length` bytes.
        let code = unsafe { libc::connect(fd, (&raw const storage).cast(), length) };
        match check(code) {
            Err(error)
                if waiting == Waiting::Polled
                    && error.raw_os_error() == Some(libc::EINPROGRESS) =>
            {
                Ok(socket)
            }
            Err(error) => Err(error),
            Ok(_) => {
                if let Waiting::Blocking { call, .. } = waiting {
                    socket.set(libc::SOL_SOCKET, libc::SO_SNDTIMEO, &time_value(call))?;
                    socket.set(libc::SOL_SOCKET, libc::SO_RCVTIMEO, &time_value(call))?;
                }
                Ok(socket)
            }
        }
    }

    /// From now on the calls do not wait.
    pub fn never_block(&self) -> io::Result<()> {
        // SAFETY: no pointers are passed.
        check(unsafe { libc::fcntl(self.raw(), libc::F_SETFL, libc::O_NONBLOCK) }).map(drop)
    }

    /// The result of a connect that went on.
    pub fn connected(&self) -> io::Result<()> {
        let mut code = 0i32;
        let mut length = size_of::<i32>() as libc::socklen_t;
        // SAFETY: `code` and `length` are valid places for the result.
        check(unsafe {
            libc::getsockopt(
                self.raw(),
                libc::SOL_SOCKET,
                libc::SO_ERROR,
                (&raw mut code).cast(),
                &mut length,
            )
        })?;
        if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
    }

    #[inline]
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the buffer is valid for its length.
        let sent = unsafe {
            libc::send(self.raw(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL)
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the buffer is valid for its length.
        let got = unsafe { libc::recv(self.raw(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        usize::try_from(got).map_err(|_| io::Error::last_os_error())
    }

    /// Whether an idle connection is still open and nothing unasked for has come.
    pub fn is_quiet(&self) -> bool {
        let mut byte = 0u8;
        // SAFETY: the buffer is one byte.
        let got = unsafe {
            libc::recv(self.raw(), (&raw mut byte).cast(), 1, libc::MSG_PEEK | libc::MSG_DONTWAIT)
        };
        got < 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock
    }

    pub fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    fn set<T>(&self, level: i32, option: i32, value: &T) -> io::Result<()> {
        let length = size_of::<T>() as libc::socklen_t;
        // SAFETY: the option's value is a valid object of `length` bytes.
        check(unsafe {
            libc::setsockopt(self.raw(), level, option, std::ptr::from_ref(value).cast(), length)
        })
        .map(drop)
    }
}

/// At least a microsecond: zero would mean forever.
fn time_value(time: Duration) -> libc::timeval {
    let time = time.max(Duration::from_micros(1));
    libc::timeval { tv_sec: time.as_secs().cast_signed(), tv_usec: i64::from(time.subsec_micros()) }
}

fn check(code: i32) -> io::Result<i32> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(code) }
}

fn as_raw(address: &SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all zeroes is a valid value of this plain structure.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let length = match address {
        SocketAddr::V4(address) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: the storage is larger than every kind of address, and aligned for it.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(raw) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(address) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                sin6_scope_id: address.scope_id(),
            };
            // SAFETY: the storage is larger than every kind of address, and aligned for it.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in6>().write(raw) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, length as libc::socklen_t)
}
