// SPDX-License-Identifier: Apache-2.0
use std::fmt::{self, Display, Formatter};
use std::io;
use tare_shm::{Errno, Refusal};

/// Why the segment of a program cannot be served.
#[derive(Clone, Copy, Debug)]
pub enum SegmentError {
    Refused(Refusal),
    /// By this process, 0 where it is in another PID namespace.
    Served(u32),
}

impl std::error::Error for SegmentError {}

impl<E: Into<Refusal>> From<E> for SegmentError {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

impl Display for SegmentError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let refusal = match *self {
            Self::Refused(refusal) => refusal,
            Self::Served(_) => return out.write_str("another process uses it"),
        };
        out.write_str(match refusal {
            Refusal::Failed(Errno(number)) => {
                return io::Error::from_raw_os_error(number).fmt(out);
            }
            Refusal::NotSealed => "its size is not sealed, so another process could truncate it",
            Refusal::TooSmall => "it has the wrong size",
            Refusal::NotOurs => "it is not a segment of Tare",
            Refusal::Strangers(user) => return write!(out, "it belongs to user {user}"),
            Refusal::OtherProcess(pid) => return write!(out, "it belongs to process {pid}"),
            Refusal::OtherKind(_) => "it is a segment of another part of Tare",
            Refusal::OtherVersion(_) => "it has another version",
            Refusal::Damaged => "it is damaged",
        })
    }
}
