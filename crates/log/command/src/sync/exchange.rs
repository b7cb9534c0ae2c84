// SPDX-License-Identifier: Apache-2.0
//! What one question and its answer say of two clocks (Cristian 1989; RFC 5905, section 8): the
//! answer was given at some moment between question and answer, and where in between is not
//! known; so half of the round trip is a bound of the error, however the ways there and back
//! differ.

use crate::reader::clock_drift::{DRIFT_PPM, drift};

/// A reading of a clock is a nanosecond wide at each of four.
const RESOLUTION_NS: i64 = 4;

/// In nanoseconds, two times of each clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    pub asked: i64,
    pub received: i64,
    pub sent: i64,
    pub answered: i64,
}

impl Exchange {
    /// How long packets were on their ways; `None` where the times cannot be.
    pub fn round_trip(&self) -> Option<i64> {
        let here = self.answered.checked_sub(self.asked)?;
        let there = self.sent.checked_sub(self.received)?;
        here.checked_sub(there).filter(|trip| *trip >= 0 && there >= 0)
    }

    /// The moments by both clocks that are taken for the same.
    pub fn middles(&self) -> (i64, i64) {
        (self.asked.midpoint(self.answered), self.received.midpoint(self.sent))
    }

    /// How far the two may be apart.
    pub fn error(&self) -> Option<i64> {
        let trip = self.round_trip()?;
        let length = self.answered.abs_diff(self.asked);
        Some(trip / 2 + 1 + drift(length, DRIFT_PPM) + RESOLUTION_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds_however_the_ways_differ() {
        // The other clock is 5000 ahead. Ways there and back, and between them.
        for (there, stay, back) in [(10, 0, 10), (100, 7, 1), (0, 1, 999), (12_345, 50, 0)] {
            let exchange = Exchange {
                asked: 700,
                received: 700 + there + 5_000,
                sent: 700 + there + stay + 5_000,
                answered: 700 + there + stay + back,
            };
            assert_eq!(exchange.round_trip(), Some(there + back));
            let (here, other) = exchange.middles();
            let wrong = (other - here - 5_000).abs();
            assert!(wrong <= exchange.error().unwrap(), "{exchange:?} {wrong}");
            assert!(exchange.error().unwrap() <= (there + back) / 2 + 10);
        }
    }

    #[test]
    fn times_that_cannot_be_are_none() {
        let good = Exchange { asked: 0, received: 5, sent: 6, answered: 3 };
        assert_eq!(good.round_trip(), Some(2));
        for bad in [
            Exchange { sent: 4, ..good },
            Exchange { sent: 9, ..good },
            Exchange { sent: i64::MAX, received: i64::MIN, ..good },
            Exchange { asked: i64::MIN, answered: i64::MAX, ..good },
        ] {
            assert_eq!(bad.error(), None, "{bad:?}");
        }
    }

    #[test]
    fn a_long_time_drifts_far() {
        assert_eq!(drift(1_000_000_000, DRIFT_PPM), 200_000);
        assert_eq!(drift(1, DRIFT_PPM), 1);
        assert_eq!(drift(u64::MAX, 1_000_000), i64::MAX);
    }
}
