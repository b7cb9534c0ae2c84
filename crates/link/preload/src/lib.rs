// SPDX-License-Identifier: Apache-2.0
//! libtare_link.so: carries TCP connections between programs of one host over shared memory
//! (docs/internals/link.md).
#![cfg_attr(not(test), no_std)]
#![cfg_attr(test, allow(dead_code, unused_imports, reason = "tests export nothing"))]

mod attach;
mod calls;
mod descriptors;
mod epoll;
mod kernel;
mod lifecycle;
mod links;
mod state;
mod stream;

#[cfg(not(test))]
use calls::{
    Calls, exit, forks, formatted::Formatted, mapping_calls, privileges, programs::Programs,
    raw_syscalls::Routed,
};

#[cfg(not(test))]
tare_interpose::export! { Calls: bytes connections descriptors streams waiting options vfork }

/// What starts other programs, formatted output, and `syscall`.
#[cfg(not(test))]
mod others {
    use super::{Formatted, Programs, Routed};
    tare_interpose::export_group! { formatted Formatted }
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
    lifecycle::delivery::end();
}

#[cfg(not(test))]
extern "C" fn constructor() {
    resolve();
    tare_interpose::real::programs::resolve();
    tare_interpose::real::formatted::resolve();
    tare_interpose::real::routed::resolve();
    mapping_calls::resolve();
    privileges::resolve();
    exit::resolve();
    forks::resolve();
    attach::attach();
}
