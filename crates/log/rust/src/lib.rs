// SPDX-License-Identifier: Apache-2.0
//! Event logging in about ten nanoseconds: time and payload go into memory that is shared with
//! another process, which survives this one.
//!
//! ```
//! use tare_log::{Channel, Span};
//!
//! let requests = Channel::open("requests");
//! requests.log(42);
//! requests.bytes(b"GET /");
//!
//! let work = Span::open("work");
//! {
//!     let _scope = work.enter(42); // logs its beginning here
//! } // and its end here, whatever way leads out
//! ```
//!
//! `tare log run -- PROGRAM` runs a program and collects its events. Nothing here fails: where
//! nobody collects, events are discarded.
//!
//! This crate and `libtare_log`, or two versions of this crate, may stand in one process: each
//! has a segment and rings of its own, and the collector takes the events of all.

mod channel;
mod process;
mod span;

pub use channel::Channel;
pub use span::{Scope, Span};
pub use tare_log_segment::{Codec, Configuration as Options, Handler, Policy};

#[cfg(doctest)]
#[doc = include_str!("../../../../docs/log-languages.md")]
struct PageOfTheDocumentation;
