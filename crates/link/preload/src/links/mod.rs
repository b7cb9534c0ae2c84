// SPDX-License-Identifier: Apache-2.0
//! The links of this process: their memory, their locks, and who else has them.

pub mod busy_wait;
pub mod children;
mod copying;
mod family;
mod linger_guard;
mod link_memory;
pub mod memory_limit;
mod occupancy;
mod received;
pub mod receiver_lock;
pub mod sender_lock;
pub mod service_socket;
mod sharing;
pub mod silent_rings;
mod slot;
pub mod slots;
mod waiters;
