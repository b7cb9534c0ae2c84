// SPDX-License-Identifier: Apache-2.0
//! Sessions with one server that later connections take up again.

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A ticket of TLS 1.3 is for one connection, so there have to be as many as users. rustls has a
/// store of its own, but keeps 8: of 50 users with a connection for each request, many would have
/// a whole handshake every time.
const MOST: usize = 1024;

/// Of one server, whatever it is called.
#[derive(Default)]
pub struct Tickets(Mutex<Stored>);

#[derive(Default)]
struct Stored {
    group: Option<NamedGroup>,
    /// One session of TLS 1.2 is for any number of connections.
    tls12: Option<Tls12ClientSessionValue>,
    /// The oldest first.
    tls13: VecDeque<Tls13ClientSessionValue>,
}

impl Tickets {
    fn stored(&self) -> MutexGuard<'_, Stored> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.stored().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.stored().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.stored().tls12 = Some(session);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.stored().tls12.clone()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.stored().tls12 = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let tickets = &mut self.stored().tls13;
        if tickets.len() == MOST {
            tickets.pop_front();
        }
        tickets.push_back(ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.stored().tls13.pop_back()
    }
}

/// The secrets of sessions are not shown.
impl fmt::Debug for Tickets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tickets").finish_non_exhaustive()
    }
}
