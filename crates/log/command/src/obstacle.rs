// SPDX-License-Identifier: Apache-2.0
use tare_shm::Refusal;

/// Why a segment is not collected from.
pub enum Obstacle {
    Refused(Refusal),
    /// By this process, 0 where it is in another PID namespace.
    Served(u32),
}

impl From<Refusal> for Obstacle {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
