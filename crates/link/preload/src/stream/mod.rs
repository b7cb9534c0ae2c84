// SPDX-License-Identifier: Apache-2.0
//! The bytes of a link: sent, received, and taken back from the ring to TCP.

pub mod accessible_memory;
pub mod buffers;
pub mod downgrade;
pub mod eventfds;
mod peek;
pub mod receive;
mod receive_attempt;
mod receive_tcp;
pub mod send;
pub mod send_source;
mod undelivered;
