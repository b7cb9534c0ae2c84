// SPDX-License-Identifier: Apache-2.0
//! Edges by what identifies them, and room for new ones.

use crate::edges::edge::{Edge, Role};
use crate::sock_diag::sockets::TcpCounts;
use std::collections::HashMap;
use std::net::IpAddr;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub role: u8,
    pub protocol: u8,
    pub program: String,
    pub local: IpAddr,
    pub peer: IpAddr,
    pub port: u16,
    pub netns: u32,
    pub cgroup: u64,
}

impl Key {
    /// What does not fit is folded together.
    pub fn other() -> Self {
        let none = IpAddr::from([0; 16]);
        Self {
            role: Role::Other as u8,
            protocol: 0,
            program: String::new(),
            local: none,
            peer: none,
            port: 0,
            netns: 0,
            cgroup: 0,
        }
    }
}

/// Adds the edges without connections that changed longest ago to the edge `other`, which exists.
/// Returns their number.
pub fn remove_oldest_idle(edges: &mut HashMap<Key, Edge>, number: usize) -> u64 {
    let other = Key::other();
    let idle = edges.iter().filter(|(key, edge)| edge.active == 0 && **key != other);
    let mut idle: Vec<_> = idle.map(|(key, edge)| (edge.last_seen_ns, key.clone())).collect();
    idle.sort_unstable_by_key(|(last_seen_ns, _)| *last_seen_ns);
    idle.truncate(number);
    let removed: Vec<_> = idle.iter().filter_map(|(_, key)| edges.remove(key)).collect();
    if let Some(other) = edges.get_mut(&other) {
        for edge in &removed {
            other.add(edge);
        }
    }
    removed.len() as u64
}

/// Takes an open connection from its edge, with what was counted between two of its readings. An edge
/// that had no other one is removed.
pub fn take_connection(
    edges: &mut HashMap<Key, Edge>,
    key: &Key,
    was_found: bool,
    first: TcpCounts,
    last: TcpCounts,
) {
    let Some(edge) = edges.get_mut(key) else { return };
    *(if was_found { &mut edge.found } else { &mut edge.opened }) -= 1;
    edge.active -= 1;
    edge.bytes_sent -= last.bytes_sent.saturating_sub(first.bytes_sent);
    edge.bytes_received -= last.bytes_received.saturating_sub(first.bytes_received);
    edge.packets_sent -= last.packets_sent.saturating_sub(first.packets_sent);
    edge.packets_received -= last.packets_received.saturating_sub(first.packets_received);
    edge.retransmits -= last.retransmits.saturating_sub(first.retransmits);
    if edge.found + edge.opened == 0 {
        edges.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edges::direction::tests::edge;

    fn key(port: u16) -> Key {
        Key { port, role: Role::Client as u8, ..Key::other() }
    }

    #[test]
    fn oldest_edges_without_connections_are_added_to_the_edge_other() {
        let at = |port: u16, active: u64, last_seen_ns: i64| {
            let mut edge = edge(Role::Client, 1, "10.0.0.1", "10.0.0.2");
            (edge.opened, edge.found, edge.active, edge.last_seen_ns) =
                (2, 0, active, last_seen_ns);
            (edge.closed, edge.bytes_sent) = (2 - active, 100);
            (key(port), edge)
        };
        let mut other = at(0, 0, 0).1;
        (other.opened, other.closed, other.bytes_sent) = (0, 0, 0);
        let mut edges =
            HashMap::from([(Key::other(), other), at(1, 0, 30), at(2, 1, 10), at(3, 0, 20)]);
        assert_eq!(remove_oldest_idle(&mut edges, 1), 1);
        assert!(!edges.contains_key(&key(3)));
        assert_eq!(remove_oldest_idle(&mut edges, 5), 1);
        // That with a connection stays.
        assert_eq!(remove_oldest_idle(&mut edges, 5), 0);
        let other = &edges[&Key::other()];
        assert_eq!((other.opened, other.closed, other.bytes_sent), (4, 4, 200));
        assert_eq!(edges.len(), 2);
    }
}
