// SPDX-License-Identifier: Apache-2.0
//! Finds where replies over TCP end, in whatever pieces they come.
//!
//! What a server sends is hostile input: a reply is counted and never stored, so that no length
//! that a server announces decides about memory.
#![forbid(unsafe_code)]

mod resp;
mod until;

pub use resp::Resp;
pub use until::{Search, Until};

/// Why a reply is read no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It is not of the protocol.
    Malformed,
    /// It is, or announces to be, longer than its limit.
    TooLong,
}
