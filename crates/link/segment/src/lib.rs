// SPDX-License-Identifier: Apache-2.0
//! What both ends of a link share: for each direction of a TCP connection a ring of bytes, and
//! the points of the stream where the bytes change between TCP and the ring
//! (docs/internals/link.md).
//!
//! Nothing here makes system calls or touches the bytes: `tare-link-preload` does, by the places
//! that it gets here. All that the other process may write is copied once and checked.
#![no_std]

mod direction;
mod doorbell;
mod holders;
mod layout;
#[cfg(not(loom))]
mod listing;
mod lock;
#[cfg(not(loom))]
mod reason;
mod reference_count;
mod settings;
#[cfg(not(loom))]
mod statistics;

#[cfg(not(loom))]
pub use direction::Totals;
pub use direction::{Corrupt, Direction, LARGEST_RING, Mode, SMALLEST_RING, Source};
pub use doorbell::Doorbell;
pub use holders::Holders;
pub use layout::{End, Link, SERVICES, Shared, VERSION};
#[cfg(not(loom))]
pub use listing::{COUNTERS, Listed, Listing, totals};
pub use lock::{Lock, Taken};
#[cfg(not(loom))]
pub use reason::{Reason, Reasons};
pub use reference_count::ReferenceCount;
pub use settings::{Endpoint, LinkSettings, Pattern};
#[cfg(not(loom))]
pub use statistics::{Counter, Handover, LOG_VARIABLE, Statistics, VARIABLE};
