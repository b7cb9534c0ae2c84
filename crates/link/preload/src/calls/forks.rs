// SPDX-License-Identifier: Apache-2.0
//! Forks of the program: the links that parent and child share are known to both.

use crate::descriptors::reserved_descriptors;
use crate::epoll::epoll_members;
use crate::lifecycle::closing;
use crate::links::fork_handlers;
use crate::state::connection::Connection;
use crate::state::{self, DESCRIPTORS};
use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;
use tare_interpose::real;

/// Calls the functions below around each fork of libc's. False if libc is not glibc: musl does not
/// load a library that needs this function.
pub fn watch() -> bool {
    type Handler = unsafe extern "C" fn();
    type Register = unsafe extern "C" fn(Handler, Handler, Handler, *mut c_void) -> c_int;
    let register = real::next(c"__register_atfork");
    if register.is_null() {
        return false;
    }
    // SAFETY: glibc's function, of this type. The three can be called at any time.
    unsafe {
        let register = core::mem::transmute::<*mut c_void, Register>(register);
        register(before, in_parent, in_child, core::ptr::null_mut()) == 0
    }
}

static NEXT_FORK: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

pub fn resolve() {
    NEXT_FORK.store(real::next(c"_Fork"), Relaxed);
}

/// A fork that calls no functions of `watch`.
///
/// # Safety
/// As libc's.
#[allow(non_snake_case, reason = "the name is libc's")]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn _Fork() -> c_int {
    let fork = || {
        let next = NEXT_FORK.load(Relaxed);
        // SAFETY: the program's own call, of libc's function of this type or of the kernel.
        unsafe {
            if next.is_null() {
                let arguments = [libc::SIGCHLD as usize, 0, 0, 0, 0, 0];
                return real::system_call(libc::SYS_clone, arguments) as c_int;
            }
            let next: unsafe extern "C" fn() -> c_int = core::mem::transmute(next);
            next()
        }
    };
    if state::is_child() {
        return fork();
    }
    let errno = real::errno();
    closing::forking();
    before();
    real::set_errno(errno);
    let child = fork();
    if child == 0 {
        in_child()
    } else {
        in_parent()
    }
    child
}

extern "C" fn before() {
    fork_handlers::before_fork();
}

extern "C" fn in_parent() {
    fork_handlers::in_parent();
}

extern "C" fn in_child() {
    // What other threads of the parent were about to do, none does here.
    reserved_descriptors::forked();
    epoll_members::forked();
    DESCRIPTORS.find(|_, entry| {
        DESCRIPTORS.connection(entry).into_iter().for_each(Connection::forked);
        false
    });
    fork_handlers::in_child();
}
