// SPDX-License-Identifier: Apache-2.0
//! What every preload library needs: the one table of libc symbols, the next definitions
//! behind them, what is known of every descriptor, a block of memory a thread, and an end for a
//! library that cannot go on.
//!
//! Nothing here is exported to a program: an exported `read` in an rlib would take over the
//! `read` of every test binary. A library calls [`export!`] where it is not a test, with the
//! groups of functions that it stands in front of.
#![no_std]

#[macro_use]
mod libc_functions;
pub mod background;
mod descriptors;
#[doc(hidden)]
pub mod formatted;
mod interposer;
#[doc(hidden)]
pub mod naked;
mod next_definition;
mod panic;
pub mod real;
mod restriction;
mod symbol;
mod thread;

pub use background::Background;
pub use descriptors::{Connection, Descriptors, Entry, Kind, socket_option};
pub use interposer::{Formatter, Interposer, Observer, Router, Starter};
#[doc(hidden)]
pub use panic::abort;
pub use restriction::Restriction;
pub use thread::{ThreadBlock, ThreadState, watch_forks};

/// The types of the table.
pub mod types {
    pub use core::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};
    pub use libc::{
        FILE, epoll_event, fd_set, iovec, mmsghdr, msghdr, nfds_t, off_t, off64_t, pollfd,
        sigset_t, size_t, sockaddr, socklen_t, ssize_t, timespec, timeval,
    };
}
