// SPDX-License-Identifier: Apache-2.0
use tare_command::terminal::printable;
use tare_map::{Cost, Edge, Protocol, Reading, Role};

/// A table for people.
pub fn table(reading: &Reading) -> String {
    let mut rows = vec![
        [
            "PROGRAM", "LOCAL", "", "PEER", "SERVICE", "ACTIVE", "OPENED", "FAILED", "SENT",
            "RECEIVED", "RTT",
        ]
        .map(str::to_owned),
    ];
    rows.extend(reading.edges.iter().map(row));
    let mut widths = [0; 11];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).enumerate().map(|(number, (cell, width))| {
            if number >= 5 { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text += "\n";
    }
    text
}

/// What the tracer cost: a line for the process, and one for each BPF program that ran.
pub fn cost(cost: &Cost) -> String {
    let mut text = format!("tracer: {:.3} s of CPU time\n", cost.cpu_seconds);
    for (name, runs) in cost.programs.iter().filter(|(_, runs)| runs.runs > 0) {
        let milliseconds = runs.nanoseconds as f64 / 1e6;
        text += &format!("  {name}: {milliseconds:.3} ms in {} runs\n", runs.runs);
    }
    text
}

fn row(edge: &Edge) -> [String; 11] {
    let program = if edge.program.is_empty() { "?" } else { &edge.program };
    let arrow = match edge.role {
        Role::Client => "->",
        Role::Server => "<-",
        Role::Other => "--",
    };
    let service = match &edge.service {
        Some(name) => format!("{} ({name})", edge.port),
        None => edge.port.to_string(),
    };
    let rtt = edge.rtt.map(|rtt| format!("{} us", rtt.sum_us / rtt.count));
    [
        printable(program, &[]).into_owned(),
        edge.local.to_string(),
        arrow.to_owned(),
        edge.peer.to_string(),
        service,
        // Without ends of connections, their bytes are not known either.
        if edge.bytes_known || edge.protocol == Protocol::Udp {
            edge.active.to_string()
        } else {
            "?".to_owned()
        },
        edge.opened.to_string(),
        edge.failed.values().sum::<u64>().to_string(),
        bytes_of(edge, edge.bytes_sent),
        bytes_of(edge, edge.bytes_received),
        rtt.unwrap_or_default(),
    ]
}

/// Bytes of an edge, or why they are not known.
pub fn bytes_of(edge: &Edge, number: u64) -> String {
    match edge.linked {
        Some(true) => "linked".to_owned(),
        _ if edge.has_bytes() => bytes(number),
        _ => "?".to_owned(),
    }
}

/// A number of bytes with a unit.
pub fn bytes(number: u64) -> String {
    let mut size = number as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if size < 1024.0 {
            return if unit == "B" { format!("{number} B") } else { format!("{size:.1} {unit}") };
        }
        size /= 1024.0;
    }
    format!("{size:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_a_line_per_program_that_ran() {
        let runs = |runs, nanoseconds| tare_map::Runs { runs, nanoseconds };
        let programs = [("drain".to_owned(), runs(0, 0)), ("tcp_state".to_owned(), runs(4, 1500))];
        let text = cost(&Cost { cpu_seconds: 0.25, programs: programs.into() });
        assert_eq!(text, "tracer: 0.250 s of CPU time\n  tcp_state: 0.002 ms in 4 runs\n");
    }

    #[test]
    fn bytes_have_units() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(5 << 40), "5.0 TiB");
    }
}
