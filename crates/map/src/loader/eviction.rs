// SPDX-License-Identifier: Apache-2.0
//! Room for new edges and errors in the kernel's maps. Edges that are idle leave the map: their counts
//! are added to the edge `other`.
//!
//! A program may add to an edge at the moment in which it is removed. So programs count in the second
//! maps meanwhile, and what they counted there is kept in user space until the next time.

use crate::clock::process_seconds;
use crate::layout::{ADDED_EDGES, ADDED_ERRORS, EdgeCounts, EdgeKey, ErrorKey, FOLDED};
use crate::loader::double_buffer::MapBuffer;
use crate::loader::losses;
use crate::loader::maps::{count_in, read_edges, take, take_errors};
use crate::loader::options::map_size;
use crate::loader::user_space_counts::{EdgeTotals, oldest_idle};
use crate::{Error, failed};
use aya::Ebpf;
use aya::maps::{Array, HashMap as BpfHashMap, MapData};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Making room takes at most this part of a core.
const SHARE_OF_A_CORE: f64 = 200.0;

/// Errors that there is room for in the kernel.
const MAX_ERRORS: u64 = 4096;

/// When room is made in the kernel's maps, and for how many edges.
pub struct Eviction {
    max_edges: u32,
    next: Instant,
    /// Updates of the edge `other` until the last time.
    folded: u64,
}

impl Eviction {
    pub fn new(max_edges: u32) -> Self {
        Self { max_edges, next: Instant::now(), folded: 0 }
    }

    /// Makes room if there is little, and if it was not made just before.
    pub fn run(&mut self, kernel: &mut Ebpf, totals: &mut EdgeTotals) -> Result<(), Error> {
        if Instant::now() < self.next {
            return Ok(());
        }
        let folded = losses::read(kernel)?[FOLDED];
        let has_new_folded = folded != self.folded;
        self.folded = folded;
        let additions = additions(kernel)?;
        let [edges, errors] = [ADDED_EDGES, ADDED_ERRORS].map(|what| additions.get(&what, 0));
        let edges = edges.map_err(|error| failed(ADDITIONS, &error))?;
        let errors = errors.map_err(|error| failed(ADDITIONS, &error))?;
        let is_full = edges >= u64::from(map_size(self.max_edges)) && has_new_folded;
        let has_many_errors = errors > MAX_ERRORS / 2;
        if !is_full && edges <= u64::from(self.max_edges) && !has_many_errors {
            return Ok(());
        }
        let begin = process_seconds();
        let most = if is_full { self.most_if_full() } else { self.max_edges as usize };
        let now = read_edges(kernel, MapBuffer::First)?;
        let now = now.iter().map(|(key, counts)| (key, counts));
        if has_many_errors || !to_evict(now, totals, most).is_empty() {
            count_in(kernel, MapBuffer::Second)?;
            remove(kernel, totals, most)?;
            count_in(kernel, MapBuffer::First)?;
            let (edges, errors) = take(kernel, MapBuffer::Second)?;
            totals.keep(edges, errors);
        }
        let spent = (process_seconds() - begin) * SHARE_OF_A_CORE;
        self.next = Instant::now() + Duration::from_secs_f64(spent);
        Ok(())
    }

    /// Edges for which a reading has no room: with those that are kept in user space, there may be some
    /// more than in the kernel.
    pub fn surplus(&self, edges: &[(EdgeKey, EdgeCounts)], totals: &EdgeTotals) -> Vec<EdgeKey> {
        let all = edges.iter().map(|(key, counts)| (key, counts));
        to_evict(all, totals, self.max_edges as usize)
    }

    /// The number of edges that may stay if there was no room for others.
    fn most_if_full(&self) -> usize {
        map_size(self.max_edges) as usize - (self.max_edges as usize / 8).max(1)
    }
}

const ADDITIONS: &str = "additions";

fn additions(kernel: &mut Ebpf) -> Result<Array<&mut MapData, u64>, Error> {
    kernel
        .map_mut(ADDITIONS)
        .and_then(|map| Array::try_from(map).ok())
        .ok_or_else(|| Error::new(ADDITIONS, "not in the object"))
}

/// The edges that leave, so that at most so many stay beside the edge `other`.
fn to_evict<'edges>(
    edges: impl ExactSizeIterator<Item = (&'edges EdgeKey, &'edges EdgeCounts)>,
    totals: &EdgeTotals,
    most: usize,
) -> Vec<EdgeKey> {
    let number = edges.len().saturating_sub(most + 1);
    oldest_idle(edges, number, |key, counts| {
        counts.active() - totals.unseen_ends.of(key) as i64 != 0
    })
}

/// Removes edges, and takes all errors, from the first maps, which no program uses.
fn remove(kernel: &mut Ebpf, totals: &mut EdgeTotals, most: usize) -> Result<(), Error> {
    let mut edges: HashMap<_, _> = read_edges(kernel, MapBuffer::First)?.into_iter().collect();
    let in_kernel: HashSet<_> = edges.keys().copied().collect();
    let kept = totals.take_kept();
    for (key, counts) in &kept {
        edges.entry(*key).or_insert(EdgeCounts::EMPTY).add(counts);
    }
    let evicted = to_evict(edges.iter(), totals, most);
    let errors = take_errors(kernel, MapBuffer::First)?;
    let mut map: BpfHashMap<_, EdgeKey, EdgeCounts> = kernel
        .map_mut(MapBuffer::First.edges())
        .and_then(|map| BpfHashMap::try_from(map).ok())
        .ok_or_else(|| Error::new(MapBuffer::First.edges(), "not in the object"))?;
    let mut other = edges.remove(&EdgeKey::OTHER).unwrap_or(EdgeCounts::EMPTY);
    for key in &evicted {
        if in_kernel.contains(key) {
            map.remove(key).map_err(|error| failed(MapBuffer::First.edges(), &error))?;
        }
        other.add(&edges.remove(key).expect("it was just found"));
        totals.unseen_ends.fold(key);
    }
    totals.removed += evicted.len() as u64;
    map.insert(EdgeKey::OTHER, other, 0)
        .map_err(|error| failed(MapBuffer::First.edges(), &error))?;
    let mut without_room = Vec::new();
    for (key, counts) in kept {
        if let Some(sum) = edges.get(&key)
            && map.insert(key, sum, 0).is_err()
        {
            without_room.push((key, counts));
        }
    }
    totals.keep(without_room, Vec::new());
    totals.keep(Vec::new(), errors);
    totals.fold_errors(|key: &ErrorKey| !edges.contains_key(&key.edge));
    // Programs may have added elements to the second maps meanwhile: then room is made earlier.
    let mut additions = additions(kernel)?;
    for (what, number) in [(ADDED_EDGES, edges.len() as u64), (ADDED_ERRORS, 0)] {
        additions.set(what, number, 0).map_err(|error| failed(ADDITIONS, &error))?;
    }
    Ok(())
}
