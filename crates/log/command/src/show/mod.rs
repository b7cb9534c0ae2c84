// SPDX-License-Identifier: Apache-2.0
//! What `tare log dump`, `stats` and `top` print.

pub mod call_tree;
pub mod dump;
pub mod flame_graph;
pub mod live_losses;
pub mod screen;
pub mod span_times;
pub mod stats;
pub mod top;
