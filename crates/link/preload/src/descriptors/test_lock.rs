// SPDX-License-Identifier: Apache-2.0
//! Keeps tests of descriptors apart.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Descriptors, their limit and children belong to the process: tests of them run one after the
/// other.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
