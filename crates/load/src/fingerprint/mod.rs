// SPDX-License-Identifier: Apache-2.0
//! What a program pays for a kernel's services, memory and arithmetic where it runs.

mod arithmetic;
mod kernel;
mod memory;

use crate::arguments::Fingerprint;
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tare_command::Failure;

/// Measures each, and prints one JSON object.
pub fn run(arguments: &Fingerprint) -> Result<ExitCode, Failure> {
    let folder = &arguments.folder;
    let in_folder = |error| Failure::work(format!("{}: {error}", folder.display()));
    let small_write = kernel::small_write(folder).map_err(in_folder)?;
    let [large_write, large_read] = kernel::large_file(folder).map_err(in_folder)?;
    let round_trip = kernel::round_trip()
        .map_err(|error| Failure::work(format!("a connection on 127.0.0.1: {error}")))?;
    let linpack = arithmetic::linpack();
    let found = json!({
        "system_call_ns": kernel::system_call(),
        "small_write_ns": small_write,
        "large_write_ns": large_write,
        "large_read_ns": large_read,
        "round_trip_ns": round_trip,
        "memory_bytes_per_second": memory::triad(arguments.memory),
        "flops_per_second": linpack.flops_per_second,
        "cpu_share": linpack.cpu_share,
    });
    tare_command::print(format!("{found}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The median time in nanoseconds of one of `calls` calls, over `batches` batches.
fn median_ns<Error>(
    batches: usize,
    calls: u32,
    mut call: impl FnMut() -> Result<(), Error>,
) -> Result<f64, Error> {
    let mut times = Vec::with_capacity(batches);
    for _ in 0..batches {
        let begun = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        times.push(begun.elapsed());
    }
    Ok(median(&mut times).as_nanos() as f64 / f64::from(calls))
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
