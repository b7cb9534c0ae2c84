// SPDX-License-Identifier: Apache-2.0
//! Memory shared with another process: sealed segments with one header, and
//! single-producer single-consumer rings in them.
//!
//! Nothing here allocates, locks or calls libc, so that it can stand inside a
//! preload library; whatever the other process may write is copied once and
//! checked before it is used.
#![no_std]

mod bell;
mod descriptor;
mod environment;
pub mod found;
pub mod header;
pub mod memory;
mod memory_file;
mod path;
pub mod peer;
pub mod process;
pub mod rights;
mod ring;
mod segment;
pub mod service;
pub mod syscall;
mod thread;

pub use bell::Bell;
pub use descriptor::move_up;
pub use environment::variable;
pub use header::{Header, Refusal};
pub use path::Path;
pub use ring::{Corrupt, Indices, Ring, Word};
pub use segment::{Access, Fill, Segment};
pub use syscall::Errno;
