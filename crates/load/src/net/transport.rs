// SPDX-License-Identifier: Apache-2.0
//! How requests travel. A transport makes connections and carries bytes; when a request is sent,
//! and every time that is taken of it, is the sender's matter, whatever the protocol.

use crate::clock::Nanoseconds;
use crate::record::sample::{ErrorKind, Outcome};
use std::io;
use std::time::Duration;

/// Whoever has one request under way at a time, by target and number: a user, or with pipelining
/// one of the requests that it has under way.
pub type RequestSlot = (usize, usize);

/// What has become of requests, by their slots.
pub type Events = Vec<(RequestSlot, TransportEvent)>;

#[derive(Debug)]
pub enum TransportEvent {
    /// The way that [`Transport::open`] did not find at once is there: it can be sent.
    Open,
    Ended(Outcome),
}

/// Each slot has one request under way at most: opened, then sent, then ended or given up.
pub trait Transport {
    /// Connects `users` users outside of the timed part, until `patience` is over: with many users it
    /// could take hours. The other connections are made when a request needs them, and
    /// those that cannot be made are its errors.
    fn prepare(&mut self, target: usize, users: usize, patience: Duration);

    /// Whether the slot's request can be sent now; if not, an event will follow. `idle` slots may
    /// have a connection that has ended meanwhile.
    fn open(&mut self, slot: RequestSlot, idle: bool) -> io::Result<bool>;

    /// Sends a request that can be sent; its outcome if there is one already.
    fn send(&mut self, slot: RequestSlot) -> Option<Outcome>;

    /// Sends what [`Transport::send`] may have held back to send it with more: there is no more
    /// now.
    fn push_out(&mut self) {}

    /// Waits for events until `most` is over, and returns their number.
    fn wait(&mut self, most: Nanoseconds) -> usize;

    /// What one of these events brought.
    fn event(&mut self, at: usize, events: &mut Events);

    /// What the request amounts to if it is given up now.
    fn give_up(&mut self, slot: RequestSlot, error: ErrorKind) -> Outcome;
}
