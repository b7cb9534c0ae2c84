// SPDX-License-Identifier: Apache-2.0
//! What the one thread that waits for an epoll set does: it looks for bytes and room in the rings of
//! the set's links, polls them for a moment, and arms their doorbells before it sleeps.

use crate::epoll::epoll_member::Member;
use crate::epoll::epoll_members::{MOST, Members};
use crate::links::slots::Slot;
use crate::stream::eventfds;
use crate::stream::{buffers, downgrade, send};
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;
use libc::{epoll_event, iovec};
use tare_shm::syscall::Errno;

/// A member that sleeps; its slot is in use until it wakes.
#[derive(Clone, Copy)]
pub struct SleepingMember(Option<&'static Slot>);

pub type SleepingMembers = [SleepingMember; MOST];
pub const NO_SLEEPERS: SleepingMembers = [SleepingMember(None); MOST];

impl Members {
    /// After the kernel has reported edges: the next bytes are one again, even if the program does not
    /// read before.
    pub fn renew_edges(&self) {
        self.each(|_, slot| {
            let is_rung = slot.mapping().incoming.doorbell().is_rung();
            if is_rung && slot.has_edges.load(Relaxed) != 0 && eventfds::is_armed(slot) {
                eventfds::settle_again(slot);
            }
        });
    }

    /// Before the kernel is asked without a sleep: no eventfd says that there are bytes if there are
    /// none.
    pub fn clear_eventfds(&self) {
        self.each(|_, slot| {
            let incoming = slot.mapping().incoming;
            if eventfds::has_number(slot) && !incoming.has_updates() {
                eventfds::settle_for_sets(slot);
            }
        });
    }

    /// Events of links whose rings have bytes, or room: at most `most`, and whether the kernel may
    /// have others at once. An error if they cannot be written.
    pub fn collect(&self, events: *mut epoll_event, most: c_int) -> Result<(c_int, bool), Errno> {
        let most = usize::try_from(most).unwrap_or(0).min(MOST);
        let mut found = [const { MaybeUninit::<epoll_event>::uninit() }; MOST];
        let mut count = 0;
        let mut has_more = false;
        let used = self.used();
        let first = (self.first.load(Relaxed) as usize).min(used.len());
        let mut next = 0;
        let mut look = |number: usize, member: &Member, slot: &'static Slot| {
            let (input, output) = (member.input(), member.output());
            if count == most || input | output == 0 {
                return;
            }
            let is_ours = self.waiter_arms(slot);
            let has_room = output != 0 && is_ours && send::has_room(slot);
            has_more |= output != 0 && (!has_room || member.wants_more());
            let mut ready = if has_room { output } else { 0 };
            let incoming = slot.mapping().incoming;
            // TCP may have bytes that are to be read first; and of other links the kernel knows.
            has_more |= input != 0
                && (incoming.followed().is_multiple_of(2) || !is_ours && incoming.has_updates());
            let mark = incoming.mark();
            // No bell is rung again for bytes behind unread ones, and an edge too many does no harm.
            if input != 0
                && (is_ours || member.has_edges())
                && member.is_reportable(mark)
                && incoming.has_updates()
                && (eventfds::has_bytes(slot) || member.has_edges() && incoming.unread() > 0)
            {
                member.has_reported(mark);
                ready |= input;
            }
            if ready != 0 {
                found[count].write(epoll_event { events: ready, u64: member.data() });
                (count, next) = (count + 1, number + 1);
            }
        };
        for number in (first..used.len()).chain(0..first) {
            if let Some(slot) = used[number].enter() {
                look(number, &used[number], slot);
                slot.leave();
            }
        }
        let is_crowded = count == most;
        self.is_crowded.store(is_crowded.into(), Relaxed);
        // Those for which there was no room are first in the next wait.
        self.first.store(if is_crowded { next as u32 } else { 0 }, Relaxed);
        let length = count * size_of::<epoll_event>();
        let own = iovec { iov_base: found.as_mut_ptr().cast(), iov_len: length };
        let programs = iovec { iov_base: events.cast(), iov_len: length };
        if count > 0 {
            buffers::write(&[own], &[programs])?;
        }
        Ok((count as c_int, has_more))
    }

    /// Waits some microseconds for bytes of any link.
    pub fn spin(&self) -> bool {
        // Once: a set that is closed meanwhile has fewer, and each link that was entered must be left.
        let used = self.used();
        let mut entered = [None; MOST];
        for (member, slot) in used.iter().zip(&mut entered) {
            *slot = member.enter();
        }
        let links = || {
            used.iter().zip(&entered).filter_map(|(member, slot)| slot.map(|slot| (member, slot)))
        };
        let is_ready = links().next().is_some_and(|(_, first)| {
            let mapping = first.mapping();
            self.spin.wait(mapping.outgoing, mapping.incoming, &|| {
                links().any(|(member, slot)| {
                    let incoming = slot.mapping().incoming;
                    member.input() != 0
                        && incoming.has_updates()
                        && member.is_reportable(incoming.mark())
                })
            })
        });
        links().for_each(|(_, slot)| slot.leave());
        is_ready
    }

    /// Before the thread sleeps: arms the doorbells. Whether there is something to do at once.
    pub fn begin_sleep(&self, sleepers: &mut SleepingMembers) -> bool {
        let mut is_any = false;
        for (member, sleeper) in self.used().iter().zip(sleepers) {
            if member.input() == 0 {
                continue;
            }
            let Some(slot) = member.enter() else { continue };
            if !self.waiter_arms(slot) {
                slot.leave();
                continue;
            }
            let has_bytes = eventfds::begin_sleep(slot);
            is_any |= has_bytes && member.is_reportable(slot.mapping().incoming.mark());
            if downgrade::is_due(slot) {
                downgrade::serve(slot);
            }
            *sleeper = SleepingMember(Some(slot));
        }
        is_any
    }

    pub fn end_sleep(&self, sleepers: &mut SleepingMembers) {
        for sleeper in sleepers {
            if let Some(slot) = sleeper.0.take() {
                eventfds::end_sleep(slot);
                slot.leave();
            }
        }
    }
}
