// SPDX-License-Identifier: Apache-2.0
//! What tare-hook and its preload library share. tare-hook creates two segments:
//!
//! - [`Control`], which the library maps read-only: the rules, as two slots for generations
//!   of them ([`Rules`]). tare-hook writes with `Control::publish` (feature `build`).
//! - [`Shared`], which both may write: statistics, and rings of [`Event`]s.
//!
//! The library finds them by the environment variable of [`Handover`]. Whatever stands in a
//! segment is hostile input to either side: every index is masked or checked.
#![no_std]

#[cfg(any(test, feature = "build"))]
extern crate std;

mod automaton_scan;
#[cfg(any(test, feature = "build"))]
mod build;
mod control;
mod event;
mod handover;
mod owner;
mod rules;
mod shared;
mod symbol;
mod version;

pub use automaton_scan::{Match, ROOT, Scan};
#[cfg(any(test, feature = "build"))]
pub use build::{Generation, Keyword, TooLarge};
pub use control::{Control, View};
pub use event::{EVENT_WORDS, Event};
pub use handover::{Handover, VARIABLE};
pub use rules::{
    Action, Attributes, Direction, Directions, KEYWORDS, LONGEST, OUTPUTS, Rules, Scope, TABLE,
};
pub use shared::{
    Counters, EventRing, LARGEST_OWN_TIME, RINGS, SHARDS, SYMBOLS, Shared, Statistics, Unseen,
};
pub use symbol::Symbol;
pub use version::VERSION;
