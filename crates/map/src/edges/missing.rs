// SPDX-License-Identifier: Apache-2.0
//! What a reading does not have.

use serde::Serialize;
use std::borrow::Cow;

/// A part of the traffic that is not in a reading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    pub part: Part,
    /// What it is and why, for people.
    pub reason: Cow<'static, str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Connections that open and close between two readings.
    ShortConnections,
    FailedConnects,
    /// Bytes of connections since their last reading.
    LastBytes,
    /// All of UDP.
    Udp,
    /// Bytes of UDP, and its sockets without a peer.
    UdpMessages,
    /// Peers of UDP sockets that are not connected.
    UdpPeers,
    /// Bytes and ends of TCP connections.
    TcpBytes,
    /// Bytes that open connections have carried since an earlier reading.
    OpenBytes,
    /// Sockets of other network namespaces.
    Namespaces,
    /// Names of programs.
    Programs,
    /// Lines of `--jsonl`.
    Intervals,
}

impl Missing {
    pub fn new(part: Part, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { part, reason: reason.into() }
    }
}

impl Part {
    /// As in the output.
    pub fn name(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|name| name.as_str().map(str::to_owned))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_names_of_the_output() {
        assert_eq!(Part::ShortConnections.name(), "short_connections");
        let missing = Missing::new(Part::Udp, "why");
        let text = serde_json::to_string(&missing).unwrap();
        assert_eq!(text, r#"{"part":"udp","reason":"why"}"#);
    }
}
