// SPDX-License-Identifier: Apache-2.0
//! What is recorded, as rows of the tables `samples` and `machine`.

use super::readings::Measured;
use super::sample::Sample;
use std::io;
use tare_tables::{Cell, Writer};

pub const SAMPLES: [&str; 11] = [
    "condition",
    "seq",
    "slice",
    "source",
    "intended_ns",
    "start_ns",
    "duration_ns",
    "ok",
    "status",
    "error",
    "bytes",
];

pub const MACHINE: [&str; 8] =
    ["condition", "slice", "start_ns", "duration_ns", "subject", "metric", "value", "unit"];

/// `seq` counts the requests to the target, from 0.
pub fn write_sample(
    writer: &mut Writer,
    condition: &str,
    seq: i64,
    sample: &Sample,
) -> io::Result<()> {
    let outcome = sample.outcome;
    writer.row(&[
        Cell::Text(condition),
        Cell::Int(seq),
        Cell::Int(sample.slice.into()),
        Cell::Text("client"),
        Cell::Int(sample.intended),
        Cell::Int(sample.start),
        Cell::Int(sample.duration),
        Cell::Bool(outcome.error.is_none()),
        Cell::Int(outcome.status.into()),
        outcome.error.map_or(Cell::Null, |error| Cell::Text(error.name())),
        Cell::Int(outcome.bytes.cast_signed()),
    ])
}

/// One row for each reading that there is.
pub fn write_measured(writer: &mut Writer, condition: &str, slice: &Measured) -> io::Result<()> {
    let increase = &slice.increase;
    let readings = [
        ("machine", "cpu_time", increase.machine_cpu_time, "ns"),
        ("machine", "steal", increase.steal, "ns"),
        ("generator", "run_delay", increase.generator_run_delay, "ns"),
        ("generator", "cpu_time", increase.generator_cpu_time, "ns"),
        ("generator", "requests", Some(slice.requests.cast_signed()), "count"),
        ("service", "run_delay", increase.service_run_delay, "ns"),
        ("service", "cpu_time", increase.service_cpu_time, "ns"),
    ];
    for (subject, metric, value, unit) in readings {
        let Some(value) = value else { continue };
        writer.row(&[
            Cell::Text(condition),
            Cell::Int(slice.slice.into()),
            Cell::Int(slice.start),
            Cell::Int(slice.duration),
            Cell::Text(subject),
            Cell::Text(metric),
            Cell::Float(value as f64),
            Cell::Text(unit),
        ])?;
    }
    Ok(())
}
