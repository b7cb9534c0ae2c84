// SPDX-License-Identifier: Apache-2.0
//! The processor's tick counter, its calibration, and clock snapshots that turn
//! ticks into times.
#![no_std]

pub mod counter;
mod snapshot;
mod source;
mod ticks;

pub use snapshot::{Rate, Snapshot};
pub use source::Source;
pub use ticks::{is_invariant, ordered_ticks, ticks};
