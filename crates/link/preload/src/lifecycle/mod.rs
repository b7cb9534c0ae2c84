// SPDX-License-Identifier: Apache-2.0
//! How a connection becomes a link, is served while the program makes no call, and ends.

pub mod closing;
pub mod connection_log;
pub mod delivery;
mod endpoint_name;
mod negative_cache;
pub mod rendezvous;
pub mod service_thread;
