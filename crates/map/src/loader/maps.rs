// SPDX-License-Identifier: Apache-2.0
//! The maps of edges and errors. There are two of each: programs count in one pair, while user space
//! reads and changes the other pair.

use crate::layout::{EdgeCounts, EdgeKey, ErrorKey};
use crate::loader::bpf_calls;
use crate::loader::double_buffer::MapBuffer;
use crate::loader::programs::{add_other, map_fd};
use crate::{Error, failed};
use aya::Ebpf;
use aya::maps::Array;

pub type Edges = Vec<(EdgeKey, EdgeCounts)>;
pub type Errors = Vec<(ErrorKey, u64)>;

/// Makes the programs count in these maps. When it returns, no program uses the other ones.
pub fn count_in(kernel: &mut Ebpf, buffer: MapBuffer) -> Result<(), Error> {
    let name = ".data.switch";
    let switch = kernel.map_mut(name).and_then(|map| Array::try_from(map).ok());
    let mut switch: Array<_, u32> = switch.ok_or_else(|| Error::new(name, "not in the object"))?;
    switch
        .set(0, u32::from(buffer == MapBuffer::Second), 0)
        .map_err(|error| failed(name, &error))?;
    bpf_calls::wait_for_programs().map_err(|error| Error::new("membarrier", error))
}

pub fn read_edges(kernel: &Ebpf, buffer: MapBuffer) -> Result<Edges, Error> {
    bpf_calls::elements(map_fd(kernel, buffer.edges())?, (EdgeKey::OTHER, EdgeCounts::EMPTY))
        .map_err(|error| Error::new("the map of edges", error))
}

pub fn read_errors(kernel: &Ebpf, buffer: MapBuffer) -> Result<Errors, Error> {
    bpf_calls::elements(map_fd(kernel, buffer.errors())?, (NO_ERROR, 0))
        .map_err(|error| Error::new("the map of errors", error))
}

/// Empties maps that no program uses; edges that were never changed are left out.
pub fn take(kernel: &mut Ebpf, buffer: MapBuffer) -> Result<(Edges, Errors), Error> {
    let empty = (EdgeKey::OTHER, EdgeCounts::EMPTY);
    let mut edges = bpf_calls::take_elements(map_fd(kernel, buffer.edges())?, empty)
        .map_err(|error| Error::new("the map of edges", error))?;
    add_other(kernel, buffer.edges())?;
    edges.retain(|(_, counts)| !counts.is_empty() || counts.last_ns != 0);
    Ok((edges, take_errors(kernel, buffer)?))
}

pub fn take_errors(kernel: &Ebpf, buffer: MapBuffer) -> Result<Errors, Error> {
    bpf_calls::take_elements(map_fd(kernel, buffer.errors())?, (NO_ERROR, 0))
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
