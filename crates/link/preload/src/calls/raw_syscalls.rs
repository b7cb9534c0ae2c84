// SPDX-License-Identifier: Apache-2.0
//! System calls that the program makes by `syscall`: those on sockets are treated as libc's.

use crate::calls::deadline::Deadline;
use crate::calls::dispatch::leave;
use crate::calls::{Calls, epoll_wait, io_uring, mapping_calls, privileges};
use crate::lifecycle::{closing, delivery};
use crate::links::fork_handlers;
use crate::state;
use crate::stream::buffers::{read_value, write_value};
use core::ffi::{c_int, c_long, c_void};
use core::ptr;
use libc::{epoll_event, timespec};
use tare_interpose::naked::{self, SystemCall as Function};
use tare_interpose::{Interposer, Router, real};
use tare_link_segment::Reason;

pub struct Routed;

macro_rules! routes {
    ($($(#[$attribute:meta])* $number:ident => $name:ident($($argument:literal),*);)*) => {
        fn find(number: c_long) -> Option<Function> {
            match number {
                $($(#[$attribute])* libc::$number => {
                    /// # Safety
                    /// As the system call.
                    unsafe extern "C" fn call(
                        _: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize,
                    ) -> c_long {
                        let arguments = [a, b, c, d, e, f];
                        // SAFETY: the program's own arguments, of which the kernel's call and
                        // libc's function have the same.
                        unsafe { Calls::$name($(arguments[$argument] as _),*) as c_long }
                    }
                    Some(call)
                })*
                _ => None,
            }
        }
    };
}

// Of a set of signals, the kernel's calls have the size, too, which libc's functions know.
routes! {
    SYS_read => read(0, 1, 2);
    SYS_write => write(0, 1, 2);
    SYS_readv => readv(0, 1, 2);
    SYS_writev => writev(0, 1, 2);
    SYS_preadv2 => preadv2(0, 1, 2, 3, 5);
    SYS_pwritev2 => pwritev2(0, 1, 2, 3, 5);
    SYS_recvfrom => recvfrom(0, 1, 2, 3, 4, 5);
    SYS_sendto => sendto(0, 1, 2, 3, 4, 5);
    SYS_recvmsg => recvmsg(0, 1, 2);
    SYS_sendmsg => sendmsg(0, 1, 2);
    SYS_recvmmsg => recvmmsg(0, 1, 2, 3, 4);
    SYS_sendmmsg => sendmmsg(0, 1, 2, 3);
    SYS_sendfile => sendfile(0, 1, 2, 3);
    SYS_splice => splice(0, 1, 2, 3, 4, 5);
    SYS_close => close(0);
    SYS_close_range => close_range(0, 1, 2);
    SYS_dup => dup(0);
    #[cfg(target_arch = "x86_64")]
    SYS_dup2 => dup2(0, 1);
    SYS_dup3 => dup3(0, 1, 2);
    SYS_fcntl => fcntl(0, 1, 2);
    SYS_ioctl => ioctl(0, 1, 2);
    SYS_socket => socket(0, 1, 2);
    SYS_socketpair => socketpair(0, 1, 2, 3);
    SYS_connect => connect(0, 1, 2);
    SYS_accept => accept(0, 1, 2);
    SYS_accept4 => accept4(0, 1, 2, 3);
    SYS_shutdown => shutdown(0, 1);
    SYS_getsockopt => getsockopt(0, 1, 2, 3, 4);
    SYS_setsockopt => setsockopt(0, 1, 2, 3, 4);
    #[cfg(target_arch = "x86_64")]
    SYS_poll => poll(0, 1, 2);
    SYS_ppoll => ppoll(0, 1, 2, 3);
    #[cfg(target_arch = "x86_64")]
    SYS_select => select(0, 1, 2, 3, 4);
    #[cfg(target_arch = "x86_64")]
    SYS_epoll_create => epoll_create(0);
    SYS_epoll_create1 => epoll_create1(0);
    SYS_epoll_ctl => epoll_ctl(0, 1, 2, 3);
    #[cfg(target_arch = "x86_64")]
    SYS_epoll_wait => epoll_wait(0, 1, 2, 3);
    SYS_epoll_pwait => epoll_pwait(0, 1, 2, 3, 4);
}

/// Makes a call that waits; unlike libc's function, the kernel's writes the rest of the time.
///
/// # Safety
/// `timeout` is null, or the program's own time.
unsafe fn with_rest(timeout: *mut timespec, wait: impl FnOnce() -> c_int) -> c_long {
    let end = read_value(timeout.cast_const())
        .filter(|time: &timespec| time.tv_sec != 0 || time.tv_nsec != 0)
        .and_then(|time| Deadline::after(&raw const time));
    let result = wait();
    if let Some(rest) = end.and_then(Deadline::left) {
        let errno = real::errno();
        write_value(timeout, rest);
        real::set_errno(errno);
    }
    result.into()
}

/// Its last argument has the place of the set of signals, and its size.
///
/// # Safety
/// As the system call.
unsafe extern "C" fn pselect(
    _: c_long,
    count: usize,
    read: usize,
    write: usize,
    other: usize,
    timeout: usize,
    mask: usize,
) -> c_long {
    let [read, write, other] = [read, write, other].map(ptr::with_exposed_provenance_mut);
    let timeout = ptr::with_exposed_provenance_mut(timeout);
    let mask: *const usize = ptr::with_exposed_provenance(mask);
    let mask = if mask.is_null() {
        ptr::null()
    } else {
        let Some(place) = read_value(mask) else {
            real::set_errno(libc::EFAULT);
            return -1;
        };
        ptr::with_exposed_provenance(place)
    };
    let wait = || {
        // SAFETY: the program's own arguments.
        unsafe { Calls::pselect(count as c_int, read, write, other, timeout, mask) }
    };
    // SAFETY: as above.
    unsafe { with_rest(timeout, wait) }
}

/// libc has this function since version 2.35 only.
///
/// # Safety
/// As the system call.
unsafe extern "C" fn epoll_pwait2(
    number: c_long,
    set: usize,
    events: usize,
    most: usize,
    timeout: usize,
    mask: usize,
    size: usize,
) -> c_long {
    let wait = |events: *mut epoll_event, most: c_int, timeout: *const timespec| {
        let (events, timeout) = (events.expose_provenance(), timeout.expose_provenance());
        let arguments = [set, events, most as usize, timeout, mask, size];
        // SAFETY: the program's own call.
        unsafe { naked::next_system_call(number, arguments) as c_int }
    };
    let timeout = ptr::with_exposed_provenance(timeout);
    let events = ptr::with_exposed_provenance_mut(events);
    if mask != 0 && size != size_of::<u64>() {
        return wait(events, most as c_int, timeout).into();
    }
    epoll_wait::until(set as c_int, events, most as c_int, timeout, &wait).into()
}

/// Connections that the kernel reads and writes for the program (aio(7)) are TCP's.
fn leave_submitted(count: usize, blocks: usize) {
    /// Where a block has its descriptor (`struct iocb`).
    const DESCRIPTOR: usize = 20;
    const MOST: usize = 1 << 16;
    let blocks: *const usize = ptr::with_exposed_provenance(blocks);
    for place in 0..count.min(MOST) {
        let Some(block) = read_value(blocks.wrapping_add(place)) else { return };
        let fd = ptr::with_exposed_provenance::<c_int>(block.wrapping_add(DESCRIPTOR));
        read_value(fd).into_iter().for_each(|fd| leave(fd, Reason::Kernel));
    }
}

/// # Safety
/// As the system call.
unsafe extern "C" fn io_submit(
    number: c_long,
    context: usize,
    count: usize,
    blocks: usize,
    _: usize,
    _: usize,
    _: usize,
) -> c_long {
    leave_submitted(count, blocks);
    // SAFETY: the program's own call.
    unsafe { naked::next_system_call(number, [context, count, blocks, 0, 0, 0]) }
}

impl Router for Routed {
    fn route(number: c_long) -> *const c_void {
        if state::statistics().is_none() {
            return ptr::null();
        }
        mapping_calls::observe(number);
        privileges::observe(number);
        #[cfg(target_arch = "x86_64")]
        if number == libc::SYS_fork {
            fork_handlers::untracked_fork();
        }
        if matches!(number, libc::SYS_clone | libc::SYS_clone3) {
            fork_handlers::untracked_fork();
        }
        let function: Option<Function> = match number {
            libc::SYS_pselect6 => Some(pselect),
            libc::SYS_epoll_pwait2 => Some(epoll_pwait2),
            libc::SYS_io_submit => Some(io_submit),
            libc::SYS_io_uring_setup => Some(io_uring::refuse),
            libc::SYS_prctl | libc::SYS_seccomp => Some(privileges::restricting),
            libc::SYS_exit_group => {
                delivery::end();
                None
            }
            libc::SYS_execve | libc::SYS_execveat => {
                closing::leave_all(Reason::Exec, |_| true);
                None
            }
            _ => find(number),
        };
        function.map_or(ptr::null(), |function| function as *const c_void)
    }
}
