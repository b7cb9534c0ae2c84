// SPDX-License-Identifier: Apache-2.0
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use tare_link_segment::Pattern;

/// Run a program with its TCP connections carried over shared memory.
///
/// A connection uses shared memory if the program at its other end runs under `tare link` too, on
/// this machine and as the same user. All other connections stay TCP.
#[derive(Debug, Parser)]
#[command(
    name = "tare-link",
    bin_name = "tare link",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Arguments {
    #[command(flatten)]
    pub run: Run,
    #[command(subcommand)]
    pub other: Option<Other>,
}

#[derive(Debug, Args)]
pub struct Run {
    /// Use shared memory from the first message on. Default: from the second message, or after
    /// 16 KiB
    #[arg(long)]
    pub eager: bool,
    /// Link only connections with this address or port at one of their ends: ADDRESS, PORT or
    /// ADDRESS:PORT, as in 127.0.0.1, 6379 and [::1]:80. Can be repeated
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = pattern)]
    pub only: Vec<Pattern>,
    /// Link no connections with this address or port at one of their ends. Can be repeated
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = pattern)]
    pub except: Vec<Pattern>,
    /// Link also connections to programs of this user; the programs at the other ends must allow
    /// this user, too. Can be repeated
    #[arg(long, value_name = "UID")]
    pub allow_uid: Vec<u32>,
    /// Bytes that the rings of each program may have together, as in 64M: further connections, and
    /// links that were silent, use TCP until there is memory
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size)]
    pub memory: u64,
    /// Let threads that wait for a message sleep at once. Default: they look for up to 50
    /// microseconds before, as long as that pays
    #[arg(long)]
    pub no_spin: bool,
    /// Refuse io_uring with a seccomp filter, also to raw system calls. This sets no_new_privs:
    /// set-user-ID programs that the program starts then run without their owner's rights
    #[arg(long)]
    pub seccomp: bool,
    /// At the end, print to stderr how many connections were linked, and how many bytes used shared
    /// memory
    #[arg(long)]
    pub stats: bool,
    /// At the end, print the statistics to stderr as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Write the statistics to this Arrow stream, at least once per second and at the end
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub enum Other {
    /// Check whether a program can be linked, and print the reason if not
    ///
    /// The exit code is 0 if it can, and 1 if it cannot.
    Check {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// Its name or path
        program: OsString,
    },
    /// List the linked connections of this user's running programs
    ///
    /// The first table has a line per `tare link` command, the second a line per linked connection.
    Ps {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show the tables that this program writes
    Schema {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// ADDRESS:PORT, or one of them.
fn pattern(text: &str) -> Result<Pattern, String> {
    let bytes = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse() {
        Ok(Pattern { address: None, port: Some(port) })
    } else if let Ok(address) = inner.parse() {
        Ok(Pattern { address: Some(bytes(address)), port: None })
    } else if let Ok(both) = text.parse::<SocketAddr>() {
        Ok(Pattern { address: Some(bytes(both.ip())), port: Some(both.port()) })
    } else {
        Err("expected an address, a port or both, as in 127.0.0.1, 6379 and [::1]:80".to_owned())
    }
}

/// A number of bytes with K, M or G behind it.
fn size(text: &str) -> Result<u64, String> {
    let cut = |letters: [char; 2]| text.strip_suffix(letters);
    let letters = [(['K', 'k'], 10), (['M', 'm'], 20), (['G', 'g'], 30)];
    let found = letters.into_iter().find_map(|(letters, shift)| Some((cut(letters)?, shift)));
    let (digits, shift) = found.unwrap_or((text, 0));
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| "expected a number of bytes, as in 65536, 64K, 256M and 1G".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_powers_of_1024() {
        for (text, bytes) in [("0", 0), ("65536", 65536), ("64K", 65536), ("1g", 1 << 30)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "K", "-1", "1T", "1.5G", "99999999999G"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn patterns_are_addresses_ports_or_both() {
        let mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 9];
        let own = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        for (text, address, port) in [
            ("6379", None, Some(6379)),
            (":6379", None, Some(6379)),
            ("10.0.0.9", Some(mapped), None),
            ("10.0.0.9:80", Some(mapped), Some(80)),
            ("::1", Some(own), None),
            ("[::1]", Some(own), None),
            ("[::1]:80", Some(own), Some(80)),
        ] {
            assert_eq!(pattern(text), Ok(Pattern { address, port }), "{text}");
        }
        for text in ["", "localhost:80", "65536", "10.0.0.9:", "10.0.0:80", "[::1"] {
            assert!(pattern(text).is_err(), "{text}");
        }
    }
}
