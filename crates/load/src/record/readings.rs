// SPDX-License-Identifier: Apache-2.0
//! What else the machine did during a slice.

use super::procfs::{MachineTime, RunDelay, TaskDelay};
use crate::clock::{Nanoseconds, try_read};
use crate::cpu_affinity::cpus_of;
use std::collections::BTreeSet;
use std::io;

/// The kernel's kinds of CPU clocks, in the lowest bits of a clock's number (CPUCLOCK_SCHED,
/// of a process and of a thread).
const PROCESS_CLOCK: libc::clockid_t = 2;
const THREAD_CLOCK: libc::clockid_t = 6;

/// Cumulative readings at one moment, ns; `None` where there is no such reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readings {
    /// That any tasks ran on the CPUs that generator and services may use.
    pub machine_cpu_time: Option<Nanoseconds>,
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
            machine_cpu_time: difference(self.machine_cpu_time, earlier.machine_cpu_time),
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
pub struct Process {
    clock: libc::clockid_t,
    delay: TaskDelay,
    cpus: BTreeSet<usize>,
}

impl Process {
    pub fn open(pid: libc::pid_t) -> io::Result<Self> {
        let delay = TaskDelay::of_process(pid)?;
        Ok(Self { clock: (!pid << 3) | PROCESS_CLOCK, delay, cpus: cpus_of(pid) })
    }

    /// How many files it keeps open.
    pub fn files(&self) -> usize {
        self.delay.files()
    }
}

/// Everything that is read at a slice's borders, kept open.
pub struct Gauges {
    machine: Option<MachineTime>,
    generator_delay: Vec<RunDelay>,
    generator_clocks: Vec<libc::clockid_t>,
    /// By target.
    services: Vec<Vec<Process>>,
}

impl Gauges {
    /// `threads` are the thread identifiers of the generator, `services` the processes
    /// of each target.
    pub fn open(threads: &[libc::pid_t], services: Vec<Vec<Process>>) -> Self {
        let delays = threads.iter().map(|thread| RunDelay::of_thread(*thread));
        let own = threads.iter().flat_map(|thread| cpus_of(*thread));
        let others = services.iter().flatten().flat_map(|process| process.cpus.iter().copied());
        Self {
            machine: MachineTime::open(own.chain(others).collect()).ok(),
            // Of all threads or none: a sum over some of them would be taken for the whole.
            generator_delay: delays.collect::<io::Result<_>>().unwrap_or_default(),
            generator_clocks: threads.iter().map(|thread| (!thread << 3) | THREAD_CLOCK).collect(),
            services,
        }
    }

    /// Reads everything that concerns one target's slice.
    pub fn read(&mut self, target: usize) -> Readings {
        let service = &mut self.services[target];
        let cpu_time = sum(service.iter().map(|process| try_read(process.clock)));
        let machine = self.machine.as_mut().and_then(MachineTime::read);
        Readings {
            machine_cpu_time: machine.map(|times| times.cpu_time),
            steal: machine.map(|times| times.steal),
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

#[cfg(test)]
#[path = "readings_test.rs"]
mod tests;
