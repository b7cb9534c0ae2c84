// SPDX-License-Identifier: Apache-2.0
use std::fmt;
use std::process::ExitCode;

/// An error as the user reads it: one line that says what is wrong, where, and
/// what to do.
#[derive(Debug)]
pub enum Failure {
    /// Wrong arguments or bad input: exit code 2.
    Input(String),
    /// The work itself failed: exit code 1.
    Work(String),
}

impl Failure {
    pub fn input(message: impl fmt::Display) -> Self {
        Self::Input(one_line(&message))
    }

    pub fn work(message: impl fmt::Display) -> Self {
        Self::Work(one_line(&message))
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Work(_) => ExitCode::from(1),
            Self::Input(_) => ExitCode::from(2),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Input(message) | Self::Work(message)) = self;
        formatter.write_str(message)
    }
}

/// `message` in one line, without the numbers that the standard library puts after the
/// system's own words.
pub(crate) fn one_line(message: &impl fmt::Display) -> String {
    let mut line = message.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    while let Some(start) = line.find(" (os error ")
        && let Some(length) = line[start..].find(')')
    {
        line.replace_range(start..=start + length, "");
    }
    line
}

/// Turns an error of a library into a [`Failure`], with what was being done.
pub trait ResultExt<T> {
    fn or_input(self, doing: impl fmt::Display) -> Result<T, Failure>;
    fn or_failed(self, doing: impl fmt::Display) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> ResultExt<T> for Result<T, E> {
    fn or_input(self, doing: impl fmt::Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::input(format_args!("{doing}: {error}")))
    }

    fn or_failed(self, doing: impl fmt::Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::work(format_args!("{doing}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_several_lines_becomes_one() {
        assert_eq!(Failure::input("first\n  second").to_string(), "first second");
    }

    #[test]
    fn the_systems_errors_are_words_without_a_number() {
        let error = std::io::Error::from_raw_os_error(2);
        let failure = Failure::work(format_args!("{error}; {error}"));
        let words = "No such file or directory";
        assert_eq!(failure.to_string(), format!("{words}; {words}"));
    }
}
