// SPDX-License-Identifier: Apache-2.0
//! tare-link: runs a program whose TCP connections to other linked programs of this host use shared
//! memory.

mod arguments;
mod check;
mod launch;
mod ps;
mod run;
mod seccomp_filter;
mod stats;

use arguments::{Arguments, Other};
use std::process::ExitCode;

fn main() -> ExitCode {
    tare_command::run(|arguments: Arguments| match arguments.other {
        Some(Other::Check { json, program }) => check::check(&program, json),
        Some(Other::Ps { json }) => ps::ps(json),
        Some(Other::Schema { json }) => stats::schema(json),
        None => run::run(&arguments.run),
    })
}
