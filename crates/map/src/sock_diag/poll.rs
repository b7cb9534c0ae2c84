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
use crate::sock_diag::sockets::{LISTEN, Lister, Socket, TcpCounts};

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};
use tare_command::processes;

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
    /// Whether network namespaces, or descriptors of processes, could not be read.
    has_hidden_namespaces: bool,
    has_hidden_programs: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    role: u8,
    protocol: u8,
    program: String,
    local: IpAddr,
    peer: IpAddr,
    port: u16,
    netns: u32,
    cgroup: u64,
}

impl Key {
    /// What does not fit is folded together.
    fn other() -> Self {
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

struct Connection {
    key: Key,
    counted: TcpCounts,
    reading: u64,
}

#[derive(Clone, Default)]
struct Owner {
    pid: Option<u32>,
    program: String,
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
        let completeness = Completeness { folded: self.folded, ..Completeness::default() };
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
            self.find_owners();
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
        if !self.connections.contains_key(&place) {
            let (mut key, direction, pid) = self.identify(netns, socket, listeners);
            if self.edges.len() >= self.max_edges && !self.edges.contains_key(&key) {
                key = Key::other();
                self.folded += 1;
            }
            let edge = self.edge(&key, direction, socket.tcp.is_some());
            edge.pid = pid.or(edge.pid);
            // Of what was open before, only bytes from now on count.
            let counted = if self.is_first { now } else { TcpCounts::default() };
            let edge = self.edges.get_mut(&key).expect("it was just made");
            if self.is_first {
                edge.found += 1;
            } else {
                edge.opened += 1;
            }
            edge.active += 1;
            self.connections.insert(place, Connection { key, counted, reading });
        }
        let connection = self.connections.get_mut(&place).expect("it was just made");
        connection.reading = reading;
        let edge = self.edges.get_mut(&connection.key).expect("edges stay");
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

    /// Who has the sockets, from the descriptors of all processes that may be read.
    fn find_owners(&mut self) {
        for pid in processes::all() {
            let mut program = None;
            let descriptors = processes::descriptors(pid);
            self.has_hidden_programs |= descriptors
                .as_ref()
                .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
            for path in descriptors.into_iter().flatten() {
                let Ok(target) = fs::read_link(&path) else { continue };
                let Some(inode) = socket_inode(&target.to_string_lossy()) else { continue };
                let program = program.get_or_insert_with(|| {
                    // Of the process, or of the thread that has the descriptors.
                    let folder = path.ancestors().nth(2).unwrap_or(&path);
                    let path = fs::read_link(folder.join("exe")).unwrap_or_default();
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    name.trim_end_matches(" (deleted)").to_owned()
                });
                self.owners.insert(inode, Owner { pid: Some(pid), program: program.clone() });
            }
        }
    }
}

fn socket_inode(target: &str) -> Option<u32> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

fn ephemeral_ports() -> (u16, u16) {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ports = text.split_whitespace().filter_map(|word| word.parse().ok());
    (ports.next().unwrap_or(32768), ports.next().unwrap_or(60999))
}

fn since_epoch() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i64
}
