// SPDX-License-Identifier: Apache-2.0
use crate::connection::Flow;
use crate::record::hook::Hook;
use core::ffi::c_int;
use tare_hook_segment::{Counters, Direction, Symbol};
use tare_interpose::Kind;

/// One call that moved, or is to move, bytes through a socket.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    pub hook: Hook,
    /// Of this function, where this thread counts.
    pub counters: &'static Counters,
    pub symbol: Symbol,
    pub fd: c_int,
    pub kind: Kind,
    pub direction: Direction,
    pub flow: &'a Flow,
}
