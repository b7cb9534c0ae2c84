// SPDX-License-Identifier: Apache-2.0
//! `tare-load` as a program, against servers in this process.

mod arguments;
mod endings;
mod flows;
mod misbehaving;
mod server;
mod spoken;
mod tcp;
mod tcp_arguments;
mod tcp_misbehaving;
mod tcp_pipelining;
