// SPDX-License-Identifier: Apache-2.0
//! Edges, and what people read of them: names, directions, links, what is missing.

pub mod direction;
pub mod edge;
pub mod links;
pub mod missing;
pub mod names;
pub mod resolve;
