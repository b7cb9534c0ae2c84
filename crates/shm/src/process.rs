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

/// The PID namespace of this process, by its inode; `None` without /proc.
pub fn pid_namespace() -> Option<u64> {
    Some(syscall::stat(c"/proc/self/ns/pid").ok()?.st_ino)
}

/// Whether this process has only the calling thread; not known without /proc.
pub fn has_one_thread() -> bool {
    // A folder with one folder for each thread: that many links, its name and ".".
    syscall::stat(c"/proc/self/task").is_ok_and(|status| status.st_nlink == 3)
}

/// In small parts: the caller may be on the stack of a signal handler.
fn read_start_time(path: &CStr) -> Option<u64> {
    let fd = syscall::open(path, libc::O_RDONLY).ok()?;
    let (mut text, mut parser) = ([0; 128], Parser::default());
    while let Ok(length @ 1..) = syscall::read(fd, &mut text) {
        text[..length].iter().for_each(|byte| parser.next(*byte));
    }
    syscall::close(fd);
    parser.start()
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

/// Finds field 22 of proc_pid_stat(5), byte by byte. The name, field 2, may hold anything, also `)`;
/// no other field has one.
#[derive(Default)]
struct Parser {
    field: u32,
    start: u64,
}

impl Parser {
    const NAME: u32 = 2;
    const START: u32 = 22;

    fn next(&mut self, byte: u8) {
        match byte {
            b')' => *self = Self { field: Self::NAME, start: 0 },
            b' ' if self.field >= Self::NAME => self.field += 1,
            b'0'..=b'9' if self.field == Self::START => {
                self.start = self.start.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            }
            _ => {}
        }
    }

    /// `None` where the text was cut off before its end.
    fn start(&self) -> Option<u64> {
        (self.field > Self::START).then_some(self.start)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn the_path_has_every_digit() {
        for (id, path) in [(0, c"/proc/0/stat"), (u32::MAX, c"/proc/4294967295/stat")] {
            assert_eq!(stat_path(id, &mut [0; 24]), path);
        }
    }

    #[test]
    fn threads_are_counted() {
        // SAFETY: the child makes a few system calls and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let alone = has_one_thread();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(alone)) };
        }
        let mut status = -1;
        // SAFETY: the kernel writes the status.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(libc::WEXITSTATUS(status), 1);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| assert!(!has_one_thread()));
            other.join().unwrap();
        });
    }

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let parse = |text: &[u8]| {
            let mut parser = Parser::default();
            text.iter().for_each(|byte| parser.next(*byte));
            parser.start()
        };
        let numbers = "S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2";
        for name in ["a", "a) b", ") S 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 "] {
            let text = std::format!("7 ({name}) {numbers}");
            assert_eq!(parse(text.as_bytes()), Some(987_654));
        }
        assert_eq!(parse(b"7 (cut short) S 1"), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "makes system calls")]
    fn a_process_keeps_its_start_and_nobody_else_has_its_number() {
        let start = start_time(syscall::getpid()).unwrap();
        assert_eq!(start_time(syscall::getpid()), Some(start));
        assert_eq!(start_time(u32::MAX), None);
    }
}
