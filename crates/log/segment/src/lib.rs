// SPDX-License-Identifier: Apache-2.0
//! What a program that logs and its collector share: the layout of the program's segment, the
//! records in its rings, what is done with the events of a channel, and the fast path that
//! writes an event (docs/formats/log-segment.md).
#![no_std]

pub mod block;
mod channels;
mod configuration;
mod last;
pub mod layout;
mod lent;
mod oldest;
pub mod probe;
pub mod record;
mod writer;

pub use configuration::{Codec, Configuration, Handler, Policy, RuleSettings};
pub use last::Noted;
pub use layout::{Channel, Process, RingHead, Table};
pub use lent::Identity;
pub use oldest::{Known, Oldest};
pub use record::{ChannelId, Record, Records};
pub use writer::Writer;
