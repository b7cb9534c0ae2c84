// SPDX-License-Identifier: Apache-2.0
//! What becomes of an event that the fast path has left over.

pub mod event;
pub mod handlers;
pub mod log;
mod median;
mod round_trip_end;
mod single_event_block;
mod write_through;
