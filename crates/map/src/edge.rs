// SPDX-License-Identifier: Apache-2.0
//! What a tracer finds.

use clap::ValueEnum;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// All flows between one client address and one service, seen from one end: a connection between
/// two programs of this host has an edge at each.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Edge {
    pub role: Role,
    pub protocol: Protocol,
    /// The executable of the socket's owner; empty for the kernel and where it is not known.
    pub program: String,
    /// The last process that owned one of the sockets.
    pub pid: Option<u32>,
    pub local: IpAddr,
    pub peer: IpAddr,
    /// The server's port.
    pub port: u16,
    /// The name of that port in /etc/services.
    pub service: Option<String>,
    /// The network namespace, as in `/proc/PID/ns/net`.
    pub netns: u32,
    /// The path of the cgroup, or its number where there is no path.
    pub cgroup: String,
    /// How it is known which end is the server.
    pub direction: Direction,
    /// Connections that were open when the tracer started.
    pub found: u64,
    pub opened: u64,
    pub closed: u64,
    /// Connections that are open now.
    pub active: u64,
    /// Connects that failed, by reason.
    pub failed: BTreeMap<String, u64>,
    /// Connections that ended with an error, by reason.
    pub broken: BTreeMap<String, u64>,
    /// Whether the method counts bytes and packets of this protocol; they are zero otherwise.
    pub bytes_known: bool,
    /// Whether `tare link` carries connections over shared memory, whose bytes are not counted here;
    /// `None` if that cannot be said, because links of the program have ended.
    pub linked: Option<bool>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Sends and receives that failed, by reason; only of UDP.
    pub send_errors: BTreeMap<String, u64>,
    pub receive_errors: BTreeMap<String, u64>,
    /// Segments that carried data, or datagrams.
    pub packets_sent: u64,
    pub packets_received: u64,
    pub retransmits: u64,
    /// The kernel's smoothed round-trip times, taken when a connection is read.
    pub rtt: Option<Rtt>,
    /// Nanoseconds since the Unix epoch.
    pub first_seen_ns: i64,
    pub last_seen_ns: i64,
}

impl Edge {
    /// Whether bytes and packets are those of all connections.
    pub fn has_bytes(&self) -> bool {
        self.bytes_known && self.linked == Some(false)
    }
}

/// How edges are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Count each edge in the kernel
    #[default]
    Bundle,
    /// Count each flow in the kernel, and fold flows into edges outside
    Aggregate,
    /// Send connections and messages out of the kernel, and count them outside
    Stream,
    /// List sockets at every interval; needs no BPF and no root
    Poll,
}

/// What the method `stream` sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Events {
    /// Connections that open or fail, and messages of UDP
    #[default]
    Setup,
    /// Also ends of connections and messages of TCP
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Client,
    Server,
    /// What did not fit into the map of edges, folded together.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    Tcp,
    Udp,
    /// Only of the edge `other`.
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// By the range of ephemeral ports.
    Guessed,
    /// By the socket that listens, or by what its connections inherit from it.
    Listener,
    /// The set-up was seen.
    Observed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rtt {
    pub count: u64,
    pub sum_us: u64,
    pub min_us: u64,
    pub max_us: u64,
}

/// What was not recorded as it should be. All zero: the edges are complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Completeness {
    /// Updates that were folded into the edge `other`.
    pub folded: u64,
    pub lost_updates: u64,
    /// Sockets that had no memory for their record.
    pub untracked_sockets: u64,
    /// Events that the ring buffer had no room for.
    pub lost_events: u64,
    pub lost_errors: u64,
    /// Events for which the kernel did not run a program, because it was running.
    pub missed_events: u64,
}

impl Completeness {
    pub fn is_complete(&self) -> bool {
        *self == Self::default()
    }
}

/// What a tracer cost since it started.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// CPU time of this process.
    pub cpu_seconds: f64,
    /// By the name of the BPF program.
    pub programs: BTreeMap<String, Runs>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Runs {
    pub runs: u64,
    pub nanoseconds: u64,
}

/// All edges since the tracer started.
#[derive(Clone, Debug)]
pub struct Reading {
    pub edges: Vec<Edge>,
    pub completeness: Completeness,
}

/// The order of edges in every output.
pub fn sort(edges: &mut [Edge]) {
    edges.sort_by(|one, other| {
        (one.local, one.peer, one.port, one.role as u8, &one.program).cmp(&(
            other.local,
            other.peer,
            other.port,
            other.role as u8,
            &other.program,
        ))
    });
}
