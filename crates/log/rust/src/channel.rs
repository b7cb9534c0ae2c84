// SPDX-License-Identifier: Apache-2.0
use crate::Options;
use std::cell::Cell;
use tare_clock::ticks;
use tare_log_producer::Payload;
use tare_log_segment::{ChannelId, Writer};

thread_local! {
    /// The writer that this thread used last.
    static WRITER: Cell<Option<&'static Writer>> = const { Cell::new(None) };
}

/// A stream of events with a name: a number that can be copied and kept anywhere.
///
/// It stays open, whatever becomes of its copies, until `close` is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Channel(ChannelId);

impl Channel {
    /// The channel of this name; made if there is none. One that is open stays as it is.
    ///
    /// Looks through all names: to be called once, and not in a signal handler.
    pub fn open(name: &str) -> Self {
        Self(tare_log_producer::open(name.as_bytes(), None))
    }

    /// The same, and says what is done with the channel's events from now on.
    ///
    /// ```
    /// use tare_log::{Channel, Handler, Options, Policy};
    ///
    /// let requests = Channel::open_with(
    ///     "requests",
    ///     Options { handler: Handler::Downsample, a: 10, policy: Policy::Wait, ..Options::default() },
    /// );
    /// requests.log(1);
    /// ```
    pub fn open_with(name: &str, options: Options) -> Self {
        Self(tare_log_producer::open(name.as_bytes(), Some(options)))
    }

    /// Logs `number` now, from any thread or signal handler.
    #[inline]
    pub fn log(self, number: i64) {
        WRITER.with(|of_thread| {
            let writer = of_thread.get();
            if !writer.is_some_and(|writer| writer.log(self.0, number, ticks)) {
                of_thread.set(tare_log_producer::log(writer, self.0, Payload::Number(number)));
            }
        });
    }

    /// Logs `bytes` now, of which the first 4096 are kept.
    #[inline]
    pub fn bytes(self, bytes: &[u8]) {
        WRITER.with(|of_thread| {
            let payload = Payload::Bytes(bytes);
            of_thread.set(tare_log_producer::log(of_thread.get(), self.0, payload));
        });
    }

    /// Whether the next event of this thread may have to wait, for room or for what a handler
    /// does: a language whose threads take turns lets go of its turn before.
    #[doc(hidden)]
    pub fn may_wait(self) -> bool {
        WRITER.get().is_none_or(|writer| writer.may_wait(self.0))
    }

    /// Discards the channel's events, those of its copies too, until it is opened again.
    pub fn close(self) {
        tare_log_producer::close(self.0);
    }
}
