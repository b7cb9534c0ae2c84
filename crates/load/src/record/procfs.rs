// SPDX-License-Identifier: Apache-2.0
//! Numbers from /proc, read again and again from files that stay open.

use crate::clock::Nanoseconds;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Longer than what /proc/stat has of a thousand CPUs.
const STAT: usize = 1 << 17;

/// Times of this machine's CPUs.
pub struct MachineTime {
    file: File,
    tick: Nanoseconds,
    /// Whose tasks are of interest.
    cpus: BTreeSet<usize>,
    text: Vec<u8>,
}

/// Since boot, ns, in whole ticks of the kernel (10 ms).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineTimes {
    /// That tasks ran on the CPUs of interest: interrupts are not in it.
    pub cpu_time: Nanoseconds,
    /// That the hypervisor took from all CPUs.
    pub steal: Nanoseconds,
}

impl MachineTime {
    pub fn open(cpus: BTreeSet<usize>) -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        let file = File::open("/proc/stat")?;
        Ok(Self { file, tick: 1_000_000_000 / ticks.max(1), cpus, text: vec![0; STAT] })
    }

    pub fn read(&mut self) -> Option<MachineTimes> {
        let length = self.file.read_at(&mut self.text, 0).ok()?;
        machine_times(str::from_utf8(&self.text[..length]).ok()?, &self.cpus, self.tick)
    }
}

/// From the lines `cpu  user nice system idle iowait irq softirq steal ...`, and `cpu0`, `cpu1` ...
fn machine_times(stat: &str, cpus: &BTreeSet<usize>, tick: Nanoseconds) -> Option<MachineTimes> {
    let mut lines = stat.lines().map_while(|line| line.strip_prefix("cpu")?.split_once(' '));
    let (_, all) = lines.next()?;
    let steal = numbers(all).nth(7)?;
    let cpu_time = lines
        .filter(|(cpu, _)| cpu.parse().is_ok_and(|cpu| cpus.contains(&cpu)))
        .map(|(_, times)| numbers(times).take(3).sum::<i64>())
        .sum::<i64>();
    Some(MachineTimes { cpu_time: cpu_time * tick, steal: steal * tick })
}

fn numbers(text: &str) -> impl Iterator<Item = i64> {
    text.split_whitespace().map_while(|number| number.parse().ok())
}

/// Time that one thread was ready to run and waited for a CPU.
pub struct RunDelay {
    file: File,
}

impl RunDelay {
    pub fn of_thread(thread: libc::pid_t) -> io::Result<Self> {
        Ok(Self { file: File::open(format!("/proc/self/task/{thread}/schedstat"))? })
    }

    /// Since the thread's start, ns.
    pub fn read(&mut self) -> Option<Nanoseconds> {
        let mut line = [0; 96];
        let length = self.file.read_at(&mut line, 0).ok()?;
        run_delay(&line[..length])
    }
}

/// The second number of `on_cpu run_delay timeslices`.
fn run_delay(schedstat: &[u8]) -> Option<Nanoseconds> {
    str::from_utf8(schedstat).ok()?.split_whitespace().nth(1)?.parse().ok()
}

/// Run delay summed over the threads of a process, those that start later included. What a
/// thread waited between its last reading and its end, it takes along.
pub struct TaskDelay {
    path: String,
    /// The folder of the threads, open: its links are as many as they, and two.
    folder: File,
    links: u64,
    /// By name in the folder, with what was read last.
    tasks: BTreeMap<OsString, (RunDelay, Nanoseconds)>,
    total: Nanoseconds,
}

impl TaskDelay {
    pub fn of_process(pid: libc::pid_t) -> io::Result<Self> {
        let path = format!("/proc/{pid}/task");
        let folder = File::open(&path)?;
        let mut delay = Self { path, folder, links: 0, tasks: BTreeMap::new(), total: 0 };
        delay.list()?;
        delay.add_up();
        delay.total = 0;
        Ok(delay)
    }

    /// Increase since the process was first read, ns.
    pub fn read(&mut self) -> Option<Nanoseconds> {
        let links = self.folder.metadata().ok()?.nlink();
        if !self.add_up() || links != self.links {
            self.list().ok()?;
            self.add_up();
            self.links = links;
        }
        Some(self.total)
    }

    /// How many files it keeps open.
    pub fn files(&self) -> usize {
        self.tasks.len() + 1
    }

    /// Counts what every known thread waited since it was read last, and forgets those that
    /// have ended; false if there are any.
    fn add_up(&mut self) -> bool {
        let known = self.tasks.len();
        self.tasks.retain(|_, (task, last)| {
            task.read().is_some_and(|now| {
                self.total += now - std::mem::replace(last, now);
                true
            })
        });
        self.tasks.len() == known
    }

    /// Finds the threads that are not known yet; all of what they waited is new.
    fn list(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let Entry::Vacant(place) = self.tasks.entry(entry.file_name()) else { continue };
            match File::open(entry.path().join("schedstat")) {
                Ok(file) => drop(place.insert((RunDelay { file }, 0))),
                // It ended between being listed and being opened.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => {}
                Err(error) => return Err(error),
            }
        }
        if self.tasks.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the process has no threads"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_some_cpus_and_steal_of_all_are_found() {
        let stat = "cpu  11937 1 4718 196984 1380 2 122 357 0 0\ncpu0 1 2 3 9 9 9 9 9 0 0\n\
                    cpu1 10 20 30 9 9 9 9 9 0 0\ncpu12 100 0 0 9 9 9 9 9 0 0\nintr 1 2 3\n";
        let times = |cpus: &[usize]| machine_times(stat, &cpus.iter().copied().collect(), 1);
        assert_eq!(times(&[0, 12]), Some(MachineTimes { cpu_time: 106, steal: 357 }));
        assert_eq!(times(&[1]), Some(MachineTimes { cpu_time: 60, steal: 357 }));
        assert_eq!(machine_times("cpu  1 2 3\n", &BTreeSet::new(), 1), None);
        assert!(MachineTime::open(BTreeSet::from([0])).unwrap().read().is_some());
    }

    #[test]
    fn the_run_delay_is_the_second_number() {
        assert_eq!(run_delay(b"199076 5047 2\n"), Some(5047));
        assert_eq!(run_delay(b""), None);
    }

    #[test]
    fn threads_that_end_do_not_take_the_sum_back() {
        let pid = std::process::id().cast_signed();
        let (started, is_started) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            started.send(()).unwrap();
            ended.recv().ok()
        });
        is_started.recv().unwrap();
        let mut delay = TaskDelay::of_process(pid).unwrap();
        let first = delay.read().unwrap();
        end.send(()).unwrap();
        thread.join().unwrap();
        let second = delay.read().unwrap();
        let third = delay.read().unwrap();
        assert!(first <= second && second <= third);
    }

    #[test]
    fn threads_that_start_later_are_counted_from_their_start() {
        const ENOUGH: Nanoseconds = 30_000_000;
        let mut delay = TaskDelay::of_process(std::process::id().cast_signed()).unwrap();
        delay.read().unwrap();
        // Two that want the same CPU: each waits for the other.
        // SAFETY: the call has no arguments and cannot fail.
        let cpu = unsafe { libc::sched_getcpu() }.unsigned_abs() as usize;
        let (waited, has_waited) = std::sync::mpsc::channel();
        let ends: Vec<_> = (0..2)
            .map(|_| {
                let waited = waited.clone();
                let (end, ended) = std::sync::mpsc::channel::<()>();
                let thread = std::thread::spawn(move || {
                    crate::cpu_affinity::pin(&[cpu]).unwrap();
                    // SAFETY: the call has no arguments and cannot fail.
                    let mut own = RunDelay::of_thread(unsafe { libc::gettid() }).unwrap();
                    while own.read().unwrap() < ENOUGH {}
                    waited.send(()).unwrap();
                    // It goes on, so that the other has enough, too.
                    while ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {}
                });
                (end, thread)
            })
            .collect();
        ends.iter().for_each(|_| has_waited.recv().unwrap());
        let counted = delay.read().unwrap();
        for (end, thread) in ends {
            drop(end);
            thread.join().unwrap();
        }
        // Other tests' threads wait, too: there is no telling how much it may be at most.
        assert!(2 * ENOUGH <= counted, "{counted}");
    }

    #[test]
    fn a_process_that_is_gone_has_no_reading() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut delay = TaskDelay::of_process(child.id().cast_signed()).unwrap();
        assert!(delay.read().is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(delay.read(), None);
    }
}
