// SPDX-License-Identifier: Apache-2.0
//! Files of log events: self-describing blocks, each with its checksum, of columns with deltas
//! (docs/formats/log.md). What the reader is given may be anything.

mod block;
mod codec;
mod columns;
mod encoder;
mod events;
mod lzo;
mod meta;
mod parts;
mod reader;

pub use block::{Block, block};
pub use codec::{Invalid, Packer};
pub use columns::{Event, Item, Mark, Payload};
pub use encoder::{Codecs, Encoder, Packed, Summary};
pub use events::Events;
pub use meta::{Boot, Channels, Clock, End, How, Moment, OpenedChannel, ProcessInfo, Relation};
pub use reader::Reader;
pub use tare_log_segment::Codec;
pub use tare_log_segment::block::{Header, Kind, MAGIC};
