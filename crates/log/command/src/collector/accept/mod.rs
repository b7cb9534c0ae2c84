// SPDX-License-Identifier: Apache-2.0
//! Connections of programs: who may connect, and the descriptors that programs send.

pub mod acceptor;
pub mod listening_socket;
pub mod receiver;
pub mod receivers;
pub mod request;
pub mod takeover;
