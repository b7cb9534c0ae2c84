// SPDX-License-Identifier: Apache-2.0
//! How requests travel. A wire makes connections and carries bytes; when a request is sent, and
//! every time that is taken of it, is the pool's matter, whatever the protocol.

use crate::clock::Nanoseconds;
use crate::record::sample::{ErrorKind, Outcome};
use std::io;
use std::time::Duration;

/// Whoever has one request under way at a time, by target and number: a user, or with pipelining
/// one of the requests that it has under way.
pub type Place = (usize, usize);

/// What has become of a place's request.
#[derive(Debug)]
pub enum News {
    /// The way that [`Wire::open`] did not find at once is there: it can be sent.
    Open,
    Ended(Outcome),
}

/// Each place has one request under way at most: opened, then sent, then ended or given up.
pub trait Wire {
    /// Makes connections of so many users, outside of the timed part, for `patience` at most, as
    /// with many users it could take hours. The others are made when a request needs them, and
    /// those that cannot be made are its errors.
    fn prepare(&mut self, target: usize, users: usize, patience: Duration);

    /// Whether the place's request can be sent now; if not, there will be news. `idle` places may
    /// have a connection that has ended meanwhile.
    fn open(&mut self, place: Place, idle: bool) -> io::Result<bool>;

    /// Sends a request that can be sent; its outcome if there is one already.
    fn send(&mut self, place: Place) -> Option<Outcome>;

    /// Sends what [`Wire::send`] may have held back to send it with more: there is no more now.
    fn push_out(&mut self) {}

    /// Waits for events, for so many ns at most, and returns their number.
    fn wait(&mut self, most: Nanoseconds) -> usize;

    /// What one of these events brought.
    fn event(&mut self, at: usize, news: &mut Vec<(Place, News)>);

    /// What the request amounts to if it is given up now.
    fn give_up(&mut self, place: Place, error: ErrorKind) -> Outcome;
}
