// SPDX-License-Identifier: Apache-2.0
//! Logs what the fast path has left over.

use crate::events::event::{Author, HandlerContext, Payload};
use crate::events::handlers;
use crate::program::threads::undisturbed;
use crate::segment::attach::attached_or_forked;
use crate::segment::ring_ownership;
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use tare_log_segment::layout::mode;
use tare_log_segment::{ChannelId, Writer};

/// Logs an event. `writer` is the one that the thread used last; the
/// result is the one to use next.
#[cold]
#[inline(never)]
pub fn log(
    writer: Option<&'static Writer>,
    id: ChannelId,
    payload: Payload<'_>,
) -> Option<&'static Writer> {
    log_as(&mut None, writer, id, payload)
}

/// As `log`, for a runtime that lets threads of its own run on those of the kernel: an event
/// that goes into the ring stands behind a record of the thread `author`, which is then taken.
pub fn log_as(
    author: &mut Option<Author>,
    writer: Option<&'static Writer>,
    id: ChannelId,
    payload: Payload<'_>,
) -> Option<&'static Writer> {
    let (region, process) = attached_or_forked()?;
    let channel = process.channels.get(id as usize)?;
    let is_kept = id != 0 && process.modes[id as usize].load(Relaxed) != mode::NULL;
    let no_ring = || {
        process.unserved.fetch_add(is_kept.into(), Relaxed);
    };
    let known = writer.filter(|writer| writer.ring().is_some());
    let Some(writer) = known.or_else(|| ring_ownership::writer(region, process)) else {
        no_ring();
        return None;
    };
    if !is_kept {
        return Some(writer);
    }
    let table = &process.tables[region.place(writer)];
    let configuration = process.configuration_in(table, id);
    let author = Cell::from_mut(author);
    let context = HandlerContext { region, process, writer, id, channel, configuration, author };
    if writer.is_busy() {
        // Another handler that jumps out of this one would keep the ring for ever; and so it is for
        // each event, once one has jumped out of the fast path.
        undisturbed(|| {
            if let Some(other) = ring_ownership::borrow(region, process, writer) {
                handlers::handle(HandlerContext { writer: other, ..context }, payload);
                ring_ownership::give_back(other);
            } else {
                no_ring();
            }
        });
    } else {
        handlers::handle(context, payload);
    }
    Some(writer)
}
