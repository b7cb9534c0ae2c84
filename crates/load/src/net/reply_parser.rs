// SPDX-License-Identifier: Apache-2.0
//! Replies, whatever the protocol: what a connection has to know of them.

use crate::record::sample::{ErrorKind, Outcome};
use std::fmt::Debug;

/// Reads the replies that come on one connection, one at a time, in whatever pieces they come.
pub trait ReplyParser: Debug + Send {
    /// The next reply begins.
    fn begin(&mut self);

    /// Takes what it can of `input` and returns the number of bytes; what it does not take comes
    /// again, with more behind it. Bytes that are left once it is done are not this reply's.
    fn advance(&mut self, input: &[u8]) -> Result<usize, ErrorKind>;

    /// The peer closed: whether that is a proper end of this reply.
    fn close(&mut self) -> bool;

    fn is_done(&self) -> bool;

    /// Whether the server lets the connection live on.
    fn keeps_alive(&self) -> bool;

    /// What the complete reply amounts to.
    fn outcome(&self) -> Outcome;

    /// What the reply amounts to, cut short by an error.
    fn failed(&self, error: ErrorKind) -> Outcome;
}
