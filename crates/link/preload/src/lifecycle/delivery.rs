// SPDX-License-Identifier: Apache-2.0
//! The end of the program: bytes that other ends have not read go to TCP. What TCP does not take at
//! once, a process of the library's own delivers, as the kernel would: the program ends without
//! waiting for it.

use crate::lifecycle::{closing, service_thread};
use crate::links::slots::{self, Slot};
use crate::state::lock;
use crate::stream::downgrade;
use crate::{kernel, state};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use libc::pollfd;
use tare_interpose::real;
use tare_link_segment::Counter;
use tare_shm::syscall::{self, call};

/// Connections whose bytes are delivered; the kernel resets further ones.
const MOST: usize = 64;
/// Milliseconds without a byte that the other end accepts, after which nothing more is sent: an other
/// end that is linked has the rest in its ring, any other is reset.
const TIMEOUT: i64 = 60_000;
/// The same if no process can be started: the program waits.
const SHORT_TIMEOUT: i64 = 1000;

/// What is to be delivered.
#[derive(Clone, Copy)]
struct Delivery {
    fd: c_int,
    slot: &'static Slot,
}

/// The program ends.
pub fn end() {
    if state::is_child() {
        return;
    }
    let errno = real::errno();
    closing::end_all();
    deliver(|_| true);
    real::set_errno(errno);
}

/// The program starts another one, with which the service thread ends: connections that it has
/// closed must be delivered.
pub fn end_closed() {
    if !state::is_child() && slots::any() {
        let errno = real::errno();
        deliver(|slot| slot.is_closed.load(Relaxed) != 0);
        real::set_errno(errno);
    }
}

fn deliver(is_meant: impl Fn(&Slot) -> bool) {
    let has_backlog = |slot: &Slot| {
        is_meant(slot)
            && !slot.is_shared()
            && slot.ends.load(Relaxed) != slots::DELIVERED
            && slot.mapping().outgoing.backlog().is_some()
    };
    let mut is_any = false;
    slots::each(|slot| is_any |= has_backlog(slot));
    if !is_any {
        return;
    }
    // A thread that ends with the program between a call and its count would have bytes sent twice.
    service_thread::end();
    let mut deliveries: [Option<Delivery>; MOST] = [None; MOST];
    let mut count = 0;
    slots::each(|slot| {
        if count < MOST
            && has_backlog(slot)
            && let Some(fd) = slot.any_descriptor()
            // Held for ever: this process does not send any more.
            && lock::take_soon(slot.mapping().outgoing.sender_lock()).is_some()
        {
            deliveries[count] = Some(Delivery { fd, slot });
            count += 1;
        }
    });
    let deliveries = &deliveries[..count];
    // A process that no program has to wait for.
    let clone = || {
        // SAFETY: the child has a copy of the memory and of this thread alone; it calls nothing that
        // another thread could have locked, and does not return.
        unsafe { call(libc::SYS_clone, [0; 6]) }
    };
    let is_started = syscall::with_signals_blocked(u64::MAX, || match clone() {
        Ok(0) => {
            if clone() == Ok(0) {
                close_others(deliveries);
                push_all(deliveries, TIMEOUT);
            }
            loop {
                // SAFETY: ends this process.
                let _ = unsafe { call(libc::SYS_exit_group, [0; 6]) };
            }
        }
        Ok(child) => {
            let arguments = [child, 0, libc::__WALL as usize, 0, 0, 0];
            // SAFETY: no memory is touched.
            unsafe { call(libc::SYS_wait4, arguments) }.is_ok()
        }
        Err(_) => false,
    });
    if is_started != Ok(true) {
        push_all(deliveries, SHORT_TIMEOUT);
    }
    // What other libraries still send at their end cannot go before it.
    for delivery in deliveries.iter().flatten() {
        delivery.slot.ends.store(slots::DELIVERED, Relaxed);
    }
    slots::each(|slot| {
        if slot.ends.load(Relaxed) == slots::DELIVERED && slot.is_closed.load(Relaxed) != 0 {
            slot.close();
        }
    });
}

/// Sends all bytes, and ends the streams behind them. Gives up if the other ends accept nothing for
/// this number of milliseconds.
fn push_all(deliveries: &[Option<Delivery>], timeout: i64) {
    let mut end = kernel::now() + timeout;
    loop {
        let mut places = [pollfd { fd: -1, events: libc::POLLOUT, revents: 0 }; MOST];
        let mut is_any = false;
        for (delivery, place) in deliveries.iter().flatten().zip(&mut places) {
            let outgoing = delivery.slot.mapping().outgoing;
            let before = outgoing.backlog();
            if before.is_none() {
                continue;
            }
            downgrade::push(delivery.fd, delivery.slot);
            let left = outgoing.backlog();
            if left.is_none() {
                kernel::shutdown(delivery.fd, libc::SHUT_WR);
                continue;
            }
            if left != before {
                end = kernel::now() + timeout;
            }
            place.fd = delivery.fd;
            is_any = true;
        }
        if !is_any {
            return;
        }
        if kernel::now() >= end {
            let is_reset = |delivery: &&Delivery| {
                let outgoing = delivery.slot.mapping().outgoing;
                outgoing.is_left() && outgoing.backlog().is_some()
            };
            let resets = deliveries.iter().flatten().filter(is_reset).count();
            state::count(Counter::Reset, resets as u64);
            return;
        }
        kernel::poll(&mut places, Some((end - kernel::now()).clamp(1, timeout)));
    }
}

/// Closes all descriptors except those of the deliveries, so that ports and pipes end with the program.
fn close_others(deliveries: &[Option<Delivery>]) {
    let mut first = 0;
    loop {
        let fds = deliveries.iter().flatten().map(|delivery| delivery.fd as usize);
        let next = fds.filter(|fd| *fd >= first).min();
        let last = next.map_or(Some(u32::MAX as usize), |next| next.checked_sub(1));
        if let Some(last) = last.filter(|last| *last >= first) {
            // SAFETY: no memory is touched; nothing of this process uses them.
            let _ = unsafe { call(libc::SYS_close_range, [first, last, 0, 0, 0, 0]) };
        }
        match next {
            Some(next) => first = next + 1,
            None => return,
        }
    }
}
