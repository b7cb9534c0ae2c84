// SPDX-License-Identifier: Apache-2.0
//! The side of the program that logs: makes its segment, hands it to a collector, gives rings
//! to threads, opens channels, and writes what the fast path leaves over.
//!
//! It allocates nothing, and makes its system calls itself, so that it can be called from
//! anywhere, a signal handler included.
#![no_std]

mod attach;
mod borrowed_descriptors;
mod carrier_thread;
mod channels;
mod clock;
mod event;
mod fox;
mod handlers;
mod handover;
mod median;
mod racy_init;
mod region;
mod restrictions;
mod ring_ownership;
mod settings;
mod shrink;
mod single_event_block;
mod status;
mod warnings;
mod write_through;

pub use attach::finish;
pub use carrier_thread::Carrier;
pub use channels::{close, open};
pub use event::{Author, Payload, log, log_as};
pub use restrictions::{forbid_system_calls, replace_counter};
pub use settings::read_environment;
pub use shrink::{limit_address_space, lock_memory};
pub use status::{Status, status};
