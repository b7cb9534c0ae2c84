// SPDX-License-Identifier: Apache-2.0
use crate::attach::attached_or_forked;
use crate::{claim, handover};
use core::sync::atomic::Ordering::Relaxed;
use tare_clock::ticks;
use tare_log_segment::record::{
    LONGEST, number_tag, short_tag, thread_record, wide_tag, wide_words,
};
use tare_log_segment::{Channel, ChannelId, Configuration, Handler, Policy, Writer};
use tare_shm::{Errno, syscall};

/// What an event says besides its time.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'bytes> {
    Number(i64),
    /// What is longer than `LONGEST` is cut off there.
    Bytes(&'bytes [u8]),
}

/// A thread that the kernel does not know.
#[derive(Clone, Copy, Debug)]
pub struct Author {
    pub number: u32,
    /// Filled up with 0.
    pub name: [u64; 2],
}

/// Between two looks at a full ring.
const PAUSE_NS: i64 = 50_000;

/// Logs what the fast path has left over. `writer` is the one that the thread used last; the
/// result is the one to use next.
#[cold]
#[inline(never)]
pub fn log(
    writer: Option<&'static Writer>,
    channel: ChannelId,
    payload: Payload<'_>,
) -> Option<&'static Writer> {
    log_as(&mut None, writer, channel, payload)
}

/// As `log`, for a runtime that lets threads of its own run on those of the kernel: an event
/// that goes into the ring stands behind a record of the thread `author`, which is then taken.
pub fn log_as(
    author: &mut Option<Author>,
    writer: Option<&'static Writer>,
    channel: ChannelId,
    payload: Payload<'_>,
) -> Option<&'static Writer> {
    let (region, process) = attached_or_forked()?;
    let known = process.channels.get(channel as usize)?;
    let writer = match writer.filter(|writer| writer.ring().is_some()) {
        Some(writer) => writer,
        None => claim::claim(region, process).or_else(|| {
            process.unserved.fetch_add(1, Relaxed);
            None
        })?,
    };
    if process.is_on.load(Relaxed) == 0 || channel == 0 {
        return Some(writer);
    }
    let configuration = Configuration::of(known);
    if !is_wanted(configuration, known, payload) {
        return Some(writer);
    }
    if writer.is_busy() {
        if let Some(other) = claim::borrow(region, process) {
            put(author, other, known, channel, payload, configuration.policy);
            claim::give_back(other);
        }
    } else {
        put(author, writer, known, channel, payload, configuration.policy);
    }
    Some(writer)
}

/// Whether the handler lets the event into the ring.
fn is_wanted(configuration: Configuration, channel: &Channel, payload: Payload<'_>) -> bool {
    let number = match payload {
        Payload::Number(number) => number as u64,
        Payload::Bytes(bytes) => bytes.len() as u64,
    };
    let (a, b) = (u64::from(configuration.a), u64::from(configuration.b));
    match configuration.handler {
        Handler::Null => false,
        Handler::Buffered => true,
        Handler::Downsample => {
            channel.count.fetch_add(1, Relaxed).checked_rem(a).is_none_or(|rest| rest == 0)
        }
        Handler::XOfY => number & b.saturating_sub(1) < a,
    }
}

fn put(
    author: &mut Option<Author>,
    writer: &Writer,
    channel: &Channel,
    id: ChannelId,
    payload: Payload<'_>,
    policy: Policy,
) {
    let now = ticks();
    let thread = author.as_ref().map(|author| thread_record(now, author.number, author.name));
    let thread = thread.as_ref().map_or(&[][..], |record| record);
    let mut words = [0; wide_words(LONGEST)];
    let record = match payload {
        Payload::Number(number) => match short_tag(id, number) {
            Some(tag) => {
                words[..2].copy_from_slice(&[now, tag]);
                &words[..2]
            }
            None => wide(&mut words, now, number_tag(id), &number.to_le_bytes()),
        },
        Payload::Bytes(bytes) => {
            let bytes = &bytes[..bytes.len().min(LONGEST)];
            wide(&mut words, now, wide_tag(id, bytes.len()), bytes)
        }
    };
    while !writer.push_after(thread, record) {
        match policy {
            Policy::Wait if handover::is_served() => {
                handover::wake();
                sleep();
            }
            Policy::Overwrite if writer.overwrite() => {}
            _ => {
                writer.lose(now);
                channel.lost.fetch_add(1, Relaxed);
                break;
            }
        }
    }
    if writer.is_filling() {
        handover::wake();
    }
    *author = None;
}

fn wide<'words>(
    words: &'words mut [u64; wide_words(LONGEST)],
    now: u64,
    tag: u64,
    bytes: &[u8],
) -> &'words [u64] {
    words[0] = now;
    words[1] = tag;
    for (word, part) in words[2..].iter_mut().zip(bytes.chunks(8)) {
        let mut whole = [0; 8];
        whole[..part.len()].copy_from_slice(part);
        *word = u64::from_le_bytes(whole);
    }
    &words[..wide_words(bytes.len())]
}

fn sleep() {
    let pause = libc::timespec { tv_sec: 0, tv_nsec: PAUSE_NS };
    let arguments = [(&raw const pause).addr(), 0, 0, 0, 0, 0];
    // SAFETY: `pause` lives as long as the call; an interruption is as good as the end.
    let _: Result<usize, Errno> = unsafe { syscall::call(libc::SYS_nanosleep, arguments) };
}
