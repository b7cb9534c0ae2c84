// SPDX-License-Identifier: Apache-2.0
//! What a tracer finds.

use crate::edges::missing::Missing;
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

    /// Whether its bytes can change before the next event.
    pub fn has_open_connections(&self) -> bool {
        self.protocol != Protocol::Udp && self.active > 0
    }

    /// Adds the counts of an edge that a reader cannot tell apart.
    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, number) in [
            (&mut self.found, other.found),
            (&mut self.opened, other.opened),
            (&mut self.closed, other.closed),
            (&mut self.active, other.active),
            (&mut self.bytes_sent, other.bytes_sent),
            (&mut self.bytes_received, other.bytes_received),
            (&mut self.packets_sent, other.packets_sent),
            (&mut self.packets_received, other.packets_received),
            (&mut self.retransmits, other.retransmits),
        ] {
            *sum = sum.wrapping_add(number);
        }
        for (sums, counts) in [
            (&mut self.failed, &other.failed),
            (&mut self.broken, &other.broken),
            (&mut self.send_errors, &other.send_errors),
            (&mut self.receive_errors, &other.receive_errors),
        ] {
            for (reason, count) in counts {
                *sums.entry(reason.clone()).or_default() += count;
            }
        }
        self.rtt = match (self.rtt, other.rtt) {
            (Some(first), Some(second)) => Some(Rtt {
                count: first.count + second.count,
                sum_us: first.sum_us + second.sum_us,
                min_us: first.min_us.min(second.min_us),
                max_us: first.max_us.max(second.max_us),
            }),
            (first, second) => first.or(second),
        };
        self.linked = match (self.linked, other.linked) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        };
        self.direction = self.direction.max(other.direction);
        self.first_seen_ns = self.first_seen_ns.min(other.first_seen_ns);
        if other.last_seen_ns > self.last_seen_ns {
            self.last_seen_ns = other.last_seen_ns;
            self.pid = other.pid.or(self.pid);
        }
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

/// What was not recorded as it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Completeness {
    /// Updates that were folded into the edge `other`.
    pub folded: u64,
    /// Edges without open connections that made room for others, and were added to the edge `other`.
    pub removed_edges: u64,
    pub lost_updates: u64,
    /// Sockets that had no memory for their record.
    pub untracked_sockets: u64,
    /// Events that the ring buffer had no room for.
    pub lost_events: u64,
    pub lost_errors: u64,
    /// Events for which the kernel did not run a program, because it was running.
    pub missed_events: u64,
    /// Connections that were counted as closed because their sockets no longer exist: the kernel ran
    /// no program for their end. Their last bytes are missing.
    pub unseen_ends: u64,
    /// Listening sockets that were not recorded: directions of older connections are guessed instead.
    pub lost_listeners: u64,
    /// Programs whose names were not recorded.
    pub lost_names: u64,
    /// Edges whose open connections were not counted: ends that no program saw were not looked for.
    pub lost_open: u64,
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
    /// What the method and this machine do not show.
    pub missing: Vec<Missing>,
}

impl Reading {
    /// Whether everything was recorded.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.completeness == Completeness::default()
    }

    /// What is missing, in one line for people; none if everything was recorded.
    pub fn describe_missing(&self) -> Option<String> {
        if self.is_complete() {
            return None;
        }
        let reasons = self.missing.iter().map(|missing| missing.reason.to_string());
        let counts = (self.completeness != Completeness::default())
            .then(|| serde_json::to_string(&self.completeness).unwrap_or_default());
        let parts: Vec<_> = reasons.chain(counts).collect();
        Some(format!("not complete: {}", parts.join("; ")))
    }
}

/// The order of edges in every output; edges that a reader cannot tell apart are added up. Programs
/// have equal names if an executable was replaced, or if there are copies of it.
pub fn sort(edges: &mut Vec<Edge>) {
    edges.sort_by(|first, second| identity(first).cmp(&identity(second)));
    edges.dedup_by(|next, edge| {
        let is_same = identity(next) == identity(edge);
        if is_same {
            edge.add(next);
        }
        is_same
    });
}

/// What a reader can tell edges apart by.
fn identity(edge: &Edge) -> (IpAddr, IpAddr, u16, u8, &str, u8, u32, &str) {
    (
        edge.local,
        edge.peer,
        edge.port,
        edge.role as u8,
        &edge.program,
        edge.protocol as u8,
        edge.netns,
        &edge.cgroup,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edges::missing::Part;

    fn edge(program: &str, pid: u32, last_seen_ns: i64) -> Edge {
        Edge {
            role: Role::Client,
            protocol: Protocol::Tcp,
            program: program.to_owned(),
            pid: Some(pid),
            local: "10.0.0.1".parse().unwrap(),
            peer: "10.0.0.2".parse().unwrap(),
            port: 80,
            service: None,
            netns: 1,
            cgroup: "/".to_owned(),
            direction: Direction::Guessed,
            found: 0,
            opened: 2,
            closed: 1,
            active: 1,
            failed: BTreeMap::from([("ECONNREFUSED".to_owned(), 3)]),
            broken: BTreeMap::new(),
            bytes_known: true,
            linked: Some(false),
            bytes_sent: 100,
            bytes_received: 10,
            send_errors: BTreeMap::new(),
            receive_errors: BTreeMap::new(),
            packets_sent: 1,
            packets_received: 1,
            retransmits: 1,
            rtt: Some(Rtt { count: 1, sum_us: 5, min_us: 5, max_us: 5 }),
            first_seen_ns: 1,
            last_seen_ns,
        }
    }

    #[test]
    fn edges_of_programs_with_one_name_are_added_up() {
        let mut second = edge("python", 8, 30);
        second.direction = Direction::Observed;
        second.failed = BTreeMap::from([("ECONNREFUSED".to_owned(), 1), ("EPERM".to_owned(), 1)]);
        second.rtt = Some(Rtt { count: 2, sum_us: 20, min_us: 9, max_us: 11 });
        let mut edges =
            vec![edge("python", 7, 20), edge("shop", 9, 20), second, edge("python", 6, 10)];
        edges[3].rtt = None;
        edges[3].linked = None;
        sort(&mut edges);
        assert_eq!(edges.len(), 2);
        let python = &edges[0];
        assert_eq!((python.opened, python.closed, python.active), (6, 3, 3));
        assert_eq!((python.bytes_sent, python.packets_received, python.retransmits), (300, 3, 3));
        assert_eq!((python.pid, python.last_seen_ns), (Some(8), 30));
        assert_eq!((python.direction, python.linked), (Direction::Observed, None));
        let failed: Vec<_> = python.failed.clone().into_iter().collect();
        assert_eq!(failed, [("ECONNREFUSED".to_owned(), 7), ("EPERM".to_owned(), 1)]);
        assert_eq!(python.rtt, Some(Rtt { count: 3, sum_us: 25, min_us: 5, max_us: 11 }));
        assert_eq!(edges[1], edge("shop", 9, 20));
    }

    #[test]
    fn reasons_and_counts_are_one_line() {
        let mut reading =
            Reading { edges: Vec::new(), completeness: Completeness::default(), missing: vec![] };
        assert!(reading.is_complete());
        assert_eq!(reading.describe_missing(), None);
        reading.missing.push(Missing::new(Part::Udp, "UDP (no events)"));
        assert!(!reading.is_complete());
        assert_eq!(reading.describe_missing().unwrap(), "not complete: UDP (no events)");
        reading.completeness.folded = 3;
        let line = reading.describe_missing().unwrap();
        assert!(line.starts_with("not complete: UDP (no events); {\"folded\":3,"), "{line}");
    }

    #[test]
    fn edges_that_differ_in_protocol_namespace_or_cgroup_stay() {
        let mut edges = vec![edge("python", 1, 1); 4];
        edges[1].protocol = Protocol::Udp;
        edges[2].netns = 2;
        edges[3].cgroup = "/other".to_owned();
        sort(&mut edges);
        assert_eq!(edges.len(), 4);
    }
}
