// SPDX-License-Identifier: Apache-2.0
//! The maps of edges and errors. There are two of each: programs count in one pair, while user space
//! reads and changes the other pair.

use crate::layout::{EdgeCounts, EdgeKey, ErrorKey};
use crate::loader::calls;
use crate::loader::pair::Pair;
use crate::loader::programs::{add_other, map_fd};
use crate::{Error, failed};
use aya::Ebpf;
use aya::maps::Array;

pub type Edges = Vec<(EdgeKey, EdgeCounts)>;
pub type Errors = Vec<(ErrorKey, u64)>;

/// Makes the programs count in these maps. When it returns, no program uses the other ones.
pub fn count_in(kernel: &mut Ebpf, pair: Pair) -> Result<(), Error> {
    let name = ".data.switch";
    let switch = kernel.map_mut(name).and_then(|map| Array::try_from(map).ok());
    let mut switch: Array<_, u32> = switch.ok_or_else(|| Error::new(name, "not in the object"))?;
    switch.set(0, u32::from(pair == Pair::Second), 0).map_err(|error| failed(name, &error))?;
    calls::wait_for_programs().map_err(|error| Error::new("membarrier", error))
}

pub fn read_edges(kernel: &Ebpf, pair: Pair) -> Result<Edges, Error> {
    calls::elements(map_fd(kernel, pair.edges())?, (EdgeKey::OTHER, EdgeCounts::EMPTY))
        .map_err(|error| Error::new("the map of edges", error))
}

pub fn read_errors(kernel: &Ebpf, pair: Pair) -> Result<Errors, Error> {
    calls::elements(map_fd(kernel, pair.errors())?, (NO_ERROR, 0))
        .map_err(|error| Error::new("the map of errors", error))
}

/// Empties maps that no program uses; edges that were never changed are left out.
pub fn take(kernel: &mut Ebpf, pair: Pair) -> Result<(Edges, Errors), Error> {
    let empty = (EdgeKey::OTHER, EdgeCounts::EMPTY);
    let mut edges = calls::take_elements(map_fd(kernel, pair.edges())?, empty)
        .map_err(|error| Error::new("the map of edges", error))?;
    add_other(kernel, pair.edges())?;
    edges.retain(|(_, counts)| !counts.is_empty() || counts.last_ns != 0);
    Ok((edges, take_errors(kernel, pair)?))
}

pub fn take_errors(kernel: &Ebpf, pair: Pair) -> Result<Errors, Error> {
    calls::take_elements(map_fd(kernel, pair.errors())?, (NO_ERROR, 0))
        .map_err(|error| Error::new("the map of errors", error))
}

const OPEN: &str = "open_connections";

/// Connections that `drain` found open.
pub fn open(kernel: &Ebpf) -> Result<u64, Error> {
    let map = kernel.map(OPEN).and_then(|map| Array::try_from(map).ok());
    let map: Array<_, u64> = map.ok_or_else(|| Error::new(OPEN, "not in the object"))?;
    map.get(&0, 0).map_err(|error| failed(OPEN, &error))
}

pub fn set_open(kernel: &mut Ebpf, number: u64) -> Result<(), Error> {
    let map = kernel.map_mut(OPEN).and_then(|map| Array::try_from(map).ok());
    let mut map: Array<_, u64> = map.ok_or_else(|| Error::new(OPEN, "not in the object"))?;
    map.set(0, number, 0).map_err(|error| failed(OPEN, &error))
}

const NO_ERROR: ErrorKey = ErrorKey { edge: EdgeKey::OTHER, kind: 0, number: 0 };
