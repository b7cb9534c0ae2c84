// SPDX-License-Identifier: Apache-2.0
//! What the kernel says of a program.

use std::io::BufRead;
use std::sync::OnceLock;
use tare_command::processes;
use tare_log_file::Boot;
use tare_shm::{Header, peer, process};

/// Of USER_HZ, in which proc_pid_stat(5) has times: 100 on all architectures of Linux 6.
const NS_PER_TICK: i64 = 10_000_000;

/// The number by which a process knows itself: that of the innermost of its PID namespaces.
pub fn own_pid(pid: u32) -> Option<u32> {
    let status = std::fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}

/// Its words, as far as they may be seen.
pub fn command(pid: u32) -> String {
    let words = processes::command(pid).unwrap_or_default();
    String::from_utf8_lossy(&words.join(&b' ')).trim_end().to_owned()
}

/// How many mappings a process may have.
pub fn most_mappings() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    text.trim().parse().unwrap_or(65_530)
}

pub fn host() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    host.trim_end().to_owned()
}

/// This start of this machine.
pub fn boot() -> Boot {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().into()
}

/// How far CLOCK_MONOTONIC_RAW of a program is ahead of this one's, in another time namespace.
pub fn ahead_ns(pid: u32) -> i64 {
    ahead_of_this(pid, "monotonic ")
}

/// Whether process `pid` started at this time as it reads it itself, in clock ticks: in another
/// time namespace it counts from another moment. It is 0 if the process has no /proc.
pub fn started_at(pid: u32, ticks: u64) -> bool {
    if ticks == 0 {
        return true;
    }
    let is_it = |start| is_same_start(ticks, start, ahead_of_this(pid, "boottime "));
    process::start_time(pid).is_some_and(is_it)
}

/// Whether a segment is of process `pid`. Of one that is no more, only its number is known.
pub fn is_owner(pid: u32, header: Header) -> bool {
    match own_pid(pid) {
        Some(own) => own == header.owner_pid && started_at(pid, header.owner_start),
        None => pid == header.owner_pid,
    }
}

/// The same moment, counted by a process whose clock is ahead, and by this one.
fn is_same_start(its: u64, own: u64, ahead_ns: i64) -> bool {
    // The kernel rounds down what each process reads.
    let ticks = ahead_ns.div_euclid(NS_PER_TICK);
    let rounded = i64::from(ahead_ns.rem_euclid(NS_PER_TICK) > 0);
    let apart = i128::from(its) - i128::from(own) - i128::from(ticks);
    (0..=i128::from(rounded)).contains(&apart)
}

/// How far this clock of a program is ahead of this one's.
fn ahead_of_this(pid: u32, clock: &str) -> i64 {
    let read = |pid: &str| {
        let offsets = std::fs::read_to_string(format!("/proc/{pid}/timens_offsets"));
        offset_ns(&offsets.unwrap_or_default(), clock)
    };
    read(&pid.to_string()).zip(read("self")).map_or(0, |(its, own)| its.saturating_sub(own))
}

/// From `timens_offsets`: a line a clock, seconds and nanoseconds.
fn offset_ns(offsets: &str, clock: &str) -> Option<i64> {
    let mut words = offsets.lines().find_map(|line| line.strip_prefix(clock))?.split_whitespace();
    let mut number = || words.next()?.parse::<i64>().ok();
    number()?.checked_mul(1_000_000_000)?.checked_add(number()?)
}

/// Whether a file of this number is in its memory; `None` where that cannot be seen, as of one that
/// has ended.
pub fn maps(pid: u32, inode: u64) -> Option<bool> {
    let maps = processes::maps(pid).ok()?;
    let inode = inode.to_string();
    let mut is_seen = false;
    for line in maps.split(b'\n') {
        let line = line.ok()?;
        is_seen = true;
        let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        // Addresses, rights, offset, device, and this.
        if words.nth(4) == Some(inode.as_bytes()) {
            return Some(true);
        }
    }
    is_seen.then_some(false)
}

/// What rules can mean a process by: its name, that of its program, and its number, as it is
/// known here and as it is known to itself.
pub fn names(pid: u32, own_pid: u32) -> Vec<String> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let words = processes::command(pid).unwrap_or_default();
    let program = words.first().and_then(|word| word.rsplit(|byte| *byte == b'/').next());
    let text = |name: &[u8]| String::from_utf8_lossy(name).trim_end().to_owned();
    vec![text(&name), text(program.unwrap_or_default()), pid.to_string(), own_pid.to_string()]
}

/// Where the kernel has put the code and the stack of a process: nearly always another place after
/// it has executed a program. `None` if that may not be seen, and while it executes one.
pub fn place(pid: u32) -> Option<[u64; 3]> {
    // Fields 26 to 28; the first behind the name is field 3.
    let fields = stat(pid)?;
    let fields = fields.split_whitespace().skip(23).take(3);
    let place: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    place.try_into().ok().filter(|place: &[u64; 3]| !place.contains(&0))
}

/// The user that this process acts as.
pub fn user() -> u32 {
    // SAFETY: no memory is touched; it cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether a user is the one that this process acts as.
pub fn is_own(user: u32) -> bool {
    own_user() == Some(user)
}

/// The user that this process acts as, if no other has the same ID in this user namespace.
pub fn own_user() -> Option<u32> {
    static OWN: OnceLock<Option<u32>> = OnceLock::new();
    *OWN.get_or_init(|| Some(user()).filter(|user| peer::is_own(*user)))
}

/// Whether a process is another, or one of its children and children's children.
pub fn descends(pid: u32, ancestor: u32) -> bool {
    let mut parents = std::iter::successors(Some(pid), |pid| parent(*pid));
    parents.any(|pid| pid == ancestor)
}

fn parent(pid: u32) -> Option<u32> {
    // Behind the state.
    stat(pid)?.split_whitespace().nth(1)?.parse().ok()
}

/// What proc_pid_stat(5) has behind the name, which can have any letters.
fn stat(pid: u32) -> Option<String> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(')').map(|(_, behind)| behind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio, id};
    use std::thread;

    #[test]
    fn a_child_descends_and_a_stranger_does_not() {
        let mut child = Command::new("sleep").arg("30").spawn().unwrap();
        let (own, other) = (id(), child.id());
        assert!(descends(other, own) && descends(own, own) && descends(own, parent(own).unwrap()));
        assert!(!descends(own, other));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!descends(other, own));
    }

    #[test]
    fn a_process_of_this_namespace_has_one_number() {
        assert_eq!(own_pid(id()), Some(id()));
        assert_eq!(own_pid(u32::MAX), None);
    }

    #[test]
    fn process_that_executes_a_program_is_in_another_place() {
        let mut command = Command::new("sh");
        command.args(["-c", "read go; exec sleep 30"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let before = loop {
            match place(pid) {
                Some(before) => break before,
                None => thread::yield_now(),
            }
        };
        drop(child.stdin.take());
        while super::command(pid) != "sleep 30" {
            thread::yield_now();
        }
        assert_ne!(place(pid), Some(before));
        assert_eq!(place(u32::MAX), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_file_in_memory_is_seen() {
        let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
        let inode = std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap());
        assert_eq!(maps(id(), inode), Some(true));
        assert_eq!(maps(id(), u64::MAX), Some(false));
        assert_eq!(maps(u32::MAX, inode), None);
    }

    #[test]
    fn offsets_of_a_time_namespace() {
        let offsets = "monotonic       -1000         7\nboottime            5         0\n";
        assert_eq!(offset_ns(offsets, "monotonic "), Some(-999_999_999_993));
        assert_eq!(offset_ns(offsets, "boottime "), Some(5_000_000_000));
        for text in ["", "monotonic", "monotonic 1", "monotonic 9999999999999 0", "boottime 1 2"] {
            assert_eq!(offset_ns(text, "monotonic "), None, "{text}");
        }
        assert_eq!(ahead_ns(id()), 0);
    }

    #[test]
    fn start_time_is_the_same_moment_in_another_time_namespace() {
        // The process started 1.999 s after boot.
        for (its, ahead_ns) in
            [(199, 0), (1_199, 10_000_000_000), (200, 1_000_000), (99, -1_000_000_000)]
        {
            assert!(is_same_start(its, 199, ahead_ns), "{its} {ahead_ns}");
            assert!(!is_same_start(its - 1, 199, ahead_ns + NS_PER_TICK));
            assert!(!is_same_start(its + 1, 199, ahead_ns - NS_PER_TICK));
        }
        assert!(!is_same_start(200, 199, 0), "no rounding without an offset");
        let own = process::start_time(id()).unwrap();
        assert_eq!((started_at(id(), own), started_at(id(), own + 1)), (true, false));
    }
}
