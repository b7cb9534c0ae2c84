// SPDX-License-Identifier: Apache-2.0
use crate::events::event::HandlerContext;
use crate::events::handlers;
use crate::program::threads::undisturbed;
use crate::program::warnings;
use crate::segment::attach::attach;
use crate::segment::mapped::attached;
use crate::segment::ring_ownership;
use core::cell::Cell;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use tare_log_segment::layout::rules;
use tare_log_segment::{ChannelId, Configuration, Handler};
use tare_shm::syscall;

/// The channel of this name, made if there is none; 0, whose events are discarded, if none can be.
/// `asked` is what the program wants done with its events.
pub fn open(name: &[u8], asked: Option<Configuration>) -> ChannelId {
    let Some((region, process)) = attach() else { return 0 };
    let asked = asked.map(Configuration::or_defaults);
    let opened = undisturbed(|| {
        let _only_one = Lock::take(&region.opening);
        let channel = process.open(name, syscall::gettid(), asked);
        (channel, process.changes.load(Relaxed))
    });
    let Some((channel, changes)) = opened else { return 0 };
    let channel = channel.unwrap_or_else(|| {
        warnings::CHANNELS.say();
        0
    });
    // Rules hold from the first event on.
    ring_ownership::await_rules(process, rules::ANY, || {
        process.ruled_changes.load(Acquire).wrapping_sub(changes) as i32 >= 0
    });
    if matches!(process.configuration(channel).handler, Handler::Id | Handler::FoxEnd) {
        // What the program writes into the file itself, the file already has a name for; and
        // there is a socket to ask with.
        ring_ownership::await_collector(500, || {
            process.told_changes.load(Acquire).wrapping_sub(changes) as i32 >= 0
        });
    }
    channel
}

/// Events of the channel are discarded from now on, whatever else was asked for.
pub fn close(channel: ChannelId) {
    let Some((region, process)) = attached() else { return };
    let Some(known) = process.channels.get(usize::from(channel)) else { return };
    let _only_one = Lock::take(&region.opening);
    if known.closed.load(Relaxed) != 0 {
        return;
    }
    process.close(channel);
    // What the handler has kept back of a channel that never found a ring, the collector has.
    if let Some(writer) = ring_ownership::writer(region, process) {
        let configuration = process.configuration(channel);
        handlers::close(&HandlerContext {
            region,
            process,
            writer,
            id: channel,
            channel: known,
            configuration,
            author: &Cell::new(None),
        });
    }
}

/// A lock in wiped memory: a child of fork finds it free. Not for signal handlers. Who waits
/// sleeps: the thread that has it may be of a lower priority.
struct Lock<'word>(&'word AtomicU32);

impl<'word> Lock<'word> {
    fn take(word: &'word AtomicU32) -> Self {
        while word.compare_exchange(0, 1, AcqRel, Relaxed).is_err() {
            while word.load(Acquire) != 0 {
                syscall::sleep(100_000);
            }
        }
        Self(word)
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}
