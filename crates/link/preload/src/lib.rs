// SPDX-License-Identifier: Apache-2.0
//! libtare_link.so: carries TCP connections between programs of one host over shared memory
//! (docs/internals/link.md).
#![cfg_attr(not(test), no_std)]
#![cfg_attr(test, allow(dead_code, unused_imports, reason = "tests export nothing"))]

mod accessible_memory;
mod attach;
mod buffers;
mod busy_wait;
mod calls;
mod closing;
mod connection;
mod connection_log;
mod copying;
mod downgrade;
mod endpoint_name;
mod epoll_member;
mod epoll_members;
mod epoll_sets;
mod epoll_wait;
mod eventfds;
mod exit;
mod forks;
mod forward;
mod forwarded;
mod high_descriptors;
mod io_uring_detection;
mod kernel;
mod linger_guard;
mod link_memory;
mod lock;
mod mapping_calls;
mod memory_limit;
mod messages;
mod open_descriptors;
mod options;
mod outgoing;
mod peek;
mod polls;
mod privileges;
mod programs;
mod raw_syscalls;
mod receive;
mod rendezvous;
mod reserved_descriptors;
mod selects;
mod send;
mod service_thread;
mod slot;
mod slots;
mod state;
mod thread;
mod waiters;

#[cfg(not(test))]
use {calls::Calls, programs::Programs, raw_syscalls::Routed};

#[cfg(not(test))]
tare_interpose::export! { Calls: bytes connections descriptors streams waiting options vfork }

/// What starts other programs, and `syscall`.
#[cfg(not(test))]
mod others {
    use super::{Programs, Routed};
    tare_interpose::export_group! { programs Programs }
    tare_interpose::export_group! { routed Routed }
}

#[cfg(not(test))]
tare_interpose::panic_handler!();

/// Runs when the library is loaded.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

/// Runs when the program calls `exit`.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;

#[cfg(not(test))]
extern "C" fn destructor() {
    exit::end();
}

#[cfg(not(test))]
extern "C" fn constructor() {
    resolve();
    tare_interpose::real::programs::resolve();
    tare_interpose::real::routed::resolve();
    mapping_calls::resolve();
    privileges::resolve();
    exit::resolve();
    forks::resolve();
    attach::attach();
}
