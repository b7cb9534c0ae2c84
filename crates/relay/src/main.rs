// SPDX-License-Identifier: Apache-2.0
//! `tare-relay`: a link between two hosts, with a rate, loss and delay.
//!
//! It makes two network interfaces (TAP devices), and carries every frame from one to the other.
//! Whoever starts it moves one of them into the network namespace of the other host.

mod direction;
mod frame;
mod tap;

use clap::Parser;
use direction::{Direction, Link, Nanoseconds};
use frame::LARGEST;
use std::process::ExitCode;
use tap::Tap;
use tare_command::{Failure, ResultExt};

/// Frames that are read from one interface before the other has its turn.
const BATCH: usize = 64;

/// Join two new network interfaces by a link with a rate, loss and delay, until it is killed.
#[derive(Debug, Parser)]
#[command(name = "tare-relay", version)]
struct Arguments {
    /// The interface that stays in this network namespace.
    near: String,

    /// The interface that is moved into another one.
    far: String,

    /// How much later each frame arrives, in nanoseconds.
    #[arg(long, value_name = "NANOSECONDS", default_value_t = 0)]
    delay: u64,

    /// Bits per second in each direction, Ethernet headers included.
    #[arg(long, value_name = "BITS_PER_SECOND")]
    rate: Option<u64>,

    /// Share of the IP packets that are lost in each direction, from 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    loss: f64,
}

fn main() -> ExitCode {
    tare_command::run(|arguments: Arguments| -> Result<ExitCode, Failure> {
        let link = Link {
            delay: Nanoseconds::try_from(arguments.delay).or_input("--delay")?,
            rate: arguments.rate,
            loss: arguments.loss,
        };
        let open = |name: &str| Tap::open(name).or_failed(format_args!("interface {name}"));
        let taps = [open(&arguments.near)?, open(&arguments.far)?];
        wake_punctually();
        relay(&taps, [Direction::new(link), Direction::new(link)]).or_failed("the link")?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Carries frames until an interface is deleted. `directions[i]` begins at `taps[i]`.
fn relay(taps: &[Tap; 2], mut directions: [Direction; 2]) -> std::io::Result<()> {
    let mut buffer = vec![0; LARGEST];
    loop {
        for (from, direction) in directions.iter_mut().enumerate() {
            for _ in 0..BATCH {
                let Some(frame) = taps[from].read(&mut buffer)? else { break };
                direction.send(now(), frame);
            }
            while let Some(frame) = direction.arrived(now()) {
                taps[1 - from].write(&frame)?;
            }
        }
        let next = directions.iter().filter_map(Direction::next).min();
        tap::wait(taps, next.map(|next| (next - now()).max(0)))?;
    }
}

/// Lets waits end at their time, and not up to 50 µs later.
fn wake_punctually() {
    // SAFETY: no pointers are passed.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// CLOCK_MONOTONIC, by which the kernel waits.
fn now() -> Nanoseconds {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is valid memory; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
