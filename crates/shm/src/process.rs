// SPDX-License-Identifier: Apache-2.0
//! Who a process is: its number and its start time together, since numbers return.

use crate::syscall;
use core::ffi::CStr;

/// Start time of process or thread `id` in clock ticks after boot, `None` when there is none.
pub fn start_time(id: u32) -> Option<u64> {
    read_start_time(stat_path(id, &mut [0; 24]))
}

/// That of the calling thread.
pub fn own_start_time() -> Option<u64> {
    read_start_time(c"/proc/thread-self/stat")
}

fn read_start_time(path: &CStr) -> Option<u64> {
    let fd = syscall::open(path, libc::O_RDONLY).ok()?;
    // The name in parentheses has at most 64 bytes; the start time stands within 400.
    let mut text = [0; 512];
    let length = syscall::read(fd, &mut text);
    syscall::close(fd);
    parse_start_time(&text[..length.ok()?])
}

fn stat_path(id: u32, path: &mut [u8; 24]) -> &CStr {
    const PREFIX: &[u8] = b"/proc/";
    const SUFFIX: &[u8] = b"/stat\0";
    let mut digits = [0; 10];
    let mut first = digits.len();
    let mut rest = id;
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let parts = PREFIX.iter().chain(&digits[first..]).chain(SUFFIX);
    for (place, byte) in path.iter_mut().zip(parts) {
        *place = *byte;
    }
    CStr::from_bytes_until_nul(path).unwrap_or(c"")
}

/// Field 22 of proc_pid_stat(5); the name, field 2, may hold anything, also `)`.
fn parse_start_time(text: &[u8]) -> Option<u64> {
    let end_of_name = text.iter().rposition(|byte| *byte == b')')?;
    let after = core::str::from_utf8(text.get(end_of_name + 2..)?).ok()?;
    after.split(' ').nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_has_every_digit() {
        for (id, path) in [(0, c"/proc/0/stat"), (u32::MAX, c"/proc/4294967295/stat")] {
            assert_eq!(stat_path(id, &mut [0; 24]), path);
        }
    }

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let text = b"7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2";
        assert_eq!(parse_start_time(text), Some(987_654));
        assert_eq!(parse_start_time(b"7 (cut short) S 1"), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "makes system calls")]
    fn a_process_keeps_its_start_and_nobody_else_has_its_number() {
        let start = start_time(syscall::getpid()).unwrap();
        assert_eq!(start_time(syscall::getpid()), Some(start));
        assert_eq!(start_time(u32::MAX), None);
    }
}
