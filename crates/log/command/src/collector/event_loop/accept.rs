// SPDX-License-Identifier: Apache-2.0
//! Programs that connect to a collector.

use super::{Collector, FALLBACK};
use crate::collector::accept::request::{self, Client, NOT_UNDERSTOOD, Request};
use crate::collector::accept::takeover::UnservedSegment;
use crate::collector::producer::Producer;
use crate::collector::quotas::resource_quota::Resources;
use crate::procfs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use tare_command::{SegmentError, say};
use tare_log_segment::Identity;
use tare_shm::{Refusal, syscall};

/// What any program of this user takes: its segment, its connection and its process.
const PROGRAM: Resources = Resources { descriptors: 3, mappings: 1, bytes: 0 };

/// What any program of a user takes.
fn needs(user: u32) -> Resources {
    let bytes = if procfs::is_own(user) { 0 } else { Producer::LEAST_BYTES };
    Resources { bytes, ..PROGRAM }
}

impl Collector {
    /// Receives the programs that have connected, whether or not the file can be written, until the
    /// shares of their users end.
    pub(super) fn accept_clients(&mut self) {
        for client in self.acceptor.clients() {
            match self.resource_quotas.take(client.user, needs(client.user)) {
                Ok(()) => self.clients.push_back(client),
                Err(what) => {
                    let Client { pid, user, connection, .. } = client;
                    request::refuse(&connection);
                    let text = format_args!(
                        "process {pid} of user {user} is refused: its user reached the limit of \
                         {what}"
                    );
                    self.user_warnings.warn(user, text);
                }
            }
        }
        for _ in 0..self.clients.len() {
            let Some(client) = self.clients.pop_front() else { break };
            let (user, begin) = (client.user, Instant::now());
            let Some(until) = self.time_shares.end(user, begin) else {
                self.clients.push_back(client);
                continue;
            };
            if !self.receive(client, until) {
                self.resource_quotas.give_back(user, needs(user));
            }
            self.time_shares.spend(user, begin);
        }
    }

    /// Whether a new program is served from now on.
    fn receive(&mut self, client: Client, until: Instant) -> bool {
        let Client { request, pid, user, connection } = client;
        match request {
            Request::Serve(segment) => {
                return self.adopt(segment, pid, user, Some(connection), until);
            }
            // A file of this user is nobody else's to write into.
            Request::Borrow(what) if procfs::is_own(user) => self.lend(&connection, what),
            Request::Borrow(_) => {}
            Request::Refuse(descriptor) => {
                self.close(descriptor, user);
                request::refuse(&connection);
                let text = format_args!("process {pid} could not connect: {NOT_UNDERSTOOD}");
                self.user_warnings.warn(user, text);
            }
        }
        false
    }

    /// Closing any descriptor of a file releases the lock on it, so the file of events or a segment
    /// that is served is locked again.
    fn close(&mut self, descriptor: OwnedFd, user: u32) {
        let identity = Identity::of(descriptor.as_raw_fd()).ok();
        drop(descriptor);
        let Some(identity) = identity else { return };
        self.producers
            .iter()
            .filter(|producer| producer.has(identity))
            .for_each(Producer::lock_again);
        if self.log_file.identity() == Some(identity)
            && let Err(reason) = self.log_file.claim()
        {
            self.user_warnings.warn(user, reason);
        }
    }

    /// Who is given nothing sees the connection end.
    fn lend(&mut self, connection: &UnixStream, what: Identity) {
        if self.log_file.identity() == Some(what) {
            let _ = request::lend(connection, self.log_file.lend());
        } else if let Some(socket) =
            self.producers.iter().find_map(|producer| producer.socket(what))
        {
            let _ = request::lend(connection, socket);
        }
    }

    /// Whether the segment is that of a new program, which is served from now on.
    fn adopt(
        &mut self,
        segment: OwnedFd,
        pid: u32,
        user: u32,
        connection: Option<UnixStream>,
        until: Instant,
    ) -> bool {
        let identity = Identity::of(segment.as_raw_fd()).ok();
        if identity.is_some() && identity == self.log_file.identity() {
            self.close(segment, user);
            connection.iter().for_each(request::refuse);
            let text = format_args!(
                "process {pid} sent the events file instead of its shared memory; it is refused"
            );
            self.user_warnings.warn(user, text);
            return false;
        }
        // One that was found as unserved while it was about to connect.
        let known =
            identity.and_then(|is| self.producers.iter_mut().find(|producer| producer.has(is)));
        if let Some(known) = known {
            known.join(segment, connection);
            return false;
        }
        let before = (Producer::bytes_of(&segment), 0);
        let (number, codec) = (self.log_file.next_process(), self.log_file.codec);
        let second = connection.as_ref().and_then(|connection| connection.try_clone().ok());
        match Producer::adopt(segment, pid, user, connection, number, codec) {
            Ok(mut producer) => {
                producer.held = needs(user);
                if producer.has_fallen_back() && !self.has_told_of_fallback {
                    self.has_told_of_fallback = true;
                    say(FALLBACK);
                }
                self.producers.push(producer);
                self.programs += 1;
                // Before the program goes on: rules hold from the first event on.
                let place = self.producers.len() - 1;
                self.rule(place, until);
                if self.charge_memory(place, before) {
                    self.producers[place].welcome();
                } else {
                    self.producers[place].is_over = true;
                    second.iter().for_each(request::refuse);
                }
                true
            }
            Err(error) => {
                second.iter().for_each(request::refuse);
                self.user_warnings.warn(user, reason(pid, error));
                false
            }
        }
    }

    /// Looks on, for so long, for programs whose collector at this socket has died, and takes them
    /// over.
    pub(super) fn take_over(&mut self, most: Duration) {
        let until = Instant::now() + most;
        while let Some(search) = &mut self.search {
            let is_served_here =
                |segment| self.producers.iter().any(|producer| producer.has(segment));
            let (unserved, is_over) = search.next(is_served_here, until);
            if is_over {
                self.search = None;
            }
            if let Some(unserved) = unserved {
                self.take_unserved(unserved);
            }
            if Instant::now() >= until {
                break;
            }
        }
    }

    fn take_unserved(&mut self, UnservedSegment { pid, segment }: UnservedSegment) {
        let Ok(identity) = Identity::of(segment.as_raw_fd()) else { return };
        if let Some(known) = self.producers.iter().find(|producer| producer.has(identity)) {
            drop(segment);
            return known.lock_again();
        }
        let user = syscall::fstat(segment.as_raw_fd()).map_or(0, |status| status.st_uid);
        let user = self.acceptor.subordinate_ids().of(user);
        let is_new = self.resource_quotas.take(user, needs(user)).is_ok();
        if is_new && !self.adopt(segment, pid, user, None, Instant::now()) {
            self.resource_quotas.give_back(user, needs(user));
        }
    }
}

/// Why a segment is not served.
fn reason(pid: u32, error: SegmentError) -> String {
    match error {
        SegmentError::Served(0) => format!("process {pid} is served by another collector"),
        SegmentError::Served(other) => format!(
            "process {pid} is served by another collector (process \
                                            {other})"
        ),
        SegmentError::Refused(Refusal::OtherVersion(_)) => {
            format!(
                "process {pid} is refused: it uses another version of libtare_log than this \
                     collector"
            )
        }
        SegmentError::Refused(_) => {
            format!("the shared memory of process {pid} is refused: {error}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_other_users_take_memory_of_their_budget() {
        let own = procfs::user();
        assert_eq!(needs(own), PROGRAM);
        // The page tables of a segment, which is mapped whole.
        let tables = 8 * (Producer::MOST_BYTES >> 12);
        assert!(needs(own ^ 1).bytes > tables);
    }
}
