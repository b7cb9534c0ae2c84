// SPDX-License-Identifier: Apache-2.0
use serde_json::{Map, Value};
use std::io;
use std::process::ExitCode;
use tare_command::Failure;
use tare_link_segment::{Counter, Reasons, Statistics};
use tare_tables::{COSTS, Cell, Vacant};

/// The columns of the table `costs` that are written.
const COLUMNS: &[&str] = &["layer", "metric", "count"];

/// Writes what was counted up to now as one Arrow stream.
pub fn write(statistics: &Statistics, file: Vacant) -> io::Result<()> {
    let mut writer = file.begin(&COSTS, COLUMNS)?;
    for counter in Counter::ALL {
        let count = Cell::Int(i64::try_from(statistics.get(*counter)).unwrap_or(i64::MAX));
        writer.row(&[Cell::Text("link"), Cell::Text(counter.name()), count])?;
    }
    writer.finish()
}

/// Prints the tables that are written.
pub fn schema(as_json: bool) -> Result<ExitCode, Failure> {
    if as_json {
        tare_command::print(format_args!("{}\n", tare_tables::describe(&[(&*COSTS, COLUMNS)])))?;
    } else {
        tare_command::print(format_args!("{}: {}\n", COSTS.name, COLUMNS.join(", ")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the programs of a run counted, as a table or as a JSON object.
pub fn text(statistics: &Statistics, as_json: bool) -> String {
    let counts = Counter::ALL.iter().map(|counter| (counter.name(), statistics.get(*counter)));
    if as_json {
        let mut object: Map<String, Value> =
            counts.map(|(name, count)| (name.to_owned(), count.into())).collect();
        object.extend(reasons_as_json(statistics));
        return format!("{}\n", Value::Object(object));
    }
    let mut text = String::from("all programs of this run:\n");
    for counter in Counter::ALL {
        let (count, name) = (statistics.get(*counter), counter.name());
        let shown = name.replace('_', " ");
        let line = format!("{count:>15}  {shown:<20}  {}", meaning(name));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    for (_, title, reasons) in why(statistics) {
        let mut title = Some(title);
        for (reason, count) in reasons.all() {
            title.take().into_iter().for_each(|title| text.push_str(&format!("{title}:\n")));
            text.push_str(&format!("{count:>15}  {}\n", reason.text()));
        }
    }
    text
}

/// What was counted by reasons: its key, its title, and the counts.
pub fn why(statistics: &Statistics) -> [(&'static str, &'static str, &Reasons); 3] {
    [
        ("stayed_tcp_because", "connections that stayed TCP", &statistics.stayed),
        ("left_because", "connections that went back to TCP for good", &statistics.left),
        ("downgraded_because", "changes from shared memory to TCP", &statistics.downgraded),
    ]
}

/// An object of counts for each kind, by the codes of the reasons that occurred.
pub fn reasons_as_json(statistics: &Statistics) -> impl Iterator<Item = (String, Value)> {
    why(statistics).into_iter().map(|(key, _, reasons)| {
        let counts: Map<_, _> =
            reasons.all().map(|(reason, count)| (reason.code().to_owned(), count.into())).collect();
        (key.to_owned(), counts.into())
    })
}

fn meaning(counter: &str) -> &'static str {
    match counter {
        "programs" => "programs that loaded the library",
        "links" => "connections that used shared memory",
        "upgrades" => "changes from TCP to shared memory",
        "downgrades" => "changes from shared memory to TCP",
        "ring_bytes_sent" => "bytes sent through shared memory",
        "ring_bytes_received" => "bytes received through shared memory",
        "tcp_bytes_sent" => "bytes of linked connections that were sent through TCP",
        "tcp_bytes_received" => "bytes of linked connections that were received through TCP",
        "ring_sends" => "calls that sent through shared memory",
        "ring_receives" => "calls that received through shared memory",
        "wakes" => "times that the other end slept and was woken",
        "spins" => "waits that ended before the thread slept",
        "vain_spins" => "waits after which the thread slept",
        "left" => "connections that went back to TCP for good",
        "reset" => "connections that were reset because the other end did not answer",
        "refused" => "connections that stayed TCP because descriptors or memory were missing",
        "unserved" => "times that a program could not start its service thread",
        _ => "",
    }
}
