// SPDX-License-Identifier: Apache-2.0
//! How far the distributions of runs lie apart, between all pairs of them in one pass over their
//! values in ascending order. A value costs one step over the runs for each run that has it:
//! what it changes of a pair is only what lies between that run and the others.
//!
//! `tare.stats.distances` holds the state in arrays of its own. `sort` brings values into order.

mod pairs;
mod sort;

use std::slice::{from_raw_parts, from_raw_parts_mut};

pub use pairs::{Distances, State, Values};
pub use sort::{tare_sort_u32, tare_sort_u64};

/// Takes the next values; returns 0, or 1 for the index of a run that there is not.
///
/// # Safety
/// `sizes`, `until` and `since` have `runs` numbers; `ks`, `ad`, `cvm` and `w1` have `runs` times
/// `runs` or are null; `values`, `index` and `counts` have `length`. None overlaps another.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tare_distances_add(
    runs: usize,
    sizes: *const f64,
    until: *mut f64,
    since: *mut f64,
    ks: *mut f64,
    ad: *mut f64,
    cvm: *mut f64,
    w1: *mut f64,
    length: usize,
    values: *const f64,
    index: *const u16,
    counts: *const i64,
) -> i32 {
    let matrix = |first: *mut f64| {
        // SAFETY: the caller's promise about the matrices.
        (!first.is_null()).then(|| unsafe { from_raw_parts_mut(first, runs * runs) })
    };
    // SAFETY: the caller's promise about what has `runs` numbers.
    let state = unsafe {
        State {
            sizes: from_raw_parts(sizes, runs),
            until: from_raw_parts_mut(until, runs),
            since: from_raw_parts_mut(since, runs),
        }
    };
    let found = Distances { ks: matrix(ks), ad: matrix(ad), cvm: matrix(cvm), w1: matrix(w1) };
    // SAFETY: the caller's promise about what has `length` numbers.
    let values = unsafe {
        Values {
            values: from_raw_parts(values, length),
            runs: from_raw_parts(index, length),
            counts: from_raw_parts(counts, length),
        }
    };
    i32::from(!pairs::add(state, found, &values))
}
