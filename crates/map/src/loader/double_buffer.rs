// SPDX-License-Identifier: Apache-2.0
//! Names of the maps of edges and errors.

/// One of the two maps of edges, and its map of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapBuffer {
    First,
    Second,
}

impl MapBuffer {
    pub fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    pub fn edges(self) -> &'static str {
        match self {
            Self::First => "edges",
            Self::Second => "second_edges",
        }
    }

    pub fn errors(self) -> &'static str {
        match self {
            Self::First => "errors",
            Self::Second => "second_errors",
        }
    }
}
