// SPDX-License-Identifier: Apache-2.0
//! Event files: their blocks, the order and the times of their events, and spans.

pub mod clock_domains;
pub mod clock_drift;
pub mod clock_offsets;
pub mod log;
pub mod owned_payload;
pub mod process_end;
pub mod seen_ranges;
pub mod spans;
pub mod tail;
pub mod tick_conversion;
pub mod virtual_thread_order;
