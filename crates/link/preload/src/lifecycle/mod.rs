// SPDX-License-Identifier: Apache-2.0
//! How a connection becomes a link, is served while the program makes no call, and ends.

mod absence;
pub mod closing;
pub mod connection_log;
pub mod delivery;
mod endpoint_name;
pub mod rendezvous;
pub mod service_thread;
