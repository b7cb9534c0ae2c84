// SPDX-License-Identifier: Apache-2.0
use super::*;
use std::process::{Child, Command};
use std::time::Duration;

/// A process that uses CPU time until it is dropped.
struct Busy(Child);

impl Busy {
    fn start() -> Self {
        Self(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
    }

    fn pid(&self) -> libc::pid_t {
        self.0.id().cast_signed()
    }

    fn open(&self) -> Process {
        Process::open(self.pid()).unwrap()
    }

    /// User and system time of /proc/PID/stat, ns, in whole ticks.
    fn cpu_time_in_ticks(&self) -> Nanoseconds {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let ticks: i64 = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(|tick| tick.parse::<i64>().unwrap())
            .sum();
        ticks * 10_000_000
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn cpu_time_agrees_with_proc_stat_within_ticks() {
    let service = Busy::start();
    let thread = this_thread();
    let mut gauges = Gauges::open(&[thread], vec![vec![service.open()], vec![]]);
    std::thread::sleep(Duration::from_millis(200));
    let below = service.cpu_time_in_ticks();
    let readings = gauges.read(0);
    let above = service.cpu_time_in_ticks();
    let cpu_time = readings.service_cpu_time.unwrap();
    // User and system time are cut to ticks one by one.
    assert!(below <= cpu_time && cpu_time <= above + 20_000_000, "{below} {cpu_time} {above}");
    assert!(cpu_time > 0);
}

#[test]
fn run_delay_agrees_with_schedstat() {
    let service = Busy::start();
    let delay = || {
        let path = format!("/proc/{}/schedstat", service.pid());
        let text = std::fs::read_to_string(path).unwrap();
        text.split_whitespace().nth(1).unwrap().parse::<i64>().unwrap()
    };
    let before = delay();
    let mut gauges = Gauges::open(&[], vec![vec![service.open()]]);
    let opened = delay();
    let first = gauges.read(0).service_run_delay.unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let least = delay() - opened;
    let second = gauges.read(0).service_run_delay.unwrap();
    let most = delay() - before;
    assert!(first >= 0 && least <= second && second <= most, "{least} {second} {most}");
}

#[test]
fn a_target_without_processes_has_no_readings_of_its_service() {
    let mut gauges = Gauges::open(&[this_thread()], vec![vec![]]);
    let first = gauges.read(0);
    let increase = gauges.read(0).since(&first);
    assert_eq!((increase.service_cpu_time, increase.service_run_delay), (None, None));
    assert!(increase.generator_cpu_time.unwrap() > 0);
    assert!(increase.generator_run_delay.unwrap() >= 0 && increase.steal.unwrap() >= 0);
}

#[test]
fn a_process_that_ends_has_no_reading_any_more() {
    let service = Busy::start();
    let mut gauges = Gauges::open(&[], vec![vec![service.open()]]);
    assert!(gauges.read(0).service_cpu_time.is_some());
    drop(service);
    let readings = gauges.read(0);
    assert_eq!((readings.service_cpu_time, readings.service_run_delay), (None, None));
}

#[test]
fn a_process_that_does_not_exist_is_refused() {
    assert!(Process::open(libc::pid_t::MAX).is_err());
}

/// This thread's number.
fn this_thread() -> libc::pid_t {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::gettid() }
}
