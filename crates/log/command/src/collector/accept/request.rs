// SPDX-License-Identifier: Apache-2.0
//! What a program that connects asks for, and how it is answered.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use tare_log_segment::Identity;
use tare_shm::{Errno, rights};

pub const NOT_UNDERSTOOD: &str = "it sent no descriptor, or several";

/// A program that has connected.
pub struct Client {
    pub request: Request,
    pub pid: u32,
    /// Who pays for it.
    pub user: u32,
    pub connection: UnixStream,
}

/// What it wants.
pub enum Request {
    /// That its segment is served.
    Serve(OwnedFd),
    /// To have this descriptor.
    Borrow(Identity),
    /// Nothing that is understood: it sent this descriptor and others, which were not received.
    Refuse(OwnedFd),
}

/// Answers a program that it is not served: without an answer it would come again.
pub fn refuse(mut connection: &UnixStream) {
    let _ = connection.write_all(&[0]);
}

/// Answers a program with a descriptor of its own.
pub fn lend(connection: &UnixStream, fd: BorrowedFd<'_>) -> io::Result<()> {
    rights::send(connection.as_raw_fd(), fd.as_raw_fd()).map_err(io_error)
}

/// The segment that comes with the first byte, or the name of a file; an error of the kind
/// `WouldBlock` where nothing has come yet.
pub fn received(connection: &UnixStream) -> io::Result<Request> {
    let mut bytes = [0; 16];
    let came = rights::receive(connection.as_raw_fd(), &mut bytes).map_err(io_error)?;
    // SAFETY: the kernel has just made it, for us alone.
    let segment = came.fd.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    match (came.length, segment) {
        (0, _) => Err(io::ErrorKind::UnexpectedEof.into()),
        (1.., Some(segment)) if came.is_cut => Ok(Request::Refuse(segment)),
        (1.., Some(segment)) => Ok(Request::Serve(segment)),
        (16, None) if !came.is_cut => Ok(Request::Borrow(Identity::from_bytes(bytes))),
        _ => Err(io::Error::other(NOT_UNDERSTOOD)),
    }
}

pub fn io_error(error: Errno) -> io::Error {
    io::Error::from_raw_os_error(error.0)
}
