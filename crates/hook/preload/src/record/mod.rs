// SPDX-License-Identifier: Apache-2.0
//! What tare-hook gets: events, counts, and the time that the hook takes.

pub mod entry_overhead;
pub mod event;
pub mod hook;
pub mod mapped;
pub mod shrink;
pub mod signals;
