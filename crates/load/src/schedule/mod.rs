// SPDX-License-Identifier: Apache-2.0
//! Which request is due when, and which target has load.

pub mod arrivals;
pub mod capacity;
pub mod request_limit;
pub mod slices;
