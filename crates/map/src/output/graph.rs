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
    numbers: HashMap<Node, usize>,
}

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
        let mut graph = Self::default();
        let mut drawn = HashSet::new();
        for client in clients {
            let from = graph.number(program(client).unwrap_or(Node::Address(client.local)));
            let found = by_flow.get(&flow(client)).map_or(&[][..], Vec::as_slice);
            if found.is_empty() {
                let to = graph.number(Node::Address(client.peer));
                graph.arrow(from, to, client, true);
            }
            for server in found {
                let to = graph.number(program(server).unwrap_or(Node::Address(server.local)));
                // With several servers at one address, nothing says what went to which.
                graph.arrow(from, to, client, found.len() == 1);
            }
            drawn.insert(flow(client));
        }
        for server in servers {
            if !drawn.contains(&flow(server)) {
                let from = graph.number(Node::Address(server.peer));
                let to = graph.number(program(server).unwrap_or(Node::Address(server.local)));
                graph.arrow(from, to, server, true);
            }
        }
        graph
    }

    fn number(&mut self, node: Node) -> usize {
        *self.numbers.entry(node).or_insert_with_key(|node| {
            self.nodes.push(node.clone());
            self.nodes.len() - 1
        })
    }

    fn arrow(&mut self, from: usize, to: usize, edge: &Edge, has_counts: bool) {
        let protocol = if edge.protocol == Protocol::Udp { "udp" } else { "tcp" };
        let mut label = format!("{protocol} {}", edge.port);
        if let Some(service) = &edge.service {
            label += &format!(" ({service})");
        }
        if has_counts {
            if edge.has_bytes() || edge.linked == Some(true) {
                let bytes = super::text::bytes_of(edge, edge.bytes_sent + edge.bytes_received);
                label += &format!(", {bytes}");
            }
            let failed: u64 = edge.failed.values().sum();
            if failed != 0 {
                label += &format!(", {failed} failed");
            }
        }
        let arrow = Arrow { from, to, label };
        if has_counts || !self.arrows.contains(&arrow) {
            self.arrows.push(arrow);
        }
    }
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
        Reading { edges, completeness: Completeness::default() }
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
    fn loopback_of_two_namespaces_is_not_joined() {
        let mut server = edge(Role::Server, "nginx", "127.0.0.1", "127.0.0.1");
        server.netns = 2;
        let client = edge(Role::Client, "curl", "127.0.0.1", "127.0.0.1");
        assert_eq!(Graph::new(&reading(vec![client, server])).arrows.len(), 2);
    }
}
