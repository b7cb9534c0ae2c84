// SPDX-License-Identifier: Apache-2.0
use tare_log_file::Payload;

/// A payload that outlives its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedPayload {
    Number(i64),
    Bytes(Vec<u8>),
}

impl From<Payload<'_>> for OwnedPayload {
    fn from(payload: Payload<'_>) -> Self {
        match payload {
            Payload::Number(number) => Self::Number(number),
            Payload::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
        }
    }
}

impl OwnedPayload {
    /// Bytes that it takes elsewhere.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Number(_) => 0,
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    pub fn payload(&self) -> Payload<'_> {
        match self {
            Self::Number(number) => Payload::Number(*number),
            Self::Bytes(bytes) => Payload::Bytes(bytes),
        }
    }
}
