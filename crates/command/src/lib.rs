// SPDX-License-Identifier: Apache-2.0
//! What every native command shares: arguments, one-line errors, exit codes,
//! signals, files of rules, the life of a child, and the processes that share memory.

mod child;
mod costs_file;
mod failure;
mod file_watch;
pub mod links;
mod new_file;
mod permissions;
pub mod preload;
pub mod processes;
pub mod program;
pub mod reading;
pub mod regular_file;
pub mod runtime;
mod segment_error;
pub mod segments;
mod signal_dispositions;
mod signals;
pub mod terminal;
mod trust;
mod user_warnings;

pub use child::{Child, exit_code};
pub use costs_file::CostsFile;
use failure::one_line;
pub use failure::{Failure, ResultExt};
pub use file_watch::Watch;
pub use new_file::{NewFile, NewFolder, open_in_place};
pub use segment_error::SegmentError;
pub use signals::{Signal, Signals};
pub use user_warnings::UserWarnings;

use terminal::{Output, printable};

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::fmt::Display;
use std::io::{self, Write};
use std::process::{ExitCode, Termination};

/// Parses the arguments and runs `body`; every way out is an exit code of the
/// contract (0 done, 1 failed, 2 usage or bad input) and every error one line.
/// A `body` that has an exit code of its own (a signal's, a child's) returns it.
pub fn run<Arguments: Parser, Done: Termination>(
    body: impl FnOnce(Arguments) -> Result<Done, Failure>,
) -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error, &Arguments::command()),
    };
    match body(arguments) {
        Ok(done) => done.report(),
        Err(failure) => end(&failure),
    }
}

fn end(failure: &Failure) -> ExitCode {
    say(failure);
    failure.exit_code()
}

fn refuse(error: &clap::Error, command: &clap::Command) -> ExitCode {
    if !error.use_stderr() {
        // --help and --version
        return match read_enough(error.print().and_then(|()| io::stdout().flush())) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => end(&failure),
        };
    }
    say(format_args!("{}; see --help", reason(error, command)));
    ExitCode::from(2)
}

/// What is wrong, in one line: without the usage, tips and the way to --help that follow it.
fn reason(error: &clap::Error, command: &clap::Command) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a command is missing".to_owned();
    }
    if let Some(program) = program_without_dashes(error, command) {
        return format!("found {program:?}, expected -- before the program: -- {program} ...");
    }
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let end = ["\n\nUsage: ", "\n\n  tip: ", "\n\nFor more information"]
        .iter()
        .filter_map(|rest| text.find(rest))
        .min()
        .unwrap_or(text.len());
    one_line(&&text[..end])
}

/// The program that a command runs, where it was given without `--` before it.
fn program_without_dashes(error: &clap::Error, command: &clap::Command) -> Option<String> {
    let runs_a_program =
        |command: &clap::Command| command.get_positionals().any(clap::Arg::is_last_set);
    let (kind, runs) = match error.kind() {
        // Where a subcommand could be, a first word is taken for one.
        ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, runs_a_program(command)),
        ErrorKind::UnknownArgument => {
            let below = command.get_subcommands().any(runs_a_program);
            (ContextKind::InvalidArg, runs_a_program(command) || below)
        }
        _ => return None,
    };
    match error.get(kind) {
        Some(ContextValue::String(word)) if runs && !word.starts_with('-') => Some(word.clone()),
        _ => None,
    }
}

/// Tells the user, in one line on stderr, under this program's name. Where nobody listens
/// that is no reason to stop.
pub fn say(what: impl Display) {
    let line = one_line(&format_args!("{}: {what}", program()));
    let _ = writeln!(io::stderr(), "{}", printable(&line, &[]));
}

/// Prints a result on stdout.
pub fn print(result: impl Display) -> Result<(), Failure> {
    let mut stdout = Output::lock();
    read_enough(write!(stdout, "{result}").and_then(|()| stdout.flush()))
}

/// Prints JSON and a line break on stdout, with what hides text or changes its order as escapes.
pub fn print_json(json: impl Display) -> Result<(), Failure> {
    print(format_args!("{}\n", terminal::printable_json(&json.to_string())))
}

/// A reader who went away has read enough.
fn read_enough(printed: io::Result<()>) -> Result<(), Failure> {
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::work(format_args!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

fn program() -> String {
    std::env::args_os()
        .next()
        .and_then(|path| {
            let name = std::path::Path::new(&path).file_name()?;
            Some(name.to_string_lossy().into_owned())
        })
        .unwrap_or_else(|| "tare".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[derive(Debug, Parser)]
    #[command(subcommand_required = true, arg_required_else_help = true)]
    struct Bare {
        #[command(subcommand)]
        command: Command,
    }

    #[derive(Debug, clap::Subcommand)]
    enum Command {
        Run {
            #[arg(last = true)]
            command: Vec<String>,
        },
        Do {
            what: String,
            #[arg(long, value_parser = |_: &str| Err::<String, _>("expected one line"))]
            line: Option<String>,
        },
    }

    fn refused(arguments: &[&str]) -> String {
        let arguments = ["program"].iter().chain(arguments);
        reason(&Bare::try_parse_from(arguments).unwrap_err(), &Bare::command())
    }

    #[test]
    fn a_refusal_is_one_line_with_its_reason() {
        assert_eq!(refused(&[]), "a command is missing");
        let missing = "the following required arguments were not provided: <WHAT>";
        assert_eq!(refused(&["do"]), missing);
        assert_eq!(refused(&["od"]), "unrecognized subcommand 'od'");
        let hint = "found \"sleep\", expected -- before the program: -- sleep ...";
        assert_eq!(refused(&["run", "sleep", "1"]), hint);
        assert_eq!(
            refused(&["do", "it", "--line", "a\r\nb"]),
            "invalid value 'a b' for '--line <LINE>': expected one line"
        );
    }
}
