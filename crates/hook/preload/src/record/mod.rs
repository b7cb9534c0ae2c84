// SPDX-License-Identifier: Apache-2.0
//! What tare-hook gets: events, counts, and the time that the hook takes.

pub mod event;
pub mod hook;
pub mod mapped;
pub mod own_time;
pub mod shrink;
pub mod signals;
