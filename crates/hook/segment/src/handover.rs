// SPDX-License-Identifier: Apache-2.0
use core::fmt;

/// The environment variable that names the segments to the library.
pub const VARIABLE: &str = "TARE_HOOK";

/// Where the segments are: `PID:START:CONTROL:SHARED`, all decimal. The two descriptors are
/// tare-hook's own numbers, which its children inherit (they are not close-on-exec); where
/// the program has closed them, `/proc/PID/fd/N` is the way. START is the owner's start time
/// as in the segments' headers: a process that inherited the variable alone, and finds
/// another process or file under these numbers, does not take it for its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    pub pid: u32,
    pub start: u64,
    pub control: i32,
    pub shared: i32,
}

impl fmt::Display for Handover {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}:{}", self.pid, self.start, self.control, self.shared)
    }
}

impl Handover {
    /// Reads the variable's value; `None` unless it is four numbers in range.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let mut fields = value.split(|byte| *byte == b':').map(number);
        let handover = Self {
            pid: u32::try_from(fields.next()??).ok()?,
            start: fields.next()??,
            control: i32::try_from(fields.next()??).ok()?,
            shared: i32::try_from(fields.next()??).ok()?,
        };
        fields.next().is_none().then_some(handover)
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, digit| {
        let value = digit.checked_sub(b'0').filter(|value| *value < 10)?;
        sum.checked_mul(10)?.checked_add(value.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn what_is_written_is_read() {
        let handover = Handover { pid: u32::MAX, start: u64::MAX, control: 900, shared: i32::MAX };
        assert_eq!(Handover::parse(handover.to_string().as_bytes()), Some(handover));
    }

    #[test]
    fn anything_else_is_refused() {
        for value in
            ["", "1", "1:2:3", "1:2:3:4:5", "1:2:3:", "1:2:3:-4", "1:2:3:4 ", "1:2:3:2147483648"]
        {
            assert_eq!(Handover::parse(value.as_bytes()), None, "{value}");
        }
    }
}
