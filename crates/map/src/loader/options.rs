// SPDX-License-Identifier: Apache-2.0
use crate::edges::edge::{Events, Method};

/// How to trace.
#[derive(Clone, Debug)]
pub struct Options {
    /// Not [`Method::Poll`], which [`crate::Poller`] has.
    pub method: Method,
    /// Only for [`Method::Stream`].
    pub events: Events,
    /// Bytes for events on their way to [`Method::Stream`]: a power of two.
    pub buffer: u32,
    /// Edges that there is room for; the rest is folded into one edge `other`.
    pub max_edges: u32,
    /// Count run time and number of runs of the BPF programs: all of the machine, while it lasts.
    pub statistics: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            method: Method::Bundle,
            events: Events::Setup,
            buffer: 16 << 20,
            max_edges: 32_768,
            statistics: false,
        }
    }
}

/// Edges that the kernel has room for: some more than are shown, so that new ones are recorded until
/// idle ones have left.
pub fn map_size(max_edges: u32) -> u32 {
    max_edges.saturating_add(max_edges / 8)
}
