// SPDX-License-Identifier: Apache-2.0
//! epoll_wait: of the links in a set the calling thread reports by itself, of all else the kernel.

use crate::members;
use crate::spin::{ticks, ticks_per_microsecond};
use crate::{downgrade, service, sets, slots, state};
use core::ffi::c_int;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use libc::epoll_event;
use tare_interpose::real;

/// Serves links whose other end waits, if that was not done for some milliseconds.
pub fn serve_all() {
    const OFTEN: u64 = 5000;
    static SERVED: AtomicU64 = AtomicU64::new(0);
    let (now, served) = (ticks(), SERVED.load(Relaxed));
    if now.wrapping_sub(served) > OFTEN * ticks_per_microsecond()
        && SERVED.compare_exchange(served, now, Relaxed, Relaxed).is_ok()
    {
        slots::each(downgrade::serve);
    }
}

/// As epoll_wait. `call` is the kernel's, into this number of events, without waiting on request.
pub fn wait(
    set: c_int,
    events: *mut epoll_event,
    most: c_int,
    returns: bool,
    call: impl Fn(*mut epoll_event, c_int, bool) -> c_int,
) -> c_int {
    if most <= 0 || !slots::any() || state::is_off() {
        return call(events, most, returns);
    }
    service::ensure();
    serve_all();
    let all = sets::number(set).map(members::of);
    let Some(members) = all.filter(|all| all.are_for(state::thread_number())) else {
        let count = call(events, most, returns);
        serve_all();
        if count > 0 {
            all.inspect(|all| all.renew_edges());
        }
        // SAFETY: the kernel has just written this number of entries.
        return if count > 0 { unsafe { sets::merge(events, count) } } else { count };
    };
    let call = |events, most, returns| members.ask(|| call(events, most, returns));
    let mut sleepers = members::NOBODY;
    for round in 0.. {
        // What the program's address is worth, the kernel judges.
        let Ok((found, has_more)) = members.collect(events, most) else {
            return call(events, most, returns);
        };
        if found > 0 && (found == most || !has_more && members.skip_kernel()) {
            return found;
        }
        if found > 0 || has_more {
            members.clear_bells();
            let errno = real::errno();
            let rest = events.wrapping_add(found as usize);
            let more = call(rest, most - found, true);
            members.looked();
            members.renew_edges();
            if found + more.max(0) > 0 {
                real::set_errno(errno);
                // SAFETY: this number of entries was written.
                return unsafe { sets::merge(events, found + more.max(0)) };
            }
            if more < 0 {
                return more;
            }
        }
        if !returns && round == 0 && members.spin() {
            continue;
        }
        let is_ready = members.fall_asleep(&mut sleepers);
        if is_ready && round < 3 {
            members.wake_up(&mut sleepers);
            continue;
        }
        let count = call(events, most, returns || is_ready);
        members.wake_up(&mut sleepers);
        members.looked();
        members.renew_edges();
        serve_all();
        // SAFETY: the kernel has just written this number of entries.
        return if count > 0 { unsafe { sets::merge(events, count) } } else { count };
    }
    0
}
