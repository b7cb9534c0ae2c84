// SPDX-License-Identifier: Apache-2.0
//! `tare-load http` as a program, against servers in this process.

mod arguments;
mod endings;
mod misbehaving;
mod server;
mod spoken;
