// SPDX-License-Identifier: Apache-2.0
//! Events that the program writes into the collector's file itself: each is a block of its own,
//! there when the call returns.

use crate::events::event::{HandlerContext, Payload};
use crate::events::single_event_block::Single;
use crate::program::clock;
use crate::program::limits::largest_file;
use crate::segment::borrowed_descriptors;
use crate::segment::region::Slot;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use tare_log_segment::block::{Header, Kind, LARGEST};
use tare_log_segment::layout::MOST_RINGS;
use tare_shm::syscall::{self, Errno};

/// Of the file. The child of a fork has it, too.
static FILE: Slot = Slot::new(0);

/// Where the event cannot be written it goes the way of others, and is counted.
#[inline(never)]
pub fn log(context: &HandlerContext<'_>, payload: Payload<'_>) {
    let now = clock::now(context.process);
    let is_written = context.writer.within(|| write(context, now, payload).is_some());
    let channel = context.channel;
    if is_written {
        channel.written.fetch_add(1, Relaxed);
    } else {
        channel.deferred.fetch_add(1, Relaxed);
        context.put(now, payload);
    }
}

fn write(context: &HandlerContext<'_>, ticks: u64, payload: Payload<'_>) -> Option<()> {
    let (process, file) = context.process.lent()?;
    let (fd, length) = borrowed_descriptors::get(context.region, &FILE, file)?;
    // The kernel ends a program that writes behind its limit, and others write there, too.
    let limit = largest_file();
    if limit != u64::MAX && limit.saturating_sub(length) < LARGEST as u64 {
        return None;
    }
    write_block(fd, process, context, ticks, payload)
}

/// Apart, so that the block is on no stack while the file is asked for.
#[inline(never)]
fn write_block(
    fd: c_int,
    process: u32,
    context: &HandlerContext<'_>,
    ticks: u64,
    payload: Payload<'_>,
) -> Option<()> {
    let (tid, name) = context.whose();
    let mut thread = [0; 16];
    for (place, half) in thread.chunks_exact_mut(8).zip(name) {
        place.copy_from_slice(&half.to_le_bytes());
    }
    let ring = MOST_RINGS + 1 + context.region.place(context.writer);
    let header = Header { ring: ring as u32, tid, thread, ..Header::of(Kind::Events, process) };
    let mut block = Single::new();
    let parts = block.write(header, ticks, context.id, payload);
    let vectors = parts
        .map(|part| libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() });
    let length: usize = parts.iter().map(|part| part.len()).sum();
    loop {
        let arguments = [fd as usize, vectors.as_ptr().addr(), vectors.len(), 0, 0, 0];
        // SAFETY: the kernel reads the parts.
        match unsafe { syscall::call(libc::SYS_writev, arguments) } {
            Err(Errno(libc::EINTR)) => {}
            // Of one that was cut off, readers leave out what there is.
            done => return (done == Ok(length)).then_some(()),
        }
    }
}
