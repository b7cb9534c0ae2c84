// SPDX-License-Identifier: Apache-2.0
//! What `tare log dump`, `stats` and `top` print.

pub mod dump;
pub mod flame;
pub mod live_losses;
pub mod nesting;
pub mod screen;
pub mod stats;
pub mod top;
