// SPDX-License-Identifier: Apache-2.0
//! Directions that were guessed and that another edge confirms.

use crate::edges::edge::{Direction, Edge, Protocol, Role};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// Protocol, addresses of client and server, and the server's port.
type Ends = (Protocol, IpAddr, IpAddr, u16);

/// A direction that was guessed is known where the other end of the edge is on this host, too: that
/// one has the backlog of its listener. Namespaces can have equal addresses, so the other end is in
/// the same namespace, or in the only other one that has these addresses.
pub fn confirm(edges: &mut [Edge]) {
    // Most readings have no guess, and are large.
    if !edges.iter().any(is_guessed_client) {
        return;
    }
    let (mut clients, mut servers) = (Namespaces::new(), Namespaces::new());
    for edge in edges.iter() {
        match edge.role {
            Role::Client => clients.entry(ends(edge)).or_default().insert(edge.netns),
            Role::Server if edge.direction >= Direction::Listener => {
                servers.entry(ends(edge)).or_default().insert(edge.netns)
            }
            _ => continue,
        };
    }
    for edge in edges {
        if !is_guessed_client(edge) {
            continue;
        }
        let ends = ends(edge);
        let Some(of_servers) = servers.get(&ends) else { continue };
        let stays = edge.local.is_loopback() || edge.local == edge.peer;
        let is_only_one = of_servers.len() == 1 && clients[&ends].len() == 1;
        if of_servers.contains(&edge.netns) || (!stays && is_only_one) {
            edge.direction = Direction::Listener;
        }
    }
}

type Namespaces = HashMap<Ends, HashSet<u32>>;

fn ends(edge: &Edge) -> Ends {
    match edge.role {
        Role::Server => (edge.protocol, edge.peer, edge.local, edge.port),
        _ => (edge.protocol, edge.local, edge.peer, edge.port),
    }
}

fn is_guessed_client(edge: &Edge) -> bool {
    edge.role == Role::Client && edge.direction == Direction::Guessed
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::collections::BTreeMap;

    pub fn edge(role: Role, netns: u32, local: &str, peer: &str) -> Edge {
        let direction = if role == Role::Server { Direction::Listener } else { Direction::Guessed };
        Edge {
            role,
            netns,
            direction,
            local: local.parse().unwrap(),
            peer: peer.parse().unwrap(),
            port: 80,
            protocol: Protocol::Tcp,
            program: String::new(),
            pid: None,
            service: None,
            cgroup: String::new(),
            found: 1,
            opened: 0,
            closed: 0,
            active: 1,
            failed: BTreeMap::new(),
            broken: BTreeMap::new(),
            bytes_known: true,
            linked: Some(false),
            bytes_sent: 0,
            bytes_received: 0,
            send_errors: BTreeMap::new(),
            receive_errors: BTreeMap::new(),
            packets_sent: 0,
            packets_received: 0,
            retransmits: 0,
            rtt: None,
            first_seen_ns: 0,
            last_seen_ns: 0,
        }
    }

    /// Whether each client is confirmed.
    fn confirmed(mut edges: Vec<Edge>) -> Vec<bool> {
        confirm(&mut edges);
        let clients = edges.iter().filter(|edge| edge.role == Role::Client);
        clients.map(|edge| edge.direction == Direction::Listener).collect()
    }

    #[test]
    fn an_end_in_another_namespace_confirms_if_the_addresses_are_in_no_third() {
        let client = |netns| edge(Role::Client, netns, "10.0.0.1", "10.0.0.2");
        let server = |netns| edge(Role::Server, netns, "10.0.0.2", "10.0.0.1");
        assert_eq!(confirmed(vec![client(1), server(2)]), [true]);
        assert_eq!(confirmed(vec![client(1), client(3), server(2)]), [false, false]);
        assert_eq!(confirmed(vec![client(1), server(2), server(4)]), [false]);
        assert_eq!(confirmed(vec![client(1), client(2), server(2)]), [false, true]);
    }

    #[test]
    fn a_server_of_another_protocol_confirms_nothing() {
        let client = edge(Role::Client, 1, "10.0.0.1", "10.0.0.2");
        let mut server = edge(Role::Server, 1, "10.0.0.2", "10.0.0.1");
        server.protocol = Protocol::Udp;
        assert_eq!(confirmed(vec![client, server]), [false]);
    }

    #[test]
    fn an_address_of_one_host_is_not_the_same_in_another_namespace() {
        for address in ["127.0.0.1", "::1", "10.0.0.1"] {
            let client = edge(Role::Client, 1, address, address);
            let server = |netns| edge(Role::Server, netns, address, address);
            assert_eq!(confirmed(vec![client.clone(), server(2)]), [false]);
            assert_eq!(confirmed(vec![client, server(1)]), [true]);
        }
    }
}
