// SPDX-License-Identifier: Apache-2.0
use std::io;
use tare_shm::{Errno, Refusal};

/// Why the segment of a program cannot be served.
pub enum Obstacle {
    Refused(Refusal),
    /// By this process, 0 where it is in another PID namespace.
    Served(u32),
}

impl<E: Into<Refusal>> From<E> for Obstacle {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

/// What is wrong with a segment, in words.
pub fn said(refusal: Refusal) -> String {
    match refusal {
        Refusal::Failed(Errno(number)) => return io::Error::from_raw_os_error(number).to_string(),
        Refusal::NotSealed => "its size is not sealed, so another process could truncate it",
        Refusal::TooSmall => "it has the wrong size",
        Refusal::NotOurs => "it is not a segment of Tare",
        Refusal::Strangers(user) => return format!("it belongs to user {user}"),
        Refusal::OtherProcess(pid) => return format!("it belongs to process {pid}"),
        Refusal::OtherKind(_) => "it is a segment of another part of Tare",
        Refusal::OtherVersion(_) => "it has another version",
        Refusal::Damaged => "it is damaged",
    }
    .to_owned()
}
