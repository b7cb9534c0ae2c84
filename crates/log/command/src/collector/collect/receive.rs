// SPDX-License-Identifier: Apache-2.0
//! Programs that connect to a collector.

use super::{Collector, FALLBACK};
use crate::collector::accept::orphans::Orphan;
use crate::collector::accept::request::{self, Guest, Wish};
use crate::collector::producer::Target;
use crate::collector::quotas::budget::Amount;
use crate::program;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use tare_command::{Obstacle, said, say};
use tare_log_segment::Identity;
use tare_shm::{Refusal, syscall};

/// What any program of this user takes: its segment, its connection and its process.
const PROGRAM: Amount = Amount { descriptors: 3, mappings: 1, bytes: 0 };

/// What any program of a user takes.
fn needs(user: u32) -> Amount {
    let bytes = if user == program::user() { 0 } else { Target::LEAST_BYTES };
    Amount { bytes, ..PROGRAM }
}

impl Collector {
    /// Receives the programs that have connected, whether or not the file can be written, until the
    /// slices of their users end.
    pub(super) fn open_door(&mut self) {
        for guest in self.door.guests() {
            match self.budget.take(guest.user, needs(guest.user)) {
                Ok(()) => self.guests.push_back(guest),
                Err(what) => {
                    let Guest { pid, user, connection, .. } = guest;
                    request::refuse(&connection);
                    let text = format_args!(
                        "process {pid} of user {user} is refused: its user reached the limit of \
                         {what}"
                    );
                    self.complaints.say(user, text);
                }
            }
        }
        for _ in 0..self.guests.len() {
            let Some(guest) = self.guests.pop_front() else { break };
            let (user, begin) = (guest.user, Instant::now());
            let Some(until) = self.slices.end(user, begin) else {
                self.guests.push_back(guest);
                continue;
            };
            if !self.receive(guest, until) {
                self.budget.give_back(user, needs(user));
            }
            self.slices.spend(user, begin);
        }
    }

    /// Whether a new program is served from now on.
    fn receive(&mut self, guest: Guest, until: Instant) -> bool {
        let Guest { wish, pid, user, connection } = guest;
        match wish {
            Wish::Serve(segment) => return self.adopt(segment, pid, user, Some(connection), until),
            // A file of this user is nobody else's to write into.
            Wish::Borrow(what) if user == program::user() => self.lend(&connection, what),
            Wish::Borrow(_) => {}
        }
        false
    }

    /// Who is given nothing sees the connection end.
    fn lend(&mut self, connection: &UnixStream, what: Identity) {
        if self.output.identity() == Some(what) {
            let _ = request::lend(connection, self.output.lend());
        } else if let Some(socket) = self.targets.iter().find_map(|target| target.socket(what)) {
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
        if identity.is_some() && identity == self.output.identity() {
            drop(segment);
            // Closing any descriptor of the file has released the lock on it.
            let claimed = self.output.claim();
            connection.iter().for_each(request::refuse);
            let text = format_args!(
                "process {pid} sent the events file instead of its shared memory; it is refused"
            );
            self.complaints.say(user, text);
            if let Err(reason) = claimed {
                self.complaints.say(user, reason);
            }
            return false;
        }
        // One that was found among orphans while it was on its way to the door.
        let known = identity.and_then(|is| self.targets.iter_mut().find(|target| target.has(is)));
        if let Some(known) = known {
            known.join(segment, connection);
            return false;
        }
        let before = (Target::bytes_of(&segment), 0);
        let (number, codec) = (self.output.next_process(), self.output.codec);
        let second = connection.as_ref().and_then(|connection| connection.try_clone().ok());
        match Target::adopt(segment, pid, user, connection, number, codec) {
            Ok(mut target) => {
                target.held = needs(user);
                if target.has_fallen_back() && !self.has_told_of_fallback {
                    self.has_told_of_fallback = true;
                    say(FALLBACK);
                }
                self.targets.push(target);
                self.programs += 1;
                // Before the program goes on: rules hold from the first event on.
                let place = self.targets.len() - 1;
                self.rule(place, until);
                if self.charge_memory(place, before) {
                    self.targets[place].welcome();
                } else {
                    self.targets[place].is_over = true;
                    second.iter().for_each(request::refuse);
                }
                true
            }
            Err(obstacle) => {
                second.iter().for_each(request::refuse);
                self.complaints.say(user, reason(pid, obstacle));
                false
            }
        }
    }

    /// Looks on, for so long, for programs whose collector at this socket has died, and takes them
    /// over.
    pub(super) fn take_over(&mut self, most: Duration) {
        let until = Instant::now() + most;
        while let Some(search) = &mut self.search {
            let is_served_here = |segment| self.targets.iter().any(|target| target.has(segment));
            let (orphan, is_over) = search.next(is_served_here, until);
            if is_over {
                self.search = None;
            }
            if let Some(orphan) = orphan {
                self.take_orphan(orphan);
            }
            if Instant::now() >= until {
                break;
            }
        }
    }

    fn take_orphan(&mut self, Orphan { pid, segment }: Orphan) {
        let Ok(identity) = Identity::of(segment.as_raw_fd()) else { return };
        if let Some(known) = self.targets.iter().find(|target| target.has(identity)) {
            drop(segment);
            return known.lock_again();
        }
        let user = syscall::fstat(segment.as_raw_fd()).map_or(0, |status| status.st_uid);
        let user = self.door.payers().of(user);
        let is_new = self.budget.take(user, needs(user)).is_ok();
        if is_new && !self.adopt(segment, pid, user, None, Instant::now()) {
            self.budget.give_back(user, needs(user));
        }
    }
}

/// Why a segment is not served.
fn reason(pid: u32, obstacle: Obstacle) -> String {
    match obstacle {
        Obstacle::Served(0) => format!("process {pid} is served by another collector"),
        Obstacle::Served(other) => format!(
            "process {pid} is served by another collector (process \
                                            {other})"
        ),
        Obstacle::Refused(Refusal::OtherVersion(_)) => {
            format!(
                "process {pid} is refused: it uses another version of libtare_log than this \
                     collector"
            )
        }
        Obstacle::Refused(refusal) => {
            format!("the shared memory of process {pid} is refused: {}", said(refusal))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_other_users_take_memory_of_their_budget() {
        let own = program::user();
        assert_eq!(needs(own), PROGRAM);
        // The page tables of a segment, which is mapped whole.
        let tables = 8 * (Target::MOST_BYTES >> 12);
        assert!(needs(own ^ 1).bytes > tables);
    }
}
