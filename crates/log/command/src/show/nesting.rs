// SPDX-License-Identifier: Apache-2.0
//! Which spans were within which, and how long: added up over all threads of one name.

use crate::reader::log::Row;
use crate::reader::spans::{Id, Open};
use std::collections::HashMap;

/// Ways to a span that are told apart. What is called on further ones is part of its callers.
const MOST: usize = 1 << 16;

/// One way to a span: a name, within a name, within ...
#[derive(Debug, Default)]
pub struct Node {
    /// Its place in [`Nesting::labels`].
    pub label: usize,
    /// In the order in which they were first seen.
    pub children: Vec<usize>,
    pub count: u64,
    /// Nanoseconds of those that ended.
    pub total: f64,
    /// Of all; of one that did not end, those of spans within it. The first node has those of
    /// spans that are in no other.
    width: f64,
}

/// A span that has begun.
#[derive(Debug)]
struct Begun {
    /// `None` where its way is not told apart.
    node: Option<usize>,
    /// Nanoseconds of spans within it.
    within: f64,
}

/// A tree, whose first node is all that was logged and whose second level are threads.
#[derive(Debug)]
pub struct Nesting {
    pub labels: Vec<String>,
    pub nodes: Vec<Node>,
    /// By span: nanoseconds that no span within it took, of all ways.
    pub own: Vec<f64>,
    threads: HashMap<String, usize>,
    places: HashMap<(usize, usize), usize>,
    open: HashMap<Id, Begun>,
    /// Whether there were more ways than are told apart.
    pub is_cut: bool,
}

impl Nesting {
    /// Of spans with these names.
    pub fn new(names: &[String]) -> Self {
        let mut labels = names.to_vec();
        labels.push("all".to_owned());
        let root = Node { label: names.len(), ..Node::default() };
        Self {
            labels,
            nodes: vec![root],
            own: vec![0.0; names.len()],
            threads: HashMap::new(),
            places: HashMap::new(),
            open: HashMap::new(),
            is_cut: false,
        }
    }

    pub fn begin(&mut self, row: &Row<'_>, open: &Open) {
        let around = match open.parent {
            Some(parent) => self.open.get(&parent).and_then(|around| around.node),
            None => self.thread(row.thread),
        };
        let node = around.and_then(|around| self.child(around, open.name));
        self.open.insert(open.id, Begun { node, within: 0.0 });
    }

    /// `duration` of those whose end is not known is `None`: they are not counted.
    pub fn end(&mut self, open: &Open, duration: Option<f64>) {
        let Some(Begun { node, within }) = self.open.remove(&open.id) else { return };
        let known = duration.unwrap_or(within);
        if let Some(around) = open.parent.and_then(|parent| self.open.get_mut(&parent)) {
            around.within += known;
        }
        if node.is_some() || open.parent.is_none() {
            self.nodes[node.unwrap_or(0)].width += known;
        }
        let Some(duration) = duration else { return };
        self.own[open.name] += (duration - within).max(0.0);
        if let Some(place) = node {
            self.nodes[place].count += 1;
            self.nodes[place].total += duration;
        }
    }

    fn thread(&mut self, name: &str) -> Option<usize> {
        if let Some(place) = self.threads.get(name) {
            return Some(*place);
        }
        let place = self.add(0, self.labels.len())?;
        self.labels.push(name.to_owned());
        self.threads.insert(name.to_owned(), place);
        Some(place)
    }

    fn child(&mut self, within: usize, label: usize) -> Option<usize> {
        if let Some(place) = self.places.get(&(within, label)) {
            return Some(*place);
        }
        let place = self.add(within, label)?;
        self.places.insert((within, label), place);
        Some(place)
    }

    fn add(&mut self, within: usize, label: usize) -> Option<usize> {
        let place = self.nodes.len();
        if place == MOST {
            self.is_cut = true;
            return None;
        }
        self.nodes.push(Node { label, ..Node::default() });
        self.nodes[within].children.push(place);
        Some(place)
    }

    /// The time that each node takes in a picture; that of threads is their children's.
    pub fn widths(&self) -> Vec<f64> {
        let mut widths: Vec<f64> = self.nodes.iter().map(|node| node.width).collect();
        // Children stand behind their parents.
        for place in (0..self.nodes.len()).rev() {
            let children =
                self.nodes[place].children.iter().map(|child| widths[*child]).sum::<f64>();
            widths[place] = match place {
                0 => widths[0] + children,
                _ => widths[place].max(children),
            };
        }
        widths
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::log::What;
    use crate::reader::value::Value;
    use tare_log_file::Payload;

    fn row(thread: &str) -> Row<'_> {
        let what = What::Event { id: 0, channel: "", payload: Payload::Number(0) };
        Row {
            time_ns: None,
            ticks: 0,
            process: 0,
            ring: 0,
            is_carried: false,
            pid: 0,
            tid: 0,
            thread,
            what,
        }
    }

    fn span(ticks: u64, parent: Option<u64>, name: usize) -> Open {
        let id = |ticks| Id { process: 0, ring: 0, ticks, nth: 0 };
        let (time_ns, value) = (None, Value::Number(0));
        Open { id: id(ticks), parent: parent.map(id), root: id(1), name, time_ns, value }
    }

    fn nesting() -> Nesting {
        Nesting::new(&["a", "b", "c"].map(str::to_owned))
    }

    /// Spans one within the other, the innermost with the last name, and how long each took.
    fn add(nesting: &mut Nesting, thread: &str, spans: &[(usize, Option<u32>)]) {
        let parents = [None].into_iter().chain((1..).map(Some));
        let all: Vec<_> = (1..)
            .zip(parents)
            .zip(spans)
            .map(|((id, parent), (name, duration))| (span(id, parent, *name), *duration))
            .collect();
        all.iter().for_each(|(open, _)| nesting.begin(&row(thread), open));
        all.iter().rev().for_each(|(open, duration)| nesting.end(open, duration.map(f64::from)));
    }

    #[test]
    fn own_time_is_of_spans_that_ended() {
        let mut nesting = nesting();
        add(&mut nesting, "", &[(0, Some(1))]);
        add(&mut nesting, "", &[(0, None), (1, Some(10))]);
        add(&mut nesting, "", &[(0, Some(30)), (1, None), (2, Some(20))]);
        assert_eq!(nesting.own, [11.0, 10.0, 20.0]);
        assert_eq!(nesting.widths()[0], 41.0);
    }

    #[test]
    fn ways_that_are_not_told_apart_are_counted_all_the_same() {
        let mut nesting = nesting();
        let threads = MOST as u64 / 2;
        for thread in 0..threads {
            // A span within its like is not counted as that.
            let spans = [(0, Some(10)), (0, Some(6)), (1, Some(5))];
            add(&mut nesting, &thread.to_string(), &spans);
        }
        assert!(nesting.is_cut);
        let threads = threads as f64;
        assert_eq!(nesting.own, [5.0 * threads, 5.0 * threads, 0.0]);
        assert_eq!(nesting.widths()[0], 10.0 * threads);
        assert!(nesting.nodes.iter().all(|node| node.count <= 1 && node.total <= 10.0 * threads));
    }
}
