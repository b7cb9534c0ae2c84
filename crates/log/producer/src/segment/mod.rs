// SPDX-License-Identifier: Apache-2.0
//! The memory that the program shares: made, handed to a collector, given to threads, unmapped.

pub mod attach;
pub mod borrowed_descriptors;
pub mod carrier_thread;
pub mod environment;
pub mod handover;
pub mod mapped;
pub mod median_window;
pub mod racy_init;
pub mod region;
pub mod ring_ownership;
pub mod shrink;
