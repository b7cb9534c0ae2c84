// SPDX-License-Identifier: Apache-2.0
//! Who talks to whom on this host, from the kernel's sockets.
//!
//! A [`Tracer`] attaches BPF programs, which keep one record for each connection and add to one
//! [`Edge`] for all flows between a client address and a service. Reading it costs the same
//! whatever the number of messages. When it is dropped, or its process dies, the kernel removes
//! programs and maps.
//!
//! ```no_run
//! let mut tracer = tare_map::Tracer::start(&tare_map::Options::default())?;
//! std::thread::sleep(std::time::Duration::from_secs(1));
//! let reading = tracer.read()?;
//! for edge in &reading.edges {
//!     println!("{} {} -> {}:{}", edge.program, edge.local, edge.peer, edge.port);
//! }
//! # Ok::<(), tare_map::Error>(())
//! ```

mod clock;
mod edges;
mod errno;
mod layout;
mod loader;
mod namespaces;
mod sock_diag;

pub use edges::edge::{
    Completeness, Cost, Direction, Edge, Events, Method, Protocol, Reading, Role, Rtt, Runs,
};
pub use edges::missing::{Missing, Part};
pub use loader::options::Options;
pub use loader::programs::obstacle;
pub use loader::tracer::Tracer;
pub use sock_diag::poll::Poller;

use std::fmt;

/// Why there is no tracer or no reading, in one line.
#[derive(Debug)]
pub struct Error(String);

impl Error {
    fn new(what: impl fmt::Display, reason: impl fmt::Display) -> Self {
        Self(format!("{what}: {reason}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// An error of the loader with its causes, in one line.
fn failed(what: &str, error: &dyn std::error::Error) -> Error {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    Error::new(what, summary(&text))
}

/// The first line, and of the verifier's log the one that says why: the last one before its statistics.
fn summary(text: &str) -> String {
    let Some((first, log)) = text.split_once("Verifier output:") else {
        return text.lines().next().unwrap_or_default().to_owned();
    };
    let is_statistic = |line: &&str| {
        ["verification time", "stack depth", "processed "].iter().any(|name| line.starts_with(name))
    };
    let reason = log.lines().map(str::trim).take_while(|line| !is_statistic(line));
    format!("{}: {}", first.trim_end_matches([' ', '.']), reason.last().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_has_the_reason_of_the_verifier() {
        let log = "the call returned EACCES. Verifier output: 0: R1=ctx()\n1: (85) call 1\n\
                   R2 type=buf expected=fp\nverification time 9 usec\nprocessed 2 insns\n: denied";
        assert_eq!(summary(log), "the call returned EACCES: R2 type=buf expected=fp");
        assert_eq!(summary("no map: denied\nmore"), "no map: denied");
    }
}
