// SPDX-License-Identifier: Apache-2.0
//! Edges from lists of sockets that are compared: no BPF, and less is seen.

use crate::Error;
use crate::clock::process_seconds;
use crate::edges::direction::confirm;
use crate::edges::edge::{Completeness, Cost, Direction, Edge, Protocol, Reading, Role, Rtt, sort};
use crate::edges::links::Links;
use crate::edges::missing::{Missing, Part};
use crate::edges::names::{Cgroups, Services};
use crate::layout::{TCP, UDP};
use crate::namespaces::Namespaces;
use crate::sock_diag::owners::{self, Owner};
use crate::sock_diag::sockets::{LISTEN, Lister, Socket, TcpCounts};
use crate::sock_diag::table::{Key, remove_oldest_idle, take_connection};

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// Lists the sockets of this host at every reading. Without root it sees its own network namespace,
/// and names only programs of its own user. What opens and closes between two readings is missing.
pub struct Poller {
    max_edges: usize,
    namespaces: Namespaces,
    listers: HashMap<u32, Lister>,
    services: Services,
    cgroups: Cgroups,
    links: Links,
    connections: HashMap<(u32, u64), Connection>,
    edges: HashMap<Key, Edge>,
    owners: HashMap<u32, Owner>,
    /// Ports that the kernel chooses for clients.
    ephemeral: (u16, u16),
    is_first: bool,
    folded: u64,
    removed: u64,
    /// Whether network namespaces, or descriptors of processes, could not be read.
    has_hidden_namespaces: bool,
    has_hidden_programs: bool,
}

struct Connection {
    key: Key,
    was_found: bool,
    /// The kernel's counters from which on it counts, and those that its edge has.
    first: TcpCounts,
    counted: TcpCounts,
    reading: u64,
}

impl Connection {
    fn lacks_owner(&self) -> bool {
        self.key.program.is_empty() && self.key != Key::other()
    }
}

impl Poller {
    /// Needs no rights; what is open now counts as found.
    pub fn start(max_edges: u32) -> Result<Self, Error> {
        let mut poller = Self {
            max_edges: max_edges as usize,
            namespaces: Namespaces::new()?,
            listers: HashMap::new(),
            services: Services::read(),
            cgroups: Cgroups::new(),
            links: Links::new(),
            connections: HashMap::new(),
            edges: HashMap::new(),
            owners: HashMap::new(),
            ephemeral: ephemeral_ports(),
            is_first: true,
            folded: 0,
            removed: 0,
            has_hidden_namespaces: false,
            has_hidden_programs: false,
        };
        poller.compare()?;
        poller.is_first = false;
        Ok(poller)
    }

    /// All edges since the start.
    pub fn read(&mut self) -> Result<Reading, Error> {
        self.compare()?;
        let mut edges: Vec<Edge> = self.edges.values().cloned().collect();
        self.links.mark(&mut edges);
        confirm(&mut edges);
        sort(&mut edges);
        let completeness = Completeness {
            folded: self.folded,
            removed_edges: self.removed,
            ..Completeness::default()
        };
        Ok(Reading { edges, completeness, missing: self.missing() })
    }

    /// What lists of sockets do not show.
    fn missing(&self) -> Vec<Missing> {
        let always = [
            (Part::ShortConnections, "short connections (sockets are listed once per interval)"),
            (Part::FailedConnects, "failed connects"),
            (Part::LastBytes, "the last bytes of connections"),
            (Part::UdpMessages, "bytes of UDP, and its unconnected sockets"),
        ];
        let namespaces = (Part::Namespaces, "other network namespaces (they need root)");
        let programs = (Part::Programs, "names of other users' programs (they need root)");
        let namespaces = self.has_hidden_namespaces.then_some(namespaces);
        let programs = self.has_hidden_programs.then_some(programs);
        let all = always.into_iter().chain(namespaces).chain(programs);
        all.map(|(part, reason)| Missing::new(part, reason)).collect()
    }

    /// CPU time of this process; there are no programs in the kernel.
    pub fn cost(&self) -> Cost {
        Cost { cpu_seconds: process_seconds(), programs: BTreeMap::new() }
    }

    fn compare(&mut self) -> Result<(), Error> {
        self.find_namespaces()?;
        let mut sockets = Vec::new();
        for (&netns, lister) in &self.listers {
            let listed = lister.sockets().map_err(|error| Error::new("sock_diag", error))?;
            sockets.extend(listed.into_iter().map(|socket| (netns, socket)));
        }
        // An inode can be used again after its socket was closed.
        let mut known: HashSet<u32> = sockets.iter().map(|(_, socket)| socket.inode).collect();
        // What was not accepted yet has none.
        known.remove(&0);
        self.owners.retain(|inode, _| known.contains(inode));
        if known.iter().any(|inode| !self.owners.contains_key(inode)) {
            self.has_hidden_programs |= owners::find(&mut self.owners);
            // Those of other users stay unknown.
            for inode in known {
                self.owners.entry(inode).or_default();
            }
        }
        let listeners: HashSet<(u32, u16)> = sockets
            .iter()
            .filter(|(_, socket)| socket.state == LISTEN)
            .map(|(netns, socket)| (*netns, socket.local_port))
            .collect();
        let reading =
            self.connections.values().map(|connection| connection.reading).max().unwrap_or(0) + 1;
        for (netns, socket) in &sockets {
            if socket.state != LISTEN && socket.peer_port != 0 {
                self.count(*netns, socket, &listeners, reading);
            }
        }
        let edges = &mut self.edges;
        self.connections.retain(|_, connection| {
            let is_open = connection.reading == reading;
            if !is_open && let Some(edge) = edges.get_mut(&connection.key) {
                edge.closed += 1;
                edge.active -= 1;
            }
            is_open
        });
        Ok(())
    }

    fn count(
        &mut self,
        netns: u32,
        socket: &Socket,
        listeners: &HashSet<(u32, u16)>,
        reading: u64,
    ) {
        let place = (netns, socket.cookie);
        let now = socket.tcp.unwrap_or_default();
        let has_owner = self.owners.get(&socket.inode).is_some_and(Owner::is_known);
        match self.connections.get(&place) {
            None => {
                // Of what was open before, only bytes from now on count.
                let first = if self.is_first { now } else { TcpCounts::default() };
                let connection = self.add(netns, socket, listeners, first, self.is_first);
                self.connections.insert(place, connection);
            }
            // When it was listed first, no program had accepted it.
            Some(known) if has_owner && known.lacks_owner() => {
                let Connection { was_found, first, counted, .. } = *known;
                take_connection(&mut self.edges, &known.key, was_found, first, counted);
                let connection = self.add(netns, socket, listeners, first, was_found);
                self.connections.insert(place, connection);
            }
            Some(_) => {}
        }
        let connection = self.connections.get_mut(&place).expect("it was just made");
        connection.reading = reading;
        let edge = self.edges.get_mut(&connection.key).expect("edges with connections stay");
        edge.last_seen_ns = since_epoch();
        let before = std::mem::replace(&mut connection.counted, now);
        edge.bytes_sent += now.bytes_sent.saturating_sub(before.bytes_sent);
        edge.bytes_received += now.bytes_received.saturating_sub(before.bytes_received);
        edge.packets_sent += now.packets_sent.saturating_sub(before.packets_sent);
        edge.packets_received += now.packets_received.saturating_sub(before.packets_received);
        edge.retransmits += now.retransmits.saturating_sub(before.retransmits);
        if now.rtt_us != 0 && now != before {
            let rtt =
                edge.rtt.get_or_insert(Rtt { count: 0, sum_us: 0, min_us: u64::MAX, max_us: 0 });
            rtt.count += 1;
            rtt.sum_us += now.rtt_us;
            rtt.min_us = rtt.min_us.min(now.rtt_us);
            rtt.max_us = rtt.max_us.max(now.rtt_us);
        }
    }

    /// Adds a connection to its edge.
    fn add(
        &mut self,
        netns: u32,
        socket: &Socket,
        listeners: &HashSet<(u32, u16)>,
        first: TcpCounts,
        was_found: bool,
    ) -> Connection {
        let (mut key, direction, pid) = self.identify(netns, socket, listeners);
        if !self.edges.contains_key(&key) && self.edges.len() >= self.max_edges {
            self.edge(&Key::other(), Direction::Guessed, true);
            let removed = remove_oldest_idle(&mut self.edges, (self.max_edges / 8).max(1));
            self.removed += removed;
            if removed == 0 {
                key = Key::other();
                self.folded += 1;
            }
        }
        let edge = self.edge(&key, direction, socket.tcp.is_some());
        edge.pid = pid.or(edge.pid);
        *(if was_found { &mut edge.found } else { &mut edge.opened }) += 1;
        edge.active += 1;
        Connection { key, was_found, first, counted: first, reading: 0 }
    }

    /// The edge of a connection, how its direction is known, and its process.
    fn identify(
        &self,
        netns: u32,
        socket: &Socket,
        listeners: &HashSet<(u32, u16)>,
    ) -> (Key, Direction, Option<u32>) {
        let is_ephemeral = |port: u16| (self.ephemeral.0..=self.ephemeral.1).contains(&port);
        let anywhere = |port: u16| listeners.iter().any(|listener| listener.1 == port);
        let (role, direction) =
            if socket.protocol == TCP && listeners.contains(&(netns, socket.local_port)) {
                (Role::Server, Direction::Listener)
            } else if socket.protocol == TCP && anywhere(socket.peer_port) {
                (Role::Client, Direction::Listener)
            } else if is_ephemeral(socket.peer_port) && !is_ephemeral(socket.local_port) {
                (Role::Server, Direction::Guessed)
            } else {
                (Role::Client, Direction::Guessed)
            };
        let owner = self.owners.get(&socket.inode).cloned().unwrap_or_default();
        let port = if role == Role::Client { socket.peer_port } else { socket.local_port };
        let key = Key {
            role: role as u8,
            protocol: socket.protocol,
            program: owner.program,
            local: socket.local,
            peer: socket.peer,
            port,
            netns,
            cgroup: socket.cgroup,
        };
        (key, direction, owner.pid)
    }

    fn edge(&mut self, key: &Key, direction: Direction, bytes_known: bool) -> &mut Edge {
        let is_udp = key.protocol == UDP;
        let service = self.services.name(key.port, is_udp).cloned();
        let cgroup = self.cgroups.path(key.cgroup);
        let edge = self.edges.entry(key.clone()).or_insert_with(|| Edge {
            role: match key.role {
                role if role == Role::Server as u8 => Role::Server,
                role if role == Role::Client as u8 => Role::Client,
                _ => Role::Other,
            },
            protocol: match key.protocol {
                UDP => Protocol::Udp,
                TCP => Protocol::Tcp,
                _ => Protocol::Any,
            },
            program: key.program.clone(),
            pid: None,
            local: key.local,
            peer: key.peer,
            port: key.port,
            service,
            netns: key.netns,
            cgroup,
            direction,
            found: 0,
            opened: 0,
            closed: 0,
            active: 0,
            failed: BTreeMap::new(),
            broken: BTreeMap::new(),
            bytes_known,
            linked: Some(false),
            bytes_sent: 0,
            bytes_received: 0,
            send_errors: BTreeMap::new(),
            receive_errors: BTreeMap::new(),
            packets_sent: 0,
            packets_received: 0,
            retransmits: 0,
            rtt: None,
            first_seen_ns: since_epoch(),
            last_seen_ns: since_epoch(),
        });
        edge.direction = edge.direction.max(direction);
        edge
    }

    /// A lister for each network namespace that may be entered.
    fn find_namespaces(&mut self) -> Result<(), Error> {
        let (all, mut has_hidden) = self.namespaces.all_and_hidden();
        self.listers.retain(|netns, _| all.contains_key(netns));
        for (netns, path) in all {
            if let Entry::Vacant(place) = self.listers.entry(netns) {
                match self.namespaces.inside(path.as_ref(), Lister::new) {
                    Ok(lister) => _ = place.insert(lister),
                    Err(error) if path.is_some() => {
                        has_hidden |= error.kind() == io::ErrorKind::PermissionDenied;
                    }
                    Err(error) => return Err(Error::new("sock_diag", error)),
                }
            }
        }
        self.has_hidden_namespaces |= has_hidden;
        Ok(())
    }
}

fn ephemeral_ports() -> (u16, u16) {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ports = text.split_whitespace().filter_map(|word| word.parse().ok());
    (ports.next().unwrap_or(32768), ports.next().unwrap_or(60999))
}

fn since_epoch() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    fn servers(poller: &mut Poller, port: u16) -> Vec<(bool, u64, u64, u64)> {
        let edges = poller.read().unwrap().edges.into_iter();
        let mine = edges.filter(|edge| edge.port == port && edge.role == Role::Server);
        mine.map(|edge| (edge.program.is_empty(), edge.found, edge.active, edge.bytes_received))
            .collect()
    }

    #[test]
    fn connection_that_is_accepted_later_gets_the_name_of_its_program() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        let mut poller = Poller::start(1000).unwrap();
        assert_eq!(servers(&mut poller, address.port()), [(true, 1, 1, 0)]);
        client.write_all(&[1; 300]).unwrap();
        let accepted = listener.accept().unwrap();
        assert_eq!(servers(&mut poller, address.port()), [(false, 1, 1, 300)]);
        drop((accepted, client));
    }

    #[test]
    fn connection_that_is_open_before_the_start_has_the_name_of_its_program() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let open = (TcpStream::connect(address).unwrap(), listener.accept().unwrap());
        let mut poller = Poller::start(1000).unwrap();
        let reading = poller.read().unwrap();
        let edges: Vec<_> = reading.edges.iter().filter(|e| e.port == address.port()).collect();
        assert_eq!(edges.len(), 2);
        assert!(edges.iter().all(|e| e.pid == Some(std::process::id()) && !e.program.is_empty()));
        drop(open);
    }
}
