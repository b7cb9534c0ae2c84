// SPDX-License-Identifier: Apache-2.0
//! select, as poll of the same descriptors.

use crate::calls::deadline::Deadline;
use crate::calls::polls::{self, MOST, keep_for_good};
use crate::descriptors::{open_descriptors, reserved_descriptors};
use crate::state;
use crate::state::connection::Stage;
use core::ffi::{c_int, c_ulong};
use core::mem::MaybeUninit;
use libc::{fd_set, nfds_t, pollfd, sigset_t};
use tare_interpose::real;

/// The number of descriptors that a call is about. Of sets that are longer than a `fd_set`, the kernel
/// reads and writes as much as its table of descriptors is long, which the library has made longer
/// by its own: this is how much it would be without them.
pub fn limit(count: c_int) -> c_int {
    const PART: usize = 128;
    if count <= libc::FD_SETSIZE as c_int || !reserved_descriptors::were_any() {
        return count;
    }
    let table = open_descriptors::highest().map_or(0, |fd| fd / PART + 1).next_power_of_two();
    let table = c_int::try_from(table.saturating_mul(PART)).unwrap_or(c_int::MAX);
    count.min(table.max(libc::FD_SETSIZE as c_int))
}

fn word(set: *mut fd_set, fd: c_int) -> *mut c_ulong {
    set.cast::<c_ulong>().wrapping_add(fd as usize / c_ulong::BITS as usize)
}

fn bit(fd: c_int) -> c_ulong {
    1 << (fd as u32 % c_ulong::BITS)
}

/// As select and pselect; `None` if nothing of it concerns the library.
///
/// # Safety
/// The sets are the program's, null or long enough for `count` descriptors.
pub unsafe fn select(
    count: c_int,
    sets: [*mut fd_set; 3],
    deadline: &mut dyn FnMut() -> Option<Deadline>,
    mask: *const sigset_t,
) -> Option<c_int> {
    const EVENTS: [i16; 3] = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];
    // As the kernel has it (fs/select.c).
    const READY: [i16; 3] = [
        libc::POLLRDNORM | libc::POLLRDBAND | libc::POLLIN | libc::POLLHUP | libc::POLLERR,
        libc::POLLWRBAND | libc::POLLWRNORM | libc::POLLOUT | libc::POLLERR,
        libc::POLLPRI,
    ];
    state::statistics()?;
    let is_in = |set: *mut fd_set, fd: c_int| {
        // SAFETY: as the caller promises.
        !set.is_null() && unsafe { *word(set, fd) } & bit(fd) != 0
    };
    let mut places = [const { MaybeUninit::<pollfd>::uninit() }; MOST];
    let (mut length, mut concerns, mut is_full) = (0, false, false);
    for fd in 0..count {
        let events = (0..3).filter(|kind| is_in(sets[*kind], fd)).map(|kind| EVENTS[kind]);
        let events = events.fold(0, |all, event| all | event);
        if events == 0 {
            continue;
        }
        let tracked = state::tracked(fd);
        concerns |= tracked.is_some_and(|(connection, _)| connection.stage() != Stage::Never);
        match places.get_mut(length) {
            Some(place) => {
                place.write(pollfd { fd, events, revents: 0 });
                length += 1;
            }
            None => is_full = true,
        }
    }
    if !concerns {
        return None;
    }
    if is_full {
        (0..count).filter(|fd| sets.iter().any(|set| is_in(*set, *fd))).for_each(keep_for_good);
        return None;
    }
    // SAFETY: the first `length` were written.
    let places = unsafe { places[..length].assume_init_mut() };
    let result = polls::poll(places.as_mut_ptr(), length as nfds_t, deadline, mask)?;
    if result < 0 {
        return Some(result);
    }
    if places.iter().any(|place| place.revents & libc::POLLNVAL != 0) {
        real::set_errno(libc::EBADF);
        return Some(-1);
    }
    let mut ready = 0;
    for place in places {
        for kind in 0..3 {
            if !is_in(sets[kind], place.fd) {
                continue;
            }
            if place.revents & READY[kind] != 0 {
                ready += 1;
            } else {
                // SAFETY: as the caller promises.
                unsafe { *word(sets[kind], place.fd) &= !bit(place.fd) };
            }
        }
    }
    Some(ready)
}
