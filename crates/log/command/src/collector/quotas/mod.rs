// SPDX-License-Identifier: Apache-2.0
//! What one user may take of a collector: descriptors, mappings, memory, time, names.

pub mod descriptor_limit;
pub mod memory_limit;
pub mod name_quota;
pub mod resource_quota;
pub mod subordinate_ids;
pub mod time_share;
