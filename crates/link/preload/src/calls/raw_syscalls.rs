// SPDX-License-Identifier: Apache-2.0
//! System calls that the program makes by `syscall`: those on sockets are treated as libc's.

use crate::calls::{Calls, mapping_calls, privileges};
use crate::lifecycle::{closing, delivery};
#[cfg(target_arch = "x86_64")]
use crate::links::children;
use crate::state;
use core::ffi::{c_int, c_long, c_void};
use core::ptr;
use tare_interpose::naked::SystemCall as Function;
use tare_interpose::{Interposer, Router, real};

pub struct Routed;

macro_rules! routes {
    ($($number:ident => $name:ident($($argument:literal),*);)*) => {
        fn find(number: c_long) -> Option<Function> {
            match number {
                $(libc::$number => {
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

routes! {
    SYS_read => read(0, 1, 2);
    SYS_write => write(0, 1, 2);
    SYS_readv => readv(0, 1, 2);
    SYS_writev => writev(0, 1, 2);
    SYS_recvfrom => recvfrom(0, 1, 2, 3, 4, 5);
    SYS_sendto => sendto(0, 1, 2, 3, 4, 5);
    SYS_recvmsg => recvmsg(0, 1, 2);
    SYS_sendmsg => sendmsg(0, 1, 2);
    SYS_sendfile => sendfile(0, 1, 2, 3);
    SYS_splice => splice(0, 1, 2, 3, 4, 5);
    SYS_close => close(0);
    SYS_close_range => close_range(0, 1, 2);
    SYS_dup => dup(0);
    SYS_dup3 => dup3(0, 1, 2);
    SYS_fcntl => fcntl(0, 1, 2);
    SYS_ioctl => ioctl(0, 1, 2);
    SYS_socket => socket(0, 1, 2);
    SYS_connect => connect(0, 1, 2);
    SYS_accept => accept(0, 1, 2);
    SYS_accept4 => accept4(0, 1, 2, 3);
    SYS_shutdown => shutdown(0, 1);
    SYS_epoll_create1 => epoll_create1(0);
    SYS_epoll_ctl => epoll_ctl(0, 1, 2, 3);
}

/// Calls whose last argument is a set of signals and its size: libc's functions know the size.
///
/// # Safety
/// As the system call.
unsafe extern "C" fn epoll_pwait(
    _: c_long,
    set: usize,
    events: usize,
    most: usize,
    timeout: usize,
    mask: usize,
    _: usize,
) -> c_long {
    // SAFETY: the program's own arguments.
    unsafe {
        let mask = ptr::with_exposed_provenance(mask);
        let events = ptr::with_exposed_provenance_mut(events);
        Calls::epoll_pwait(set as c_int, events, most as c_int, timeout as c_int, mask).into()
    }
}

/// # Safety
/// As the system call.
unsafe extern "C" fn ppoll(
    _: c_long,
    places: usize,
    count: usize,
    timeout: usize,
    mask: usize,
    _: usize,
    _: usize,
) -> c_long {
    // SAFETY: the program's own arguments.
    unsafe {
        let timeout = ptr::with_exposed_provenance(timeout);
        let mask = ptr::with_exposed_provenance(mask);
        Calls::ppoll(ptr::with_exposed_provenance_mut(places), count as _, timeout, mask).into()
    }
}

/// io_uring moves bytes without a call that could be seen.
extern "C" fn refuse(
    _: c_long,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
) -> c_long {
    real::set_errno(libc::ENOSYS);
    -1
}

impl Router for Routed {
    fn route(number: c_long) -> *const c_void {
        if state::statistics().is_none() {
            return ptr::null();
        }
        mapping_calls::observe(number);
        privileges::observe(number);
        #[cfg(target_arch = "x86_64")]
        match number {
            libc::SYS_fork | libc::SYS_clone => children::unwatched(),
            libc::SYS_poll => return Calls::poll_call(),
            libc::SYS_epoll_wait => return Calls::epoll_wait_call(),
            libc::SYS_dup2 => return Calls::dup2_call(),
            _ => {}
        }
        let function: Option<Function> = match number {
            libc::SYS_epoll_pwait => Some(epoll_pwait),
            libc::SYS_ppoll => Some(ppoll),
            libc::SYS_io_uring_setup => Some(refuse),
            libc::SYS_prctl | libc::SYS_seccomp => Some(privileges::restricting),
            libc::SYS_exit_group => {
                delivery::end();
                None
            }
            libc::SYS_execve | libc::SYS_execveat => {
                closing::leave_all(|_| true);
                None
            }
            _ => find(number),
        };
        function.map_or(ptr::null(), |function| function as *const c_void)
    }
}

#[cfg(target_arch = "x86_64")]
mod older {
    use super::*;

    macro_rules! older {
        ($($route:ident => $name:ident($($argument:literal),*);)*) => {
            $(
                /// # Safety
                /// As the system call.
                unsafe extern "C" fn $name(
                    _: c_long, a: usize, b: usize, c: usize, d: usize, _: usize, _: usize,
                ) -> c_long {
                    let arguments = [a, b, c, d];
                    // SAFETY: the program's own arguments.
                    unsafe { Calls::$name($(arguments[$argument] as _),*).into() }
                }
            )*

            impl Calls {
                $(pub fn $route() -> *const c_void {
                    let function: Function = $name;
                    function as *const c_void
                })*
            }
        };
    }

    older! {
        poll_call => poll(0, 1, 2);
        epoll_wait_call => epoll_wait(0, 1, 2, 3);
        dup2_call => dup2(0, 1);
    }
}
