// SPDX-License-Identifier: Apache-2.0
use clap::{Parser, Subcommand};
use std::time::Duration;
use tare_map::{Events, Method};

const EXAMPLES: &str = "\
Examples:
  A live view until q:
    sudo tare map
  The edges of the next ten seconds:
    sudo tare map --duration 10
  The same as one JSON object:
    sudo tare map --duration 10 --json
  The same as a picture:
    sudo tare map --duration 10 --dot | dot -Tsvg > map.svg
";

/// Show which programs of this host talk to which services, from the kernel's sockets
///
/// On a terminal it is a live view, unless --duration or a format is given.
#[derive(Debug, Parser)]
#[command(
    name = "tare-map",
    bin_name = "tare map",
    version,
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Trace for this time, then print the edges [default: until q or Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// Print one JSON object
    #[arg(long, group = "format")]
    pub json: bool,
    /// Print one JSON object per interval, with totals since the start
    #[arg(long, group = "format")]
    pub jsonl: bool,
    /// Print the columns that `tare map schema` lists
    #[arg(long, group = "format")]
    pub csv: bool,
    /// Print a picture for Graphviz
    #[arg(long, group = "format")]
    pub dot: bool,
    /// Print a flowchart for Mermaid
    #[arg(long, group = "format")]
    pub mermaid: bool,
    /// How edges are found [default: bundle; poll without the rights for BPF]
    #[arg(long, value_name = "METHOD", value_enum)]
    pub method: Option<Method>,
    /// What --method stream sends
    #[arg(long, value_name = "EVENTS", value_enum, default_value_t = Events::Setup)]
    pub events: Events,
    /// Time between two readings, if something is printed or lost at each [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub interval: Option<Duration>,
    /// Room for this number of edges; the rest is folded into one edge
    #[arg(long, value_name = "NUMBER", default_value_t = 32_768,
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub max_edges: u32,
    /// Room for events on their way to --method stream
    #[arg(long, value_name = "MIB", default_value_t = 16,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub buffer: u32,
    /// Add the cost of the tracer to the JSON output or to the table
    #[arg(long, conflicts_with_all = ["csv", "dot", "mermaid"])]
    pub tracer_stats: bool,
}

impl Arguments {
    pub fn interval(&self) -> Duration {
        self.interval.unwrap_or(Duration::from_secs(1))
    }

    /// Whether nothing asks for a result at the end.
    pub fn wants_view(&self) -> bool {
        let has_format = self.json || self.jsonl || self.csv || self.dot || self.mermaid;
        self.duration.is_none() && !has_format
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the columns of --csv
    Schema {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// A time such as `5`, `5s`, `500ms` or `2m`.
fn time(text: &str) -> Result<Duration, String> {
    let split = text.find(|character: char| character.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("found the unit {unit}, expected ms, s, m or h")),
    };
    let seconds = number.parse::<f64>().map_err(|_| "expected a number, such as 10s".to_owned())?;
    match Duration::try_from_secs_f64(seconds * factor) {
        Ok(time) if time >= Duration::from_millis(1) && time <= Duration::from_secs(31_536_000) => {
            Ok(time)
        }
        _ => Err("expected a time from 1ms to 1 year".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("5"), Ok(Duration::from_secs(5)));
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time("1.5m"), Ok(Duration::from_secs(90)));
        for wrong in ["", "x", "5 days", "0", "-1s", "1e99h", "nan"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
