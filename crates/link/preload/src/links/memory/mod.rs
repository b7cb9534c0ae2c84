// SPDX-License-Identifier: Apache-2.0
//! The memory of links: mappings, the limit of their bytes, and when idle rings give theirs back.

pub mod idle_rings;
pub mod link_mapping;
pub mod memory_limit;
