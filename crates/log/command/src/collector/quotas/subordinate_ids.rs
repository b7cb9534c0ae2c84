// SPDX-License-Identifier: Apache-2.0
//! The user who pays for a program: one who has been given subordinate IDs (subuid(5)) can act under
//! each of them, and has one quota for all.

use crate::procfs;
use std::fs;
use std::ops::Range;

#[derive(Debug, Default)]
pub struct SubordinateIds(Vec<(Range<u64>, u32)>);

impl SubordinateIds {
    /// As `/etc/subuid` has them. IDs of this user count for themselves: it delegates them to
    /// containers, which must not have its quota.
    pub fn of_this_machine() -> Self {
        let read = |path| fs::read(path).unwrap_or_default();
        let [ranges, users] = ["/etc/subuid", "/etc/passwd"].map(read);
        Self::parse(
            &String::from_utf8_lossy(&ranges),
            &String::from_utf8_lossy(&users),
            procfs::user(),
        )
    }

    fn parse(ranges: &str, users: &str, own: u32) -> Self {
        let number = |name: &str| {
            let known = users.lines().find_map(|line| {
                let mut fields = line.split(':');
                (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
            });
            known.or_else(|| name.parse().ok())
        };
        let range = |line: &str| {
            let mut fields = line.trim().split(':');
            let user = number(fields.next()?)?;
            let [first, count] = [fields.next()?, fields.next()?].map(|text| text.parse().ok());
            Some((first?..u64::checked_add(first?, count?)?, user)).filter(|_| user != own)
        };
        Self(ranges.lines().filter_map(range).collect())
    }

    pub fn of(&self, user: u32) -> u32 {
        let range = self.0.iter().find(|(range, _)| range.contains(&u64::from(user)));
        range.map_or(user, |(_, payer)| *payer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subordinate_ids_count_as_their_user() {
        let users = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n";
        let ranges = "ann:100000:65536\n1001:165536:10\nroot:500000:10\n\nnobody knows\n\
                      ann:1:18446744073709551615\nann:a:b\n";
        let subordinate_ids = SubordinateIds::parse(ranges, users, 0);
        for (user, payer) in [
            (0, 0),
            (1000, 1000),
            (99_999, 99_999),
            (100_000, 1000),
            (165_535, 1000),
            (165_536, 1001),
            (165_546, 165_546),
            (500_000, 500_000),
            (u32::MAX, u32::MAX),
        ] {
            assert_eq!(subordinate_ids.of(user), payer, "{user}");
        }
    }
}
