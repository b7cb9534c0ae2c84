// SPDX-License-Identifier: Apache-2.0
//! Event files: their blocks, the order and the times of their events, and spans.

pub mod bridge;
pub mod clock_drift;
pub mod leaving;
pub mod log;
pub mod pairs;
pub mod seen;
pub mod spans;
pub mod tail;
pub mod timelines;
pub mod times;
pub mod value;
pub mod virtual_threads;
