// SPDX-License-Identifier: Apache-2.0
//! What the view shows of each reading: rates, order, and which edges are new or gone.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tare_map::{Edge, Protocol, Reading, Role};

/// How long an edge that is new or gone is highlighted.
const HIGHLIGHT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Program,
    Local,
    Peer,
    Service,
    Active,
    Opened,
    Failed,
    Sent,
    Received,
    Rtt,
}

pub const COLUMNS: [Column; 10] = [
    Column::Program,
    Column::Local,
    Column::Peer,
    Column::Service,
    Column::Active,
    Column::Opened,
    Column::Failed,
    Column::Sent,
    Column::Received,
    Column::Rtt,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    New,
    Known,
    Gone,
    /// It was gone before the time of highlighting.
    Idle,
}

#[derive(Clone, Debug)]
pub struct Row {
    pub edge: Edge,
    pub state: State,
    pub opened_per_second: f64,
    pub sent_per_second: f64,
    pub received_per_second: f64,
}

type Key = (Role, Protocol, String, IpAddr, IpAddr, u16, u32, String);

struct History {
    edge: Edge,
    /// None for what was there at the first reading.
    appeared: Option<Instant>,
    changed: Instant,
    rates: [f64; 3],
}

/// All edges, in the order and with the search that the user asks for.
pub struct Table {
    histories: HashMap<Key, History>,
    read_at: Option<Instant>,
    pub sorted_by: Column,
    pub is_descending: bool,
    pub search: String,
}

impl Table {
    pub fn new() -> Self {
        Self {
            histories: HashMap::new(),
            read_at: None,
            sorted_by: Column::Sent,
            is_descending: true,
            search: String::new(),
        }
    }

    pub fn update(&mut self, reading: Reading, now: Instant) {
        let before = self.read_at.replace(now);
        let seconds = before.map_or(0.0, |before| (now - before).as_secs_f64());
        let mut read = HashSet::new();
        for edge in reading.edges {
            let key = key(&edge);
            read.insert(key.clone());
            let Some(history) = self.histories.get_mut(&key) else {
                let rates = if before.is_some() {
                    rates([edge.opened, edge.bytes_sent, edge.bytes_received], [0; 3], seconds)
                } else {
                    [0.0; 3]
                };
                let appeared = before.map(|_| now);
                self.histories.insert(key, History { edge, appeared, changed: now, rates });
                continue;
            };
            let numbers = |edge: &Edge| [edge.opened, edge.bytes_sent, edge.bytes_received];
            history.rates = rates(numbers(&edge), numbers(&history.edge), seconds);
            if edge.last_seen_ns != history.edge.last_seen_ns || edge.active != history.edge.active
            {
                history.changed = now;
            }
            history.edge = edge;
        }
        // Its connections moved to the edge of another program.
        self.histories.retain(|key, _| read.contains(key));
    }

    pub fn sort_by(&mut self, column: Column) {
        self.sorted_by = column;
        self.is_descending =
            !matches!(column, Column::Program | Column::Local | Column::Peer | Column::Service);
    }

    pub fn rows(&self, now: Instant) -> Vec<Row> {
        let search = self.search.to_lowercase();
        let mut rows: Vec<Row> = self
            .histories
            .values()
            .filter(|history| search.is_empty() || contains(&history.edge, &search))
            .map(|history| Row {
                edge: history.edge.clone(),
                state: state(history, now),
                opened_per_second: history.rates[0],
                sent_per_second: history.rates[1],
                received_per_second: history.rates[2],
            })
            .collect();
        rows.sort_by(|first, second| {
            let order = self.compare(first, second);
            let order = if self.is_descending { order.reverse() } else { order };
            order.then_with(|| place(&first.edge).cmp(&place(&second.edge)))
        });
        rows
    }

    fn compare(&self, first: &Row, second: &Row) -> Ordering {
        let failed = |row: &Row| row.edge.failed.values().sum::<u64>();
        let rtt = |row: &Row| row.edge.rtt.map(|rtt| rtt.sum_us / rtt.count);
        match self.sorted_by {
            Column::Program => first.edge.program.cmp(&second.edge.program),
            Column::Local => first.edge.local.cmp(&second.edge.local),
            Column::Peer => first.edge.peer.cmp(&second.edge.peer),
            Column::Service => first.edge.port.cmp(&second.edge.port),
            Column::Active => first.edge.active.cmp(&second.edge.active),
            Column::Opened => first.opened_per_second.total_cmp(&second.opened_per_second),
            Column::Failed => failed(first).cmp(&failed(second)),
            Column::Sent => first.sent_per_second.total_cmp(&second.sent_per_second),
            Column::Received => first.received_per_second.total_cmp(&second.received_per_second),
            Column::Rtt => rtt(first).cmp(&rtt(second)),
        }
    }
}

fn key(edge: &Edge) -> Key {
    (
        edge.role,
        edge.protocol,
        edge.program.clone(),
        edge.local,
        edge.peer,
        edge.port,
        edge.netns,
        edge.cgroup.clone(),
    )
}

/// Edges that are equal in the column have a fixed order.
fn place(edge: &Edge) -> (&str, IpAddr, IpAddr, u16, u8, u32) {
    (&edge.program, edge.local, edge.peer, edge.port, edge.role as u8, edge.netns)
}

/// Per second; a connection that moved to another edge may take something away.
fn rates(now: [u64; 3], before: [u64; 3], seconds: f64) -> [f64; 3] {
    std::array::from_fn(|number| {
        let difference = now[number].saturating_sub(before[number]);
        if seconds > 0.0 { difference as f64 / seconds } else { 0.0 }
    })
}

fn state(history: &History, now: Instant) -> State {
    let quiet = now.saturating_duration_since(history.changed);
    let is_alive =
        history.edge.active > 0 || history.edge.protocol == Protocol::Udp && quiet < HIGHLIGHT;
    let is_new = |at: Instant| now.saturating_duration_since(at) < HIGHLIGHT;
    match history.appeared {
        Some(at) if is_new(at) => State::New,
        _ if is_alive => State::Known,
        _ if quiet < HIGHLIGHT * 2 => State::Gone,
        _ => State::Idle,
    }
}

fn contains(edge: &Edge, search: &str) -> bool {
    let service = edge.service.as_deref().unwrap_or_default();
    let texts = [edge.program.as_str(), service, edge.cgroup.as_str()];
    texts.iter().any(|text| text.to_lowercase().contains(search))
        || [edge.local.to_string(), edge.peer.to_string(), edge.port.to_string()]
            .iter()
            .any(|text| text.contains(search))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::output::graph::tests::{edge, reading};

    fn programs(table: &Table, now: Instant) -> Vec<(String, State)> {
        let rows = table.rows(now);
        rows.into_iter().map(|row| (row.edge.program, row.state)).collect()
    }

    #[test]
    fn new_edges_and_gone_edges_are_highlighted_for_a_time() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut table = Table::new();
        table.sort_by(Column::Program);
        let old = edge(Role::Client, "a", "10.0.0.1", "10.0.0.2");
        let mut new = edge(Role::Client, "b", "10.0.0.1", "10.0.0.2");
        table.update(reading(vec![old.clone()]), begin);
        table.update(reading(vec![old.clone(), new.clone()]), at(1));
        let states = |table: &Table, now| {
            programs(table, now).into_iter().map(|(_, state)| state).collect::<Vec<_>>()
        };
        assert_eq!(states(&table, at(1)), [State::Known, State::New]);
        assert_eq!(states(&table, at(6)), [State::Known, State::Known]);
        (new.active, new.closed) = (0, 1);
        table.update(reading(vec![old, new]), at(7));
        assert_eq!(states(&table, at(7)), [State::Known, State::Gone]);
        assert_eq!(states(&table, at(17)), [State::Known, State::Idle]);
    }

    #[test]
    fn an_edge_without_connections_disappears_with_its_last_reading() {
        let begin = Instant::now();
        let mut table = Table::new();
        let moved = edge(Role::Server, "inetd", "10.0.0.2", "10.0.0.1");
        table.update(reading(vec![moved]), begin);
        let owned = edge(Role::Server, "ftpd", "10.0.0.2", "10.0.0.1");
        table.update(reading(vec![owned]), begin + Duration::from_secs(1));
        let rows = table.rows(begin + Duration::from_secs(1));
        let names: Vec<_> = rows.iter().map(|row| row.edge.program.as_str()).collect();
        assert_eq!(names, ["ftpd"]);
    }

    #[test]
    fn rates_are_differences_per_second() {
        let begin = Instant::now();
        let mut table = Table::new();
        let mut growing = edge(Role::Client, "a", "10.0.0.1", "10.0.0.2");
        table.update(reading(vec![growing.clone()]), begin);
        assert_eq!(table.rows(begin)[0].sent_per_second, 0.0);
        growing.bytes_sent += 3000;
        growing.opened += 4;
        table.update(reading(vec![growing]), begin + Duration::from_secs(2));
        let row = &table.rows(begin)[0];
        assert_eq!((row.sent_per_second, row.opened_per_second), (1500.0, 2.0));
    }

    #[test]
    fn rows_are_sorted_and_searched() {
        let now = Instant::now();
        let mut table = Table::new();
        let mut busy = edge(Role::Client, "busy", "10.0.0.1", "10.0.0.2");
        busy.active = 9;
        let plain = edge(Role::Server, "Nginx", "10.0.0.3", "10.0.0.4");
        table.update(reading(vec![plain, busy]), now);
        let names = |table: &Table| -> Vec<String> {
            programs(table, now).into_iter().map(|(name, _)| name).collect()
        };
        table.sort_by(Column::Active);
        assert_eq!(names(&table), ["busy", "Nginx"]);
        table.is_descending = false;
        assert_eq!(names(&table), ["Nginx", "busy"]);
        for (search, found) in [("ngi", 1), ("10.0.0.2", 1), ("http", 2), ("80", 2), ("none", 0)] {
            search.clone_into(&mut table.search);
            assert_eq!(names(&table).len(), found, "{search}");
        }
    }
}
