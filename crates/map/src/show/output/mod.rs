// SPDX-License-Identifier: Apache-2.0
//! One file for each format.

pub mod csv;
pub mod dot;
pub mod graph;
pub mod json;
pub mod mermaid;
pub mod text;
