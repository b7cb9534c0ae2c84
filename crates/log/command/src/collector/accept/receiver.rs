// SPDX-License-Identifier: Apache-2.0
//! A process that receives the descriptors of one other user for a collector.
//!
//! `close` blocks as long as the sender wants: for a TCP socket with `SO_LINGER` that has unsent
//! bytes, or for a file of FUSE whose server does not answer. It also blocks for descriptors that
//! are closed unread with the connection. So the collector closes none that another user has
//! sent: it passes the connection on to this process, which returns it empty, with a segment.

use super::request::{Request, received};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use tare_shm::{Errno, rights, syscall};

/// The first argument of such a process.
pub const NAME: &str = "tare-log-receiver";

/// What the collector asks: one byte, with a connection.
pub const RECEIVE: u8 = 1;
pub const CLOSE: u8 = 0;

/// What it gets: the descriptor of a segment, then its connection; or only a connection, for the
/// other answers.
pub const SEGMENT: u8 = 1;
pub const SERVE: u8 = 2;
pub const BORROW: u8 = 3;
pub const NO_SEGMENT: u8 = 4;
pub const NOT_UNDERSTOOD: u8 = 5;

/// An answer, and the identity that a program has asked for.
pub const ANSWER: usize = 1 + 16;

/// The collector is at the other end of standard input.
const COLLECTOR: RawFd = libc::STDIN_FILENO;

/// Until the collector ends.
pub fn run() -> ExitCode {
    // SAFETY: no memory is touched.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    loop {
        wait(libc::POLLIN);
        let mut what = [CLOSE];
        match rights::receive(COLLECTOR, &mut what) {
            Ok(rights::Message { fd: Some(fd), .. }) => {
                // SAFETY: the kernel has just made it, for us alone.
                let connection = UnixStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
                if what == [RECEIVE] && answer(connection).is_err() {
                    return ExitCode::FAILURE;
                }
            }
            Err(Errno(libc::EAGAIN | libc::EINTR)) => {}
            _ => return ExitCode::SUCCESS,
        }
    }
}

fn answer(connection: UnixStream) -> Result<(), Errno> {
    let request = received(&connection);
    empty(&connection);
    let mut bytes = [0; ANSWER];
    bytes[0] = match request {
        Ok(Request::Serve(segment)) if may_be_segment(&segment) => {
            bytes[0] = SEGMENT;
            send(&bytes, segment.as_raw_fd())?;
            SERVE
        }
        Ok(Request::Serve(_)) => NO_SEGMENT,
        Ok(Request::Borrow(what)) => {
            bytes[1..].copy_from_slice(&what.bytes());
            BORROW
        }
        Ok(Request::Refuse(_)) => NOT_UNDERSTOOD,
        Err(error) if error.kind() == io::ErrorKind::Other => NOT_UNDERSTOOD,
        Err(_) => return Ok(()),
    };
    send(&bytes, connection.as_raw_fd())
}

/// Nothing can be sent over this connection any more, and what was sent is taken out.
fn empty(connection: &UnixStream) {
    let _ = connection.shutdown(std::net::Shutdown::Read);
    let mut bytes = [0; 4096];
    while let Ok(message) = rights::receive(connection.as_raw_fd(), &mut bytes) {
        message.fd.into_iter().for_each(syscall::close);
        if message.length == 0 {
            break;
        }
    }
}

/// Only files in memory have seals, and no program can delay that they are closed.
fn may_be_segment(fd: &OwnedFd) -> bool {
    syscall::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS, 0).is_ok()
}

fn send(bytes: &[u8], fd: RawFd) -> Result<(), Errno> {
    loop {
        match rights::send_with(COLLECTOR, bytes, fd) {
            Err(Errno(libc::EAGAIN | libc::EINTR)) => wait(libc::POLLOUT),
            sent => return sent,
        }
    }
}

fn wait(events: i16) {
    let mut poll = libc::pollfd { fd: COLLECTOR, events, revents: 0 };
    // SAFETY: one entry.
    unsafe { libc::poll(&raw mut poll, 1, -1) };
}
