// SPDX-License-Identifier: Apache-2.0
//! Sorts numbers in place, in two threads.

use std::slice::from_raw_parts_mut;
use std::thread::scope;

/// Of fewer, a thread costs more than it saves.
const MANY: usize = 100_000;

/// Sorts `length` keys in ascending order.
///
/// # Safety
/// `keys` has `length` numbers, which nothing else uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tare_sort_u32(length: usize, keys: *mut u32) {
    // SAFETY: the caller's promise.
    sort(unsafe { from_raw_parts_mut(keys, length) });
}

/// The same for keys of 64 bits.
///
/// # Safety
/// As for `tare_sort_u32`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tare_sort_u64(length: usize, keys: *mut u64) {
    // SAFETY: the caller's promise.
    sort(unsafe { from_raw_parts_mut(keys, length) });
}

fn sort<T: Ord + Send>(keys: &mut [T]) {
    if keys.len() < MANY {
        return keys.sort_unstable();
    }
    let (below, _, above) = keys.select_nth_unstable(keys.len() / 2);
    scope(|scope| {
        scope.spawn(|| below.sort_unstable());
        above.sort_unstable();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_ascend_in_one_thread_and_in_two() {
        for length in [0, 1, 1_000, MANY, 2 * MANY + 1] {
            for distinct in [7, u32::MAX] {
                let scattered = |k: usize| (k as u32).wrapping_mul(2_654_435_761) % distinct;
                let mut found: Vec<u32> = (0..length).map(scattered).collect();
                let mut expected = found.clone();
                expected.sort();
                // SAFETY: the array is this test's own.
                unsafe { tare_sort_u32(length, found.as_mut_ptr()) };
                assert_eq!(found, expected);
            }
        }
    }
}
