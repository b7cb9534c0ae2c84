// SPDX-License-Identifier: Apache-2.0
//! The links of this process: their memory, their locks, and who else has them.

pub mod busy_wait;
pub mod fork_handlers;
mod interruptible_copy;
mod linger_guard;
mod liveness;
pub mod memory;
mod process_sharing;
mod received_counts;
pub mod receiver_lock;
pub mod sender_lock;
pub mod service_socket;
mod slot;
mod slot_allocation;
pub mod slots;
mod waiting_threads;
