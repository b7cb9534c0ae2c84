// SPDX-License-Identifier: Apache-2.0
use crate::{Channel, Options};

/// Something that begins and ends: two channels, `NAME>` and `NAME<`, whose events are read as
/// pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    begin: Channel,
    end: Channel,
}

impl Span {
    /// As [`Channel::open`].
    pub fn open(name: &str) -> Self {
        Self::of(name, Channel::open)
    }

    /// As [`Channel::open_with`]. A handler that leaves events out leaves out halves of pairs.
    pub fn open_with(name: &str, options: Options) -> Self {
        Self::of(name, |name| Channel::open_with(name, options))
    }

    /// Of its beginning and of its end.
    #[doc(hidden)]
    pub fn channels(self) -> [Channel; 2] {
        [self.begin, self.end]
    }

    fn of(name: &str, open: impl Fn(&str) -> Channel) -> Self {
        Self { begin: open(&format!("{name}>")), end: open(&format!("{name}<")) }
    }

    /// Logs the beginning, with `number`; the end is logged, with the same number, when the
    /// scope is dropped, by the thread that drops it.
    #[inline]
    pub fn enter(self, number: i64) -> Scope {
        self.begin(number);
        Scope { span: self, number }
    }

    /// Logs the beginning alone.
    #[inline]
    pub fn begin(self, number: i64) {
        self.begin.log(number);
    }

    /// Logs the end alone.
    #[inline]
    pub fn end(self, number: i64) {
        self.end.log(number);
    }
}

/// A span that has begun.
#[derive(Debug)]
#[must_use = "the span ends where this is dropped"]
pub struct Scope {
    span: Span,
    number: i64,
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        self.span.end(self.number);
    }
}
