// SPDX-License-Identifier: Apache-2.0
//! Edges as a graph: the two ends of a flow on this host are one arrow.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use tare_map::{Edge, Protocol, Reading, Role};

/// What is at one end of an arrow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A program of this host; those of two network namespaces are two.
    Program { name: String, netns: u32 },
    /// An address that no program of this host is known for.
    Address(IpAddr),
}

/// From a client to a service.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrow {
    /// Numbers of nodes.
    pub from: usize,
    pub to: usize,
    pub label: String,
}

#[derive(Debug, Default)]
pub struct Graph {
    pub nodes: Vec<Node>,
    pub arrows: Vec<Arrow>,
}

/// What is drawn as one arrow: the edges between two nodes, with one protocol and port.
#[derive(Default)]
struct Sum<'reading> {
    edges: Vec<&'reading Edge>,
    /// With several servers at one address, nothing says what went to which.
    lacks_counts: bool,
}

#[derive(Default)]
struct Builder<'reading> {
    nodes: Vec<Node>,
    numbers: HashMap<Node, usize>,
    /// In the order of their first edges.
    places: Vec<Place>,
    sums: HashMap<Place, Sum<'reading>>,
}

/// From and to which node, with which protocol and port.
type Place = (usize, usize, Protocol, u16);

impl Graph {
    pub fn new(reading: &Reading) -> Self {
        let (clients, servers): (Vec<_>, Vec<_>) = reading
            .edges
            .iter()
            .filter(|edge| edge.role != Role::Other)
            .partition(|edge| edge.role == Role::Client);
        let mut by_flow = HashMap::<_, Vec<&Edge>>::new();
        for server in &servers {
            by_flow.entry(flow(server)).or_default().push(server);
        }
        let mut builder = Builder::default();
        let mut drawn = HashSet::new();
        for client in clients {
            let from = builder.number(program(client).unwrap_or(Node::Address(client.local)));
            let found = by_flow.get(&flow(client)).map_or(&[][..], Vec::as_slice);
            let mut ends = Vec::new();
            for server in found {
                let end = builder.number(program(server).unwrap_or(Node::Address(server.local)));
                if !ends.contains(&end) {
                    ends.push(end);
                }
            }
            if ends.is_empty() {
                ends.push(builder.number(Node::Address(client.peer)));
            }
            for to in &ends {
                builder.add(from, *to, client, ends.len() == 1);
            }
            drawn.insert(flow(client));
        }
        for server in servers {
            if !drawn.contains(&flow(server)) {
                let from = builder.number(Node::Address(server.peer));
                let to = builder.number(program(server).unwrap_or(Node::Address(server.local)));
                builder.add(from, to, server, true);
            }
        }
        let Builder { nodes, places, sums, .. } = builder;
        let arrow =
            |place: Place| Arrow { from: place.0, to: place.1, label: label(&sums[&place]) };
        Self { nodes, arrows: places.into_iter().map(arrow).collect() }
    }
}

impl<'reading> Builder<'reading> {
    fn number(&mut self, node: Node) -> usize {
        *self.numbers.entry(node).or_insert_with_key(|node| {
            self.nodes.push(node.clone());
            self.nodes.len() - 1
        })
    }

    fn add(&mut self, from: usize, to: usize, edge: &'reading Edge, has_counts: bool) {
        let place = (from, to, edge.protocol, edge.port);
        let sum = self.sums.entry(place).or_insert_with(|| {
            self.places.push(place);
            Sum::default()
        });
        sum.edges.push(edge);
        sum.lacks_counts |= !has_counts;
    }
}

fn label(sum: &Sum) -> String {
    let edge = sum.edges[0];
    let protocol = if edge.protocol == Protocol::Udp { "udp" } else { "tcp" };
    let mut label = format!("{protocol} {}", edge.port);
    if let Some(service) = &edge.service {
        label += &format!(" ({service})");
    }
    if sum.lacks_counts {
        return label;
    }
    if let Some(linked) = sum.edges.iter().find(|edge| edge.linked == Some(true)) {
        label += &format!(", {}", super::text::bytes_of(linked, 0));
    } else if sum.edges.iter().all(|edge| edge.has_bytes()) {
        let bytes = sum.edges.iter().map(|edge| edge.bytes_sent + edge.bytes_received).sum();
        label += &format!(", {}", super::text::bytes(bytes));
    }
    let failed: u64 = sum.edges.iter().flat_map(|edge| edge.failed.values()).sum();
    if failed != 0 {
        label += &format!(", {failed} failed");
    }
    label
}

/// What both ends of a flow have in common. Loopback addresses are of one namespace.
fn flow(edge: &Edge) -> (IpAddr, IpAddr, u16, bool, Option<u32>) {
    let (client, server) = match edge.role {
        Role::Server => (edge.peer, edge.local),
        _ => (edge.local, edge.peer),
    };
    let namespace = server.is_loopback().then_some(edge.netns);
    (client, server, edge.port, edge.protocol == Protocol::Udp, namespace)
}

fn program(edge: &Edge) -> Option<Node> {
    let name = edge.program.clone();
    (!name.is_empty()).then_some(Node::Program { name, netns: edge.netns })
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tare_map::{Completeness, Direction};

    pub fn edge(role: Role, program: &str, local: &str, peer: &str) -> Edge {
        Edge {
            role,
            protocol: Protocol::Tcp,
            program: program.to_owned(),
            pid: None,
            local: local.parse().unwrap(),
            peer: peer.parse().unwrap(),
            port: 80,
            service: Some("http".to_owned()),
            netns: 1,
            cgroup: "/".to_owned(),
            direction: Direction::Observed,
            found: 0,
            opened: 1,
            closed: 0,
            active: 1,
            failed: BTreeMap::new(),
            broken: BTreeMap::new(),
            bytes_known: true,
            linked: Some(false),
            bytes_sent: 100,
            bytes_received: 24,
            send_errors: BTreeMap::new(),
            receive_errors: BTreeMap::new(),
            packets_sent: 1,
            packets_received: 1,
            retransmits: 0,
            rtt: None,
            first_seen_ns: 0,
            last_seen_ns: 0,
        }
    }

    pub fn reading(edges: Vec<Edge>) -> Reading {
        Reading { edges, completeness: Completeness::default(), missing: Vec::new() }
    }

    fn named(name: &str) -> Node {
        Node::Program { name: name.to_owned(), netns: 1 }
    }

    #[test]
    fn both_ends_on_this_host_are_one_arrow() {
        let graph = Graph::new(&reading(vec![
            edge(Role::Client, "curl", "10.0.0.1", "10.0.0.2"),
            edge(Role::Server, "nginx", "10.0.0.2", "10.0.0.1"),
            edge(Role::Server, "nginx", "10.0.0.2", "10.0.0.9"),
        ]));
        assert_eq!(
            graph.nodes,
            [named("curl"), named("nginx"), Node::Address("10.0.0.9".parse().unwrap())]
        );
        let label = "tcp 80 (http), 124 B".to_owned();
        let arrows =
            [Arrow { from: 0, to: 1, label: label.clone() }, Arrow { from: 2, to: 1, label }];
        assert_eq!(graph.arrows, arrows);
    }

    #[test]
    fn two_servers_of_one_address_share_no_counts() {
        let graph = Graph::new(&reading(vec![
            edge(Role::Client, "curl", "10.0.0.1", "10.0.0.2"),
            edge(Role::Server, "one", "10.0.0.2", "10.0.0.1"),
            edge(Role::Server, "other", "10.0.0.2", "10.0.0.1"),
        ]));
        assert_eq!(graph.nodes, [named("curl"), named("one"), named("other")]);
        assert!(graph.arrows.iter().all(|arrow| arrow.label == "tcp 80 (http)"));
        assert_eq!(graph.arrows.len(), 2);
    }

    #[test]
    fn edges_of_two_cgroups_between_two_programs_are_one_arrow() {
        let client = edge(Role::Client, "curl", "10.0.0.1", "10.0.0.2");
        let mut other = edge(Role::Client, "curl", "10.0.0.1", "10.0.0.2");
        other.cgroup = "/other".to_owned();
        let server = edge(Role::Server, "nginx", "10.0.0.2", "10.0.0.1");
        let mut worker = edge(Role::Server, "nginx", "10.0.0.2", "10.0.0.1");
        worker.cgroup = "/other".to_owned();
        let graph = Graph::new(&reading(vec![client, other, server, worker]));
        assert_eq!(graph.nodes, [named("curl"), named("nginx")]);
        let label = "tcp 80 (http), 248 B".to_owned();
        assert_eq!(graph.arrows, [Arrow { from: 0, to: 1, label }]);
    }

    #[test]
    fn loopback_of_two_namespaces_is_not_joined() {
        let mut server = edge(Role::Server, "nginx", "127.0.0.1", "127.0.0.1");
        server.netns = 2;
        let client = edge(Role::Client, "curl", "127.0.0.1", "127.0.0.1");
        assert_eq!(Graph::new(&reading(vec![client, server])).arrows.len(), 2);
    }
}
