// SPDX-License-Identifier: Apache-2.0
//! Which spans were within which, and how long: added up over all threads of one name.

use crate::log::Row;
use crate::spans::Open;
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
    pub total: u64,
}

/// A tree, whose first node is all that was logged and whose second level are threads.
#[derive(Debug)]
pub struct Nesting {
    pub labels: Vec<String>,
    pub nodes: Vec<Node>,
    threads: HashMap<String, usize>,
    places: HashMap<(usize, usize), usize>,
    /// Of spans that are open.
    open: HashMap<u64, usize>,
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
            threads: HashMap::new(),
            places: HashMap::new(),
            open: HashMap::new(),
            is_cut: false,
        }
    }

    pub fn begin(&mut self, row: &Row<'_>, open: &Open) {
        let within = open.parent.and_then(|parent| self.open.get(&parent).copied());
        let within = within.unwrap_or_else(|| self.thread(row.thread));
        let node = self.child(within, open.name);
        self.open.insert(open.id, node);
    }

    /// `duration` of those whose end is not known is `None`: they are not counted.
    pub fn end(&mut self, open: &Open, duration: Option<u64>) {
        let node = self.open.remove(&open.id);
        let node = node.and_then(|place| self.nodes.get_mut(place));
        if let (Some(node), Some(duration)) = (node, duration)
            && node.label == open.name
        {
            node.count += 1;
            node.total += duration;
        }
    }

    fn thread(&mut self, name: &str) -> usize {
        let label = match self.threads.get(name) {
            Some(label) => *label,
            None => {
                self.labels.push(name.to_owned());
                self.threads.insert(name.to_owned(), self.labels.len() - 1);
                self.labels.len() - 1
            }
        };
        self.child(0, label)
    }

    fn child(&mut self, within: usize, label: usize) -> usize {
        if let Some(place) = self.places.get(&(within, label)) {
            return *place;
        }
        if self.nodes.len() == MOST {
            self.is_cut = true;
            return within;
        }
        let place = self.nodes.len();
        self.nodes.push(Node { label, ..Node::default() });
        self.nodes[within].children.push(place);
        self.places.insert((within, label), place);
        place
    }

    /// The time that each node takes in a picture: its own, or that of its children where that is
    /// more: of threads, and of spans that never ended.
    pub fn widths(&self) -> Vec<u64> {
        let mut widths: Vec<u64> = self.nodes.iter().map(|node| node.total).collect();
        // Children stand behind their parents.
        for place in (0..self.nodes.len()).rev() {
            let children = self.nodes[place].children.iter().map(|child| widths[*child]).sum();
            widths[place] = widths[place].max(children);
        }
        widths
    }

    /// By span: nanoseconds that no span within it took.
    pub fn own(&self, spans: usize) -> Vec<u64> {
        let mut own = vec![0u64; spans];
        for node in self.nodes.iter().filter(|node| node.label < spans) {
            let children = node.children.iter().map(|child| self.nodes[*child].total);
            own[node.label] += node.total.saturating_sub(children.sum());
        }
        own
    }
}
