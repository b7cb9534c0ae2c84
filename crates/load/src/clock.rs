// SPDX-License-Identifier: Apache-2.0
//! Time as int64 nanoseconds since the Unix epoch that never steps: CLOCK_MONOTONIC,
//! related to CLOCK_REALTIME once, at the start.
//!
//! tare-clock is for preload libraries: it counts ticks of the processor, whose rate is known
//! only afterwards, and relates them to CLOCK_MONOTONIC_RAW. A generator needs nanoseconds at
//! once, on the clock that the kernel waits by, so the two share no more than `clock_gettime`.

/// Nanoseconds since the Unix epoch, or a length of time in nanoseconds.
pub type Nanoseconds = i64;

#[derive(Debug, Clone, Copy)]
pub struct Clock {
    epoch: Nanoseconds,
}

impl Clock {
    /// Relates the two clocks by the closest of several pairs of readings.
    pub fn start() -> Self {
        let epoch = (0..16)
            .map(|_| {
                let before = read(libc::CLOCK_MONOTONIC);
                let real = read(libc::CLOCK_REALTIME);
                let after = read(libc::CLOCK_MONOTONIC);
                (after - before, real - before - (after - before) / 2)
            })
            .min()
            .map_or(0, |(_, offset)| offset);
        Self { epoch }
    }

    #[inline]
    pub fn now(self) -> Nanoseconds {
        read(libc::CLOCK_MONOTONIC) + self.epoch
    }
}

/// One reading of a clock that cannot fail: those of the system.
#[inline]
fn read(clock: libc::clockid_t) -> Nanoseconds {
    try_read(clock).unwrap_or_default()
}

/// One reading of a clock that may be gone, such as the CPU clock of a process.
#[inline]
pub fn try_read(clock: libc::clockid_t) -> Option<Nanoseconds> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result.
    let code = unsafe { libc::clock_gettime(clock, &mut time) };
    (code == 0).then_some(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_that_of_the_wall_and_never_goes_back() {
        let clock = Clock::start();
        let first = clock.now();
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let wall = i64::try_from(wall.as_nanos()).unwrap();
        let second = clock.now();
        assert!(first <= second);
        assert!(first - 5_000_000 < wall && wall < second + 5_000_000);
    }
}
