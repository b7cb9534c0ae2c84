// SPDX-License-Identifier: Apache-2.0
use crate::index;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts `value` in its bin, which another thread or process may read or write meanwhile; a
/// value beyond the last bin counts in the last.
#[inline]
pub fn record(bins: &[AtomicU64], value: u64) {
    if let Some(count) = bins.get(index(value)).or(bins.last()) {
        count.fetch_add(1, Relaxed);
    }
}

/// Adds the counts of `bins` to `sums`; those beyond its last bin go to its last.
pub fn add_into(sums: &mut [u64], bins: &[AtomicU64]) {
    let Some(last) = sums.len().checked_sub(1) else { return };
    for (index, count) in bins.iter().enumerate() {
        let sum = &mut sums[index.min(last)];
        *sum = sum.saturating_add(count.load(Relaxed));
    }
}

/// The bin that holds the `quantile` (0..=1) by the nearest-rank rule: the least value
/// such that at least this share of all values is no greater. `None` of no values.
pub fn quantile(counts: &[u64], quantile: f64) -> Option<usize> {
    let total = counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
    if total == 0 {
        return None;
    }
    let exact = total as f64 * quantile;
    let mut rank = exact as u64;
    if (rank as f64) < exact {
        rank += 1;
    }
    let rank = rank.clamp(1, total);
    let mut seen = 0u64;
    counts.iter().position(|count| {
        seen = seen.saturating_add(*count);
        seen >= rank
    })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::{bins, bounds};
    use proptest::prelude::*;
    use std::{vec, vec::Vec};

    fn counters(bins: usize) -> Vec<AtomicU64> {
        (0..bins).map(|_| AtomicU64::new(0)).collect()
    }

    fn counts(values: &[u64], greatest: u64) -> Vec<u64> {
        let shared = counters(bins(greatest));
        values.iter().for_each(|value| record(&shared, *value));
        let mut sums = vec![0; shared.len()];
        add_into(&mut sums, &shared);
        sums
    }

    #[test]
    fn no_values_have_no_quantile() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[0, 0], 0.5), None);
    }

    #[test]
    fn a_value_beyond_the_last_bin_counts_in_the_last() {
        let sums = counts(&[u64::MAX, 5], 1 << 20);
        assert_eq!(sums.iter().sum::<u64>(), 2);
        assert_eq!(*sums.last().unwrap(), 1);
    }

    proptest! {
        #[test]
        fn a_quantile_is_in_the_bin_of_the_sorted_value(
            mut values in prop::collection::vec(0u64..1 << 30, 1..400),
            share in 0.0..=1.0f64,
        ) {
            values.sort_unstable();
            let rank = ((values.len() as f64 * share).ceil() as usize).max(1);
            let expected = values[rank - 1];
            let (low, high) = bounds(quantile(&counts(&values, 1 << 30), share).unwrap());
            prop_assert!(low <= expected && expected <= high);
        }

        #[test]
        fn merging_is_the_histogram_of_all_values(
            first in prop::collection::vec(0u64..1 << 20, 0..100),
            second in prop::collection::vec(0u64..1 << 20, 0..100),
        ) {
            let mut merged = counts(&first, 1 << 20);
            let other = counters(merged.len());
            second.iter().for_each(|value| record(&other, *value));
            add_into(&mut merged, &other);
            prop_assert_eq!(merged, counts(&[first, second].concat(), 1 << 20));
        }
    }
}
