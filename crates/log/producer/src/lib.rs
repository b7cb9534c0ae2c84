// SPDX-License-Identifier: Apache-2.0
//! The side of the program that logs: makes its segment, hands it to a collector, gives rings
//! to threads, opens channels, and writes what the fast path leaves over.
//!
//! It allocates nothing, and makes its system calls itself, so that it can be called from
//! anywhere, a signal handler included.
#![no_std]

mod channels;
mod events;
mod program;
mod restrictions;
mod segment;
mod status;

pub use channels::{close, open};
pub use events::event::{Author, Payload};
pub use events::log::{log, log_as};
pub use restrictions::{forbid_system_calls, replace_counter};
pub use segment::attach::finish;
pub use segment::carrier_thread::Carrier;
pub use segment::environment::read_environment;
pub use segment::shrink::{limit_address_space, lock_memory};
pub use status::{Status, status};
