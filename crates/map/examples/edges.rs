// SPDX-License-Identifier: Apache-2.0
//! Traces for five seconds and prints every edge: `sudo cargo run -p tare-map --example edges`.

use std::thread::sleep;
use std::time::Duration;
use tare_map::{Error, Options, Tracer};

fn main() -> Result<(), Error> {
    let mut tracer = Tracer::start(&Options::default())?;
    sleep(Duration::from_secs(5));
    let reading = tracer.read_now()?;
    for edge in &reading.edges {
        println!(
            "{:?} {:?} {} -> {}:{} {} bytes",
            edge.program, edge.role, edge.local, edge.peer, edge.port, edge.bytes_sent
        );
    }
    if let Some(missing) = reading.describe_missing() {
        println!("{missing}");
    }
    Ok(())
}
