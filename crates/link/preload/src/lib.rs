// SPDX-License-Identifier: Apache-2.0
//! libtare_link.so: carries TCP connections between programs of one host over shared memory
//! (docs/internals/link.md).
#![cfg_attr(not(test), no_std)]
#![cfg_attr(test, allow(dead_code, unused_imports, reason = "tests export nothing"))]

mod above;
mod attach;
mod bells;
mod budget;
mod buffers;
mod calls;
mod closing;
mod connection;
mod copying;
mod debug;
mod downgrade;
mod exit;
mod forward;
mod forwarded;
mod guard;
mod hidden;
mod kernel;
mod lock;
mod mapped;
mod member;
mod members;
mod memory;
mod messages;
mod name;
mod opened;
mod options;
mod outgoing;
mod parts;
mod peeks;
mod polls;
mod programs;
mod receive;
mod rendezvous;
mod rights;
mod routed;
mod selects;
mod send;
mod service;
mod sets;
mod sharing;
mod slot;
mod slots;
mod spin;
mod state;
mod thread;
mod uring;
mod waiters;
mod waits;

#[cfg(not(test))]
use {calls::Calls, programs::Programs, routed::Routed};

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
    mapped::resolve();
    rights::resolve();
    exit::resolve();
    sharing::resolve();
    attach::attach();
}
