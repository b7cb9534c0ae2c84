// SPDX-License-Identifier: Apache-2.0
use crate::ticks;
use tare_shm::syscall;

/// Ticks and the kernel's clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub ticks: u64,
    /// CLOCK_MONOTONIC_RAW: never slewed, so that it gives the tick rate.
    pub monotonic_ns: i64,
    /// CLOCK_REALTIME: nanoseconds since the Unix epoch.
    pub realtime_ns: i64,
    /// Ticks that reading the clocks took: the moment lies within half of it.
    pub width: u64,
}

impl Snapshot {
    /// The narrowest of a few readings: one that was interrupted is not believed.
    pub fn take() -> Self {
        const TRIES: usize = 5;
        let mut best = Self::read();
        for _ in 1..TRIES {
            let next = Self::read();
            if next.width < best.width {
                best = next;
            }
        }
        best
    }

    fn read() -> Self {
        let before = ticks();
        let monotonic_ns = nanoseconds(libc::CLOCK_MONOTONIC_RAW);
        let realtime_ns = nanoseconds(libc::CLOCK_REALTIME);
        let width = ticks().wrapping_sub(before);
        Self { ticks: before.wrapping_add(width / 2), monotonic_ns, realtime_ns, width }
    }

    /// Nanoseconds since the Unix epoch at `ticks`, before or after this snapshot.
    pub fn realtime_at(&self, ticks: u64, rate: Rate) -> i64 {
        let after = ticks.wrapping_sub(self.ticks) as i64;
        let distance = i64::try_from(rate.nanoseconds(after.unsigned_abs())).unwrap_or(i64::MAX);
        self.realtime_ns.saturating_add(if after < 0 { -distance } else { distance })
    }
}

/// Length of a tick, in 2^-32 ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(u64);

impl Rate {
    const SHIFT: u32 = 32;

    /// Of a clock whose ticks are nanoseconds.
    pub const NANOSECOND: Self = Self(1 << Self::SHIFT);

    /// The rate between two snapshots, the first taken first; `None` where no time passed, or
    /// one of them never was.
    /// The error is about the widths of both over the ticks between them.
    pub fn between(first: &Snapshot, second: &Snapshot) -> Option<Self> {
        let ticks = second.ticks.checked_sub(first.ticks).filter(|ticks| *ticks > 0)?;
        let nanoseconds = second.monotonic_ns.checked_sub(first.monotonic_ns)?;
        let nanoseconds = u64::try_from(nanoseconds).ok()?;
        Self::shifted_quotient(nanoseconds, ticks).filter(|length| *length > 0).map(Self)
    }

    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// `None` for 0, which is no length.
    pub fn from_bits(bits: u64) -> Option<Self> {
        (bits != 0).then_some(Self(bits))
    }

    /// Ticks in so many nanoseconds, rounded down.
    pub fn ticks(self, nanoseconds: u64) -> u64 {
        Self::shifted_quotient(nanoseconds, self.0).unwrap_or(u64::MAX)
    }

    /// `(dividend << SHIFT) / divisor`, unless that is too large. By hand: the compiler's division
    /// of 128 bits needs what a library without Rust's runtime does not have on every machine.
    fn shifted_quotient(dividend: u64, divisor: u64) -> Option<u64> {
        let (mut quotient, mut rest) = (dividend / divisor, dividend % divisor);
        if quotient >> (u64::BITS - Self::SHIFT) != 0 {
            return None;
        }
        for _ in 0..Self::SHIFT {
            let is_above = rest >> (u64::BITS - 1) != 0 || rest << 1 >= divisor;
            rest = (rest << 1).wrapping_sub(if is_above { divisor } else { 0 });
            quotient = quotient << 1 | u64::from(is_above);
        }
        Some(quotient)
    }

    /// Length of `ticks` in nanoseconds, with what is less than one: for sums of short ones.
    pub fn length(self, ticks: u64) -> f64 {
        ticks as f64 * (self.0 as f64 / Self::NANOSECOND.0 as f64)
    }

    /// Length of `ticks` to the nearest nanosecond.
    pub fn nanoseconds(self, ticks: u64) -> u64 {
        let half = 1 << (Self::SHIFT - 1);
        ((u128::from(ticks) * u128::from(self.0) + half) >> Self::SHIFT) as u64
    }
}

/// 0 where system calls are forbidden.
fn nanoseconds(clock: libc::clockid_t) -> i64 {
    syscall::clock(clock).map_or(0, |now| now as i64)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    const fn snapshot(ticks: u64, monotonic_ns: i64, realtime_ns: i64) -> Snapshot {
        Snapshot { ticks, monotonic_ns, realtime_ns, width: 0 }
    }

    #[test]
    fn ticks_become_times_on_both_sides_of_a_snapshot() {
        let first = snapshot(1_000, 0, 5_000_000);
        let rate = Rate::between(&first, &snapshot(3_000, 1_000, 0)).unwrap(); // 2 GHz
        assert_eq!(rate.nanoseconds(2_000_000_000), 1_000_000_000);
        assert_eq!([2, 3, 4].map(|ticks| rate.nanoseconds(ticks)), [1, 2, 2]);
        assert_eq!([2, 3, 4].map(|ticks| rate.length(ticks)), [1.0, 1.5, 2.0]);
        assert_eq!(rate.ticks(1_000_000_000), 2_000_000_000);
        assert_eq!(first.realtime_at(3_000, rate), 5_001_000);
        assert_eq!(first.realtime_at(0, rate), 5_000_000 - 500);
    }

    #[test]
    fn quotients_are_those_of_128_bits() {
        let numbers = [1, 2, 3, 7, 10, 1 << 31, 1 << 32, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX];
        let random = core::iter::successors(Some(88_172_645_463_325_252), |state: &u64| {
            let state = state ^ state << 13;
            let state = state ^ state >> 7;
            Some(state ^ state << 17)
        });
        let all: std::vec::Vec<_> = numbers.into_iter().chain(random.take(200)).collect();
        for dividend in all.iter().copied().chain([0]) {
            for divisor in
                all.iter().flat_map(|number| [*number, number >> 20]).filter(|number| *number > 0)
            {
                let wide = (u128::from(dividend) << Rate::SHIFT) / u128::from(divisor);
                let ours = Rate::shifted_quotient(dividend, divisor);
                assert_eq!(ours, u64::try_from(wide).ok(), "{dividend} {divisor}");
            }
        }
    }

    #[test]
    fn a_year_of_ticks_does_not_overflow() {
        const YEAR: u64 = 365 * 86_400 * 1_000_000_000;
        let rate = Rate::between(&snapshot(0, 0, 0), &snapshot(5_000, 1_000, 0)).unwrap();
        let error = rate.nanoseconds(5 * YEAR).abs_diff(YEAR);
        // A tick's length is known to 2^-32 ns, one part in 858,993,459 at 5 GHz.
        assert!(error <= YEAR / 858_993_459 + 1, "{error}");
    }

    #[test]
    fn without_time_between_there_is_no_rate() {
        assert_eq!(Rate::between(&snapshot(5, 0, 0), &snapshot(5, 9, 0)), None);
        assert_eq!(Rate::between(&snapshot(5, 9, 0), &snapshot(9, 0, 0)), None);
        assert_eq!(Rate::between(&snapshot(9, 0, 0), &snapshot(5, 9, 0)), None);
    }

    #[test]
    fn times_that_cannot_be_are_no_overflow() {
        let never = snapshot(1, i64::MIN, 0);
        assert_eq!(Rate::between(&never, &snapshot(9, 9, 0)), None);
        let slow = Rate::between(&snapshot(1, 0, 0), &snapshot(2, u32::MAX.into(), 0)).unwrap();
        assert_eq!(never.realtime_at(1 << 62, slow), i64::MAX);
        assert_eq!(snapshot(1 << 62, 0, -1).realtime_at(0, slow), i64::MIN);
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads the tick counter")]
    fn the_clocks_time_agrees_with_the_kernels() {
        let first = Snapshot::take();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let second = Snapshot::take();
        let rate = Rate::between(&first, &second).unwrap();
        let told = first.realtime_at(second.ticks, rate);
        // REALTIME may be slewed by 500 ppm against MONOTONIC_RAW.
        assert!((told - second.realtime_ns).abs() < 1_000_000);
    }
}
