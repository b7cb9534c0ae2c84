// SPDX-License-Identifier: Apache-2.0
//! tare-link: runs a program whose TCP connections to other linked programs of this host use shared
//! memory.

mod arguments;
mod launch;
mod session;
mod stats;

use arguments::{Arguments, Other};
use std::process::ExitCode;
use tare_command::{Failure, program};

fn main() -> ExitCode {
    tare_command::run(|arguments: Arguments| match arguments.other {
        Some(Other::Check { program }) => check(&program),
        None => session::run(&arguments.run),
    })
}

fn check(name: &std::ffi::OsStr) -> Result<ExitCode, Failure> {
    let found = program::check(name, session::LAYER)?;
    tare_command::print(format_args!("{}: can be linked\n", found.display()))?;
    Ok(ExitCode::SUCCESS)
}
