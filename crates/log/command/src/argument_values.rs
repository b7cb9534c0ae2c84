// SPDX-License-Identifier: Apache-2.0
//! What people write in rules and behind options.

use regex::Regex;
use std::str::FromStr;

/// `10ms` in nanoseconds.
pub fn nanoseconds(text: &str) -> Option<u64> {
    let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    units.iter().find_map(|(unit, length)| {
        text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(*length)
    })
}

/// A regular expression that has to match a whole name; why it is none.
pub fn whole_name(text: &str) -> Result<Regex, String> {
    // By itself first: what is wrong should not be told of what is put around it.
    Regex::new(text).and_then(|_| Regex::new(&format!(r"\A(?:{text})\z"))).map_err(|error| {
        let reason = error.to_string();
        let reason = reason.lines().last().unwrap_or_default();
        reason.strip_prefix("error: ").unwrap_or(reason).to_owned()
    })
}

/// A time in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds after the first event.
    After(u64),
    /// Nanoseconds since the Unix epoch.
    At(i64),
}

impl FromStr for Moment {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let after = nanoseconds(text).map(Self::After);
        after.or_else(|| text.parse().ok().map(Self::At)).ok_or(
            "expected a time after the first event, such as 500us, 10ms or 1s, or nanoseconds \
             since the Unix epoch",
        )
    }
}

impl Moment {
    /// Nanoseconds since the Unix epoch, in a file that began then.
    pub fn of(self, began_ns: i64) -> i64 {
        match self {
            Self::After(length) => began_ns.saturating_add_unsigned(length),
            Self::At(time_ns) => time_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_a_unit_or_are_since_the_epoch() {
        let moment = |text: &str| text.parse::<Moment>().map(|moment| moment.of(1_000));
        assert_eq!(moment("10us"), Ok(11_000));
        assert_eq!(moment("7"), Ok(7));
        assert_eq!(moment("-7"), Ok(-7));
        assert_eq!(moment("18446744073709551615ns"), Ok(i64::MAX));
        for text in ["", "s", "1h", "1.5s", "-1s", "99999999999s", "x"] {
            assert!(moment(text).is_err(), "{text}");
        }
    }
}
