// SPDX-License-Identifier: Apache-2.0
//! What one user may take of a collector: descriptors, mappings, memory, time, names.

pub mod budget;
pub mod descriptor_limit;
pub mod memory;
pub mod naming;
pub mod payer;
pub mod slices;
