// SPDX-License-Identifier: Apache-2.0
//! The data schemas of `tables/*.toml` and the Arrow stream writer.

mod cells;
mod schema;
mod writer;

pub use cells::Cell;
pub use schema::{COSTS, Column, EDGES, EVENTS, MACHINE, SAMPLES, Table, Type, describe};
pub use writer::{Vacant, Writer};
