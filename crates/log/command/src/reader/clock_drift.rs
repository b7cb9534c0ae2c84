// SPDX-License-Identifier: Apache-2.0
/// Two clocks that nobody sets drift apart by at most this number of millionths of the time that
/// passes: what the makers of oscillators promise, for both.
pub const DRIFT_PPM: u64 = 200;

/// `ppm` millionths of a duration in ns, rounded up.
pub fn drift(length_ns: u64, ppm: u64) -> i64 {
    let part = (u128::from(length_ns) * u128::from(ppm)).div_ceil(1_000_000);
    i64::try_from(part).unwrap_or(i64::MAX)
}
