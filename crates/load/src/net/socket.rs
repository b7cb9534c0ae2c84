// SPDX-License-Identifier: Apache-2.0
//! A TCP connection by plain system calls.

use crate::stop::{self, LOOK_UP};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// How the calls on a socket wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Calls block: the connect for so long at most, or until a stop is asked for; the others
    /// as [`Socket::wait_at_most`] says.
    Blocking { connect: Duration },
    /// Calls never block.
    Polled,
}

/// Room for an address of either family.
const NAME: usize = size_of::<libc::sockaddr_in6>();
type NameCall =
    unsafe extern "C" fn(RawFd, *mut libc::sockaddr, *mut libc::socklen_t) -> libc::c_int;

#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    /// How long a call blocks.
    patience: Duration,
}

impl Socket {
    /// Connects. `Ok` of a polled socket means that it may still go on:
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
        let mut socket = Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, patience: Duration::ZERO };
        socket.set(libc::IPPROTO_TCP, libc::TCP_NODELAY, &1i32)?;
        match waiting {
            Waiting::Blocking { connect } => socket.connect_within(connect, address)?,
            Waiting::Polled => drop(socket.go_on_connecting(address)?),
        }
        Ok(socket)
    }

    fn connect_within(&mut self, most: Duration, address: &SocketAddr) -> io::Result<()> {
        let start = Instant::now();
        let mut left = most;
        loop {
            self.wait_at_most(left)?;
            if self.go_on_connecting(address)? {
                return self.refuse_itself();
            }
            left = most.saturating_sub(start.elapsed());
            if stop::asked() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if left.is_zero() {
                let what = format!("no answer within {most:?}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
        }
    }

    /// Whether the connection is made; if not, another call goes on with it.
    fn go_on_connecting(&self, address: &SocketAddr) -> io::Result<bool> {
        let (storage, length) = as_raw(address);
        // SAFETY: `storage` holds an address of `length` bytes.
        let code = unsafe { libc::connect(self.raw(), (&raw const storage).cast(), length) };
        match check(code) {
            Ok(_) => Ok(true),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINPROGRESS | libc::EALREADY | libc::EINTR) => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// From now on a call blocks for so long at most, and never longer than [`LOOK_UP`]: then
    /// it fails with `WouldBlock`.
    pub fn wait_at_most(&mut self, time: Duration) -> io::Result<()> {
        let time = time.min(LOOK_UP);
        if time != self.patience {
            self.set(libc::SOL_SOCKET, libc::SO_SNDTIMEO, &time_value(time))?;
            self.set(libc::SOL_SOCKET, libc::SO_RCVTIMEO, &time_value(time))?;
            self.patience = time;
        }
        Ok(())
    }

    /// A connect to a local port that nobody listens on may be given that very port to come
    /// from, and then meets itself. That is no service, and would keep the port from one.
    fn refuse_itself(&self) -> io::Result<()> {
        if self.name_by(libc::getsockname)? != self.name_by(libc::getpeername)? {
            return Ok(());
        }
        // Closed by a reset, it leaves the port at once.
        let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
        self.set(libc::SOL_SOCKET, libc::SO_LINGER, &at_once)?;
        Err(io::Error::from_raw_os_error(libc::ECONNREFUSED))
    }

    /// The address of one of the two ends, as the kernel writes it.
    fn name_by(&self, call: NameCall) -> io::Result<[u8; NAME]> {
        let mut name = [0; NAME];
        let mut length = NAME as libc::socklen_t;
        // SAFETY: `name` has room for `length` bytes.
        check(unsafe { call(self.raw(), name.as_mut_ptr().cast(), &mut length) })?;
        Ok(name)
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
        if code == 0 { self.refuse_itself() } else { Err(io::Error::from_raw_os_error(code)) }
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

    /// Whether an idle connection is still open and nothing has come.
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

impl io::Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer)
    }
}

impl io::Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_connection_to_itself_is_a_refused_one() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        // SAFETY: no pointers are passed.
        let fd = check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) }).unwrap();
        // SAFETY: the descriptor is fresh and owned by nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let socket = Socket { fd, patience: Duration::ZERO };
        let (storage, length) = as_raw(&free);
        // SAFETY: `storage` holds an address of `length` bytes.
        check(unsafe { libc::bind(socket.raw(), (&raw const storage).cast(), length) }).unwrap();
        assert!(socket.go_on_connecting(&free).unwrap());
        let refused = socket.connected().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        drop(socket);
        // A child of another test has a copy of the socket until it executes its program.
        while let Err(error) = TcpListener::bind(free) {
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_connection_to_a_service_is_none_to_itself() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // A machine without IPv6 has nothing to show.
            let Ok(service) = TcpListener::bind(address) else { continue };
            let waiting = Waiting::Blocking { connect: Duration::from_secs(5) };
            let socket = Socket::connect(&service.local_addr().unwrap(), waiting).unwrap();
            assert!(socket.connected().is_ok() && socket.is_quiet());
        }
    }
}
