// SPDX-License-Identifier: Apache-2.0
//! The one histogram of Tare: logarithmic bins, each octave cut into 512 equal parts, so
//! that a bin's middle is within 0.1 % of every value in it. Counts add up: merging is
//! addition, in shared memory as well as out of it.
#![no_std]

mod bins;
mod counts;

pub use bins::{bins, bounds, index, middle};
pub use counts::{add_into, quantile, record};
