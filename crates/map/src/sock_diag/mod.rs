// SPDX-License-Identifier: Apache-2.0
//! Edges from lists of sockets (sock_diag(7)), without BPF.

mod owners;
pub mod poll;
pub mod sockets;
mod table;
