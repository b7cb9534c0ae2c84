// SPDX-License-Identifier: Apache-2.0
//! What else the machine did during a slice.

use crate::clock::{Nanoseconds, try_read};
use crate::procfs::{RunDelay, Steal, TaskDelay};
use std::io;

/// Cumulative readings at one moment, ns; `None` where there is no such reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readings {
    pub steal: Option<Nanoseconds>,
    pub generator_run_delay: Option<Nanoseconds>,
    pub generator_cpu_time: Option<Nanoseconds>,
    pub service_run_delay: Option<Nanoseconds>,
    pub service_cpu_time: Option<Nanoseconds>,
}

impl Readings {
    /// The increase since an earlier moment.
    pub fn since(&self, earlier: &Self) -> Self {
        let difference = |now: Option<i64>, then: Option<i64>| Some(now? - then?);
        Self {
            steal: difference(self.steal, earlier.steal),
            generator_run_delay: difference(self.generator_run_delay, earlier.generator_run_delay),
            generator_cpu_time: difference(self.generator_cpu_time, earlier.generator_cpu_time),
            service_run_delay: difference(self.service_run_delay, earlier.service_run_delay),
            service_cpu_time: difference(self.service_cpu_time, earlier.service_cpu_time),
        }
    }
}

/// One slice as the leader saw it.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    pub target: u16,
    pub slice: i32,
    pub start: Nanoseconds,
    pub duration: Nanoseconds,
    pub requests: u64,
    pub increase: Readings,
}

/// A process whose time is read.
struct Process {
    clock: libc::clockid_t,
    delay: TaskDelay,
}

/// Everything that is read at a slice's borders, kept open.
pub struct Gauges {
    steal: Option<Steal>,
    generator_delay: Vec<RunDelay>,
    generator_clocks: Vec<libc::clockid_t>,
    /// By target.
    services: Vec<Vec<Process>>,
}

impl Gauges {
    /// `threads` are the thread identifiers of the generator, `watched` the processes
    /// of each target.
    pub fn open(threads: &[libc::pid_t], watched: &[Vec<libc::pid_t>]) -> io::Result<Self> {
        let process = |pid: &libc::pid_t| match TaskDelay::of_process(*pid) {
            Ok(delay) => Ok(Process { clock: process_clock(*pid), delay }),
            Err(error) => Err(io::Error::new(error.kind(), format!("process {pid}: {error}"))),
        };
        Ok(Self {
            steal: Steal::open().ok(),
            generator_delay: threads
                .iter()
                .filter_map(|thread| RunDelay::of_thread(*thread).ok())
                .collect(),
            generator_clocks: threads.iter().map(|thread| thread_clock(*thread)).collect(),
            services: watched
                .iter()
                .map(|pids| pids.iter().map(process).collect::<io::Result<_>>())
                .collect::<io::Result<_>>()?,
        })
    }

    /// Reads everything that concerns one target's slice.
    pub fn read(&mut self, target: usize) -> Readings {
        let service = &mut self.services[target];
        let cpu_time = sum(service.iter().map(|process| try_read(process.clock)));
        Readings {
            steal: self.steal.as_mut().and_then(Steal::read),
            generator_run_delay: sum(self.generator_delay.iter_mut().map(RunDelay::read)),
            generator_cpu_time: sum(self.generator_clocks.iter().map(|clock| try_read(*clock))),
            service_run_delay: sum(service.iter_mut().map(|process| process.delay.read())),
            service_cpu_time: cpu_time,
        }
    }
}

/// The sum if there is anything to sum and all of it could be read.
fn sum(values: impl Iterator<Item = Option<Nanoseconds>>) -> Option<Nanoseconds> {
    let mut total = None;
    for value in values {
        total = Some(total.unwrap_or(0) + value?);
    }
    total
}

/// The kernel's numbers of CPU clocks (CPUCLOCK_SCHED, of a process and of a thread).
fn process_clock(pid: libc::pid_t) -> libc::clockid_t {
    (!pid << 3) | 2
}

fn thread_clock(thread: libc::pid_t) -> libc::clockid_t {
    (!thread << 3) | 6
}

#[cfg(test)]
#[path = "readings_test.rs"]
mod tests;
