// SPDX-License-Identifier: Apache-2.0
use core::sync::atomic::AtomicU32;

/// What stands before the events of a channel among which the median is looked for.
#[repr(C, align(16))]
pub struct Window {
    /// The thread that is at it.
    pub holder: AtomicU32,
    pub capacity: u32,
    pub filled: u64,
}
