// SPDX-License-Identifier: Apache-2.0
//! Which spans were within which, and how long: added up over all threads of one name.

use crate::reader::log::Row;
use crate::reader::spans::{Id, Open};
use std::collections::HashMap;

/// Ways to a span that are distinguished. What is called on further ones is part of its callers.
const MOST: usize = 1 << 16;

/// One way to a span: a name, within a name, within ...
#[derive(Debug, Default)]
pub struct Node {
    /// Its index in [`CallTree::labels`].
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
    /// `None` where its way is not distinguished.
    node: Option<usize>,
    /// Nanoseconds of spans within it.
    within: f64,
}

/// A tree, whose first node is all that was logged and whose second level are threads.
#[derive(Debug)]
pub struct CallTree {
    pub labels: Vec<String>,
    pub nodes: Vec<Node>,
    /// By span: nanoseconds that no span within it took, of all ways.
    pub own: Vec<f64>,
    threads: HashMap<String, usize>,
    indices: HashMap<(usize, usize), usize>,
    open: HashMap<Id, Begun>,
    /// Whether there were more ways than are distinguished.
    pub is_cut: bool,
}

impl CallTree {
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
            indices: HashMap::new(),
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
        if let Some(index) = node {
            self.nodes[index].count += 1;
            self.nodes[index].total += duration;
        }
    }

    fn thread(&mut self, name: &str) -> Option<usize> {
        if let Some(index) = self.threads.get(name) {
            return Some(*index);
        }
        let index = self.add(0, self.labels.len())?;
        self.labels.push(name.to_owned());
        self.threads.insert(name.to_owned(), index);
        Some(index)
    }

    fn child(&mut self, within: usize, label: usize) -> Option<usize> {
        if let Some(index) = self.indices.get(&(within, label)) {
            return Some(*index);
        }
        let index = self.add(within, label)?;
        self.indices.insert((within, label), index);
        Some(index)
    }

    fn add(&mut self, within: usize, label: usize) -> Option<usize> {
        let index = self.nodes.len();
        if index == MOST {
            self.is_cut = true;
            return None;
        }
        self.nodes.push(Node { label, ..Node::default() });
        self.nodes[within].children.push(index);
        Some(index)
    }

    /// The time that each node takes in a picture; that of threads is their children's.
    pub fn widths(&self) -> Vec<f64> {
        let mut widths: Vec<f64> = self.nodes.iter().map(|node| node.width).collect();
        // Children stand behind their parents.
        for index in (0..self.nodes.len()).rev() {
            let children =
                self.nodes[index].children.iter().map(|child| widths[*child]).sum::<f64>();
            widths[index] = match index {
                0 => widths[0] + children,
                _ => widths[index].max(children),
            };
        }
        widths
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::log::What;
    use crate::reader::owned_payload::OwnedPayload;
    use tare_log_file::Payload;

    fn row(thread: &str) -> Row<'_> {
        let what = What::Event { id: 0, channel: "", payload: Payload::Number(0) };
        Row::of_thread(thread, what)
    }

    fn span(ticks: u64, parent: Option<u64>, name: usize) -> Open {
        let id = |ticks| Id { process: 0, ring: 0, ticks, nth: 0 };
        let (time_ns, value) = (None, OwnedPayload::Number(0));
        Open { id: id(ticks), parent: parent.map(id), root: id(1), name, time_ns, value }
    }

    fn call_tree() -> CallTree {
        CallTree::new(&["a", "b", "c"].map(str::to_owned))
    }

    /// Spans one within the other, the innermost with the last name, and how long each took.
    fn add(call_tree: &mut CallTree, thread: &str, spans: &[(usize, Option<u32>)]) {
        let parents = [None].into_iter().chain((1..).map(Some));
        let all: Vec<_> = (1..)
            .zip(parents)
            .zip(spans)
            .map(|((id, parent), (name, duration))| (span(id, parent, *name), *duration))
            .collect();
        all.iter().for_each(|(open, _)| call_tree.begin(&row(thread), open));
        all.iter().rev().for_each(|(open, duration)| call_tree.end(open, duration.map(f64::from)));
    }

    #[test]
    fn own_time_is_of_spans_that_ended() {
        let mut call_tree = call_tree();
        add(&mut call_tree, "", &[(0, Some(1))]);
        add(&mut call_tree, "", &[(0, None), (1, Some(10))]);
        add(&mut call_tree, "", &[(0, Some(30)), (1, None), (2, Some(20))]);
        assert_eq!(call_tree.own, [11.0, 10.0, 20.0]);
        assert_eq!(call_tree.widths()[0], 41.0);
    }

    #[test]
    fn ways_that_are_not_distinguished_are_counted_too() {
        let mut call_tree = call_tree();
        let threads = MOST as u64 / 2;
        for thread in 0..threads {
            // A span within its like is not counted as that.
            let spans = [(0, Some(10)), (0, Some(6)), (1, Some(5))];
            add(&mut call_tree, &thread.to_string(), &spans);
        }
        assert!(call_tree.is_cut);
        let threads = threads as f64;
        assert_eq!(call_tree.own, [5.0 * threads, 5.0 * threads, 0.0]);
        assert_eq!(call_tree.widths()[0], 10.0 * threads);
        assert!(call_tree.nodes.iter().all(|node| node.count <= 1 && node.total <= 10.0 * threads));
    }
}
