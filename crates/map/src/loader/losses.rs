// SPDX-License-Identifier: Apache-2.0
//! What the programs in the kernel could not record.

use crate::edges::edge::Completeness;
use crate::layout::LOSSES;
use crate::loader::bpf_calls;
use crate::loader::programs::program_fd;
use crate::{Error, failed};
use aya::Ebpf;
use aya::maps::PerCpuArray;

/// In the order of `enum loss`.
pub fn read(kernel: &Ebpf) -> Result<[u64; LOSSES], Error> {
    let counters = kernel.map("losses").and_then(|map| PerCpuArray::try_from(map).ok());
    let counters: PerCpuArray<_, u64> =
        counters.ok_or_else(|| Error::new("losses", "not in the object"))?;
    let mut losses = [0_u64; LOSSES];
    for (number, sum) in losses.iter_mut().enumerate() {
        let number = u32::try_from(number).expect("there are few");
        let values = counters.get(&number, 0).map_err(|error| failed("losses", &error))?;
        *sum = values.iter().sum();
    }
    Ok(losses)
}

/// With the events that the `attached` programs missed; without what user space counts.
pub fn completeness(kernel: &Ebpf, attached: &[&str]) -> Result<Completeness, Error> {
    let mut missed_events = 0;
    for &name in attached {
        let runs = bpf_calls::program_runs(program_fd(kernel, name)?);
        missed_events += runs.map_err(|error| Error::new(name, error))?.missed;
    }
    let [
        folded,
        lost_updates,
        untracked_sockets,
        lost_events,
        lost_errors,
        lost_listeners,
        lost_names,
        lost_open,
    ] = read(kernel)?;
    Ok(Completeness {
        folded,
        removed_edges: 0,
        lost_updates,
        untracked_sockets,
        lost_events,
        lost_errors,
        missed_events,
        unseen_ends: 0,
        lost_listeners,
        lost_names,
        lost_open,
    })
}
