// SPDX-License-Identifier: Apache-2.0
use crate::run::LAYER;
use serde_json::json;
use std::ffi::OsStr;
use std::process::ExitCode;
use tare_command::Failure;
use tare_command::program::{self, Fitness, Program};

/// Prints whether a program can be linked.
pub fn check(name: &OsStr, as_json: bool) -> Result<ExitCode, Failure> {
    let found = program::examine(name, "PROGRAM")?;
    let reason = obstacle(&found);
    let shown = found.path.display();
    if as_json {
        let program = found.path.to_string_lossy();
        let answer =
            json!({"program": program, "can_be_linked": reason.is_none(), "reason": reason});
        tare_command::print(format_args!("{answer}\n"))?;
    } else {
        match &reason {
            None => tare_command::print(format_args!("{shown}: can be linked\n"))?,
            Some(reason) => {
                tare_command::print(format_args!("{shown}: cannot be linked: {reason}\n"))?;
            }
        }
    }
    Ok(if reason.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Why the connections of a program stay TCP.
fn obstacle(found: &Program) -> Option<String> {
    let reason = match found.fitness {
        Fitness::Fit => return None,
        Fitness::Go => "it is a Go program, which makes system calls without libc".to_owned(),
        Fitness::Unreadable => {
            "this user may not read it; check it as its owner or as root".to_owned()
        }
        Fitness::Unfit(reason) => format!("{reason}, so {LAYER} cannot be loaded into it"),
    };
    let is_script = found.file != found.path;
    let interpreter = format!("its interpreter is {}, and ", found.file.display());
    Some(format!("{}{reason}", if is_script { &interpreter } else { "" }))
}
