// SPDX-License-Identifier: Apache-2.0
//! Functions that change what the program may do, or where it is: a thread that the program does not
//! know of would keep what it had, and the kernel refuses some of them to programs with several
//! threads. So the service thread ends before them, and starts again after them.

use crate::calls::forwarded::forwarded;
use crate::lifecycle::{closing, service_thread};
use crate::state;
use core::ffi::{c_int, c_long, c_void};
use tare_interpose::{Restriction, naked, real};
use tare_link_segment::Reason;
use tare_shm::syscall;
#[cfg(not(test))]
use {crate::calls::dispatch::next, core::ffi::c_ulong};

/// Of landlock(7), which libc does not have on every architecture.
const LANDLOCK_RESTRICT_SELF: c_long = 446;

fn before() {
    let errno = real::errno();
    service_thread::end();
    real::set_errno(errno);
}

fn after() {
    let errno = real::errno();
    service_thread::begin_again();
    real::set_errno(errno);
}

forwarded! {
    fn setuid(user: u32) -> c_int = SYS_setuid, before, after;
    fn setgid(group: u32) -> c_int = SYS_setgid, before, after;
    fn seteuid(user: u32) -> c_int = SYS_setuid, before, after;
    fn setegid(group: u32) -> c_int = SYS_setgid, before, after;
    fn setreuid(real: u32, effective: u32) -> c_int = SYS_setreuid, before, after;
    fn setregid(real: u32, effective: u32) -> c_int = SYS_setregid, before, after;
    fn setresuid(real: u32, effective: u32, saved: u32) -> c_int = SYS_setresuid, before, after;
    fn setresgid(real: u32, effective: u32, saved: u32) -> c_int = SYS_setresgid, before, after;
    fn setfsuid(user: u32) -> c_int = SYS_setfsuid, before, after;
    fn setfsgid(group: u32) -> c_int = SYS_setfsgid, before, after;
    fn setgroups(count: usize, groups: *const u32) -> c_int = SYS_setgroups, before, after;
    fn initgroups(user: *const c_void, group: u32) -> c_int = SYS_setgroups, before, after;
    fn capset(header: *mut c_void, data: *const c_void) -> c_int = SYS_capset, before, after;
    fn unshare(flags: c_int) -> c_int = SYS_unshare, before, after;
    fn setns(fd: c_int, kind: c_int) -> c_int = SYS_setns, before, after;
}

/// The same calls, made by `syscall`. The thread starts again at the next call on a link.
pub fn observe(number: c_long) {
    match number {
        libc::SYS_setuid
        | libc::SYS_setgid
        | libc::SYS_setreuid
        | libc::SYS_setregid
        | libc::SYS_setresuid
        | libc::SYS_setresgid
        | libc::SYS_setfsuid
        | libc::SYS_setfsgid
        | libc::SYS_setgroups
        | libc::SYS_capset
        | libc::SYS_unshare
        | libc::SYS_setns
        | LANDLOCK_RESTRICT_SELF => before(),
        _ => {}
    }
}

/// Makes a call that the thread must not see.
pub fn around(call: impl FnOnce() -> c_int) -> c_int {
    before();
    let result = call();
    after();
    result
}

/// Makes a `prctl`, around which the thread ends if it concerns rights.
fn control(option: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let concerns = matches!(
        option,
        libc::PR_CAPBSET_DROP
            | libc::PR_CAP_AMBIENT
            | libc::PR_SET_NO_NEW_PRIVS
            | libc::PR_SET_SECUREBITS
    );
    if concerns { around(call) } else { call() }
}

/// Comes before a call that may restrict the program: nothing that the program takes away from itself
/// is used any more. A child of vfork restricts itself, not the parent whose memory it uses.
#[cold]
#[inline(never)]
fn restrict(number: c_long, first: usize, second: usize, third: usize) {
    use Restriction::{All, SystemCalls, TickCounter};
    if state::is_child() {
        return;
    }
    if let Some(All | SystemCalls | TickCounter) = Restriction::of(number, first, second, third) {
        state::stop();
        closing::leave_all(Reason::Restricted, |_| true);
        service_thread::end();
        syscall::forbid();
    }
}

/// `prctl` and `seccomp`, made by `syscall`.
///
/// # Safety
/// As these.
pub unsafe extern "C" fn restricting(
    number: c_long,
    first: usize,
    second: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
    sixth: usize,
) -> c_long {
    let arguments = [first, second, third, fourth, fifth, sixth];
    restrict(number, first, second, third);
    // SAFETY: the program's own call.
    let call = || unsafe { naked::next_system_call(number, arguments) as c_int };
    if number == libc::SYS_prctl { control(first as c_int, call).into() } else { call().into() }
}

/// Looks at `prctl`: a program that forbids itself system calls.
///
/// # Safety
/// As libc's.
#[cfg(not(test))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(
    option: c_int,
    second: c_ulong,
    third: c_ulong,
    fourth: c_ulong,
    fifth: c_ulong,
) -> c_int {
    restrict(libc::SYS_prctl, option as usize, second as usize, third as usize);
    control(option, || next!(prctl(option, second, third, fourth, fifth)))
}
