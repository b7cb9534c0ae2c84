// SPDX-License-Identifier: Apache-2.0
use crate::calls::block::{fail, reset};
use crate::connection::Flow;
use crate::record::hook::{DESCRIPTORS, Hook};
use crate::record::own_time::OwnTime;
use crate::search::{Outcome, Search};
use crate::thread::Thread;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use tare_hook_segment::{Direction, Symbol, Unseen};
use tare_interpose::Kind;
use tare_shm::syscall::are_forbidden;

/// A call that may move bytes through a socket: `ahead` sees it before it is made and may
/// withhold it, `after` sees its result where that is positive and may turn it into a reset.
/// On anything but a socket it is counted and made, no more.
///
/// Own time is from here to the end without `call`, as [`OwnTime`] has it; it leaves out the look at
/// the descriptor, which calls on files make too.
#[inline(always)]
pub fn moving<R: Copy + PartialOrd + From<i8>>(
    symbol: Symbol,
    direction: Direction,
    fd: c_int,
    ahead: impl FnOnce(&Search<'_>) -> Outcome,
    call: impl FnOnce() -> R,
    after: impl FnOnce(&Search<'_>, R) -> Outcome,
) -> R {
    let Some(hook) = Hook::get() else { return call() };
    let entry = DESCRIPTORS.look_up(fd);
    let kind = entry.kind();
    let statistics = hook.statistics();
    let counters = &statistics.counters[symbol as usize];
    if !kind.is_socket() {
        counters.calls_other.fetch_add(1, Relaxed);
        if kind == Kind::Unknown && are_forbidden() {
            hook.count_unseen(Unseen::Filtered);
        }
        return call();
    }
    let block = Thread::get();
    if block.is_borrowed() {
        return call();
    }

    let is_searched = hook.rules().is_some_and(|view| view.rules.wanted(direction) != 0);
    let own_time = OwnTime::begin(block, symbol, direction, is_searched);
    let connection = DESCRIPTORS.connection(entry);
    if connection.is_none() && kind.is_stream() {
        hook.count_unseen(Unseen::Untracked);
    }
    let nothing_before = Flow::default();
    let flow = connection.map_or(&nothing_before, |connection| connection.flow(direction));
    let search = Search { hook, counters, symbol, fd, kind, direction, flow };
    let is_blocked = connection.is_some_and(|connection| connection.is_blocked());
    if is_blocked || ahead(&search) == Outcome::Block {
        if !is_blocked {
            reset(fd, kind, connection);
        }
        hook.spent(statistics, symbol, own_time.before_call());
        return fail();
    }

    let before = own_time.before_call();
    let result = call();
    let resumed = own_time.resume();
    let outcome = if result > R::from(0) { after(&search, result) } else { Outcome::Pass };
    if outcome == Outcome::Block {
        reset(fd, kind, connection);
    }
    hook.spent(statistics, symbol, own_time.end(before, resumed));
    if outcome == Outcome::Block { fail() } else { result }
}
