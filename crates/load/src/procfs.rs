// SPDX-License-Identifier: Apache-2.0
//! Numbers from /proc, read again and again from files that stay open.

use crate::clock::Nanoseconds;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// Time that the hypervisor took from all CPUs of this machine.
pub struct Steal {
    file: File,
    tick: Nanoseconds,
}

impl Steal {
    pub fn open() -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        Ok(Self { file: File::open("/proc/stat")?, tick: 1_000_000_000 / ticks.max(1) })
    }

    /// Since boot, ns, in whole ticks of the kernel (10 ms).
    pub fn read(&mut self) -> Option<Nanoseconds> {
        let mut line = [0; 256];
        let length = self.file.read_at(&mut line, 0).ok()?;
        steal_ticks(&line[..length]).map(|ticks| ticks * self.tick)
    }
}

/// The eighth number of the line `cpu  user nice system idle iowait irq softirq steal ...`.
fn steal_ticks(stat: &[u8]) -> Option<i64> {
    let line = stat.split(|byte| *byte == b'\n').next()?;
    str::from_utf8(line).ok()?.strip_prefix("cpu ")?.split_whitespace().nth(7)?.parse().ok()
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

/// Run delay summed over the threads of a process. A thread that ends takes its
/// share along: the sum counts on from the threads that are left.
pub struct TaskDelay {
    pid: libc::pid_t,
    tasks: Vec<(RunDelay, Nanoseconds)>,
    total: Nanoseconds,
}

impl TaskDelay {
    pub fn of_process(pid: libc::pid_t) -> io::Result<Self> {
        let mut delay = Self { pid, tasks: Vec::new(), total: 0 };
        delay.list()?;
        Ok(delay)
    }

    /// Increase since the process was first read, ns.
    pub fn read(&mut self) -> Option<Nanoseconds> {
        let mut gone = false;
        for (task, last) in &mut self.tasks {
            match task.read() {
                Some(now) => {
                    self.total += now - *last;
                    *last = now;
                }
                None => gone = true,
            }
        }
        if gone {
            self.list().ok()?;
        }
        Some(self.total)
    }

    fn list(&mut self) -> io::Result<()> {
        self.tasks.clear();
        for entry in fs::read_dir(format!("/proc/{}/task", self.pid))? {
            // A thread may end between being listed and being opened.
            let Ok(file) = File::open(entry?.path().join("schedstat")) else { continue };
            let mut task = RunDelay { file };
            if let Some(now) = task.read() {
                self.tasks.push((task, now));
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
    fn the_steal_of_all_cpus_is_found() {
        let stat = b"cpu  11937 1 4718 196984 1380 2 122 357 0 0\ncpu0 1 1 1 1 1 1 1 9 0 0\n";
        assert_eq!(steal_ticks(stat), Some(357));
        assert_eq!(steal_ticks(b"cpu  1 2 3\n"), None);
        assert!(Steal::open().unwrap().read().is_some());
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
    fn a_process_that_is_gone_has_no_reading() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut delay = TaskDelay::of_process(child.id().cast_signed()).unwrap();
        assert!(delay.read().is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(delay.read(), None);
    }
}
