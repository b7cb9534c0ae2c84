// SPDX-License-Identifier: Apache-2.0

/// Bins of an octave are 2^9: half a bin's width over its least value is at most
/// 2^-10, below 0.1 %.
const OCTAVE: u32 = 9;

/// The bin of `value`. Values below 1,024 have a bin each.
#[inline]
pub const fn index(value: u64) -> usize {
    if value < 1 << OCTAVE {
        return value as usize;
    }
    let shift = value.ilog2() - OCTAVE;
    ((shift as usize) << OCTAVE) + (value >> shift) as usize
}

/// How many bins there are for values up to `greatest`.
pub const fn bins(greatest: u64) -> usize {
    index(greatest) + 1
}

/// Least and greatest value of bin `index`, both included; for a bin that no value has,
/// the greatest value.
pub const fn bounds(index: usize) -> (u64, u64) {
    if index < 2 << OCTAVE {
        return (index as u64, index as u64);
    }
    let shift = (index >> OCTAVE) as u32 - 1;
    if shift >= u64::BITS - OCTAVE {
        return (u64::MAX, u64::MAX);
    }
    let part = (index & ((1 << OCTAVE) - 1)) as u64 | 1 << OCTAVE;
    let low = part << shift;
    (low, low + ((1 << shift) - 1))
}

/// The value that stands for bin `index`.
pub const fn middle(index: usize) -> u64 {
    let (low, high) = bounds(index);
    low + (high - low) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bins_follow_one_another_without_a_gap() {
        assert_eq!(bounds(0), (0, 0));
        for bin in 1..bins(u64::MAX) {
            assert_eq!(bounds(bin).0, bounds(bin - 1).1 + 1, "bin {bin}");
        }
        assert_eq!(bounds(bins(u64::MAX) - 1).1, u64::MAX);
        assert_eq!(bounds(usize::MAX), (u64::MAX, u64::MAX));
    }

    proptest! {
        #[test]
        fn a_value_lies_in_its_bin_within_a_thousandth(bits in 0u32..64, value: u64) {
            let value = value >> bits;
            let (low, high) = bounds(index(value));
            prop_assert!(low <= value && value <= high);
            let error = middle(index(value)).abs_diff(value);
            prop_assert!(u128::from(error) * 1000 <= u128::from(value), "{error} of {value}");
        }
    }
}
