// SPDX-License-Identifier: Apache-2.0
//! The end of a round trip: each event asks the start, by a datagram from the collector's socket.
//! The collector takes the answer: the program never waits for one.

use crate::events::event::{HandlerContext, Payload};
use crate::segment::borrowed_descriptors;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use tare_clock::Source;
use tare_log_segment::probe::Probe;
use tare_shm::syscall::{self, Errno};

/// The event's time is that of the question, which may have waited for its socket.
#[inline(never)]
pub fn log(context: &HandlerContext<'_>, payload: Payload<'_>) {
    let number = context.channel.asked_starts.fetch_add(1, Relaxed);
    let ticks = context.writer.within(|| {
        let socket = socket(context);
        // The other's clock says when in between: so what the answer takes is counted from before.
        let sent_ns = Source::Monotonic.now();
        let ticks = context.now();
        let payload = payload.number();
        let probe = Probe { is_answer: false, number, ticks, sent_ns, payload };
        // What cannot be sent is as good as lost on the way.
        let _ = socket.map(|fd| send(fd, &probe));
        ticks
    });
    context.put(ticks, payload);
}

fn socket(context: &HandlerContext<'_>) -> Option<c_int> {
    let slot = context.region.sockets.get(usize::from(context.id))?;
    let (fd, _) = borrowed_descriptors::get(context.region, slot, context.channel.lent()?)?;
    Some(fd)
}

fn send(fd: c_int, probe: &Probe) -> Result<usize, Errno> {
    let bytes = probe.bytes();
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    let send = || {
        let arguments = [fd as usize, bytes.as_ptr().addr(), bytes.len(), flags as usize, 0, 0];
        // SAFETY: the kernel reads the bytes.
        unsafe { syscall::call(libc::SYS_sendto, arguments) }
    };
    // An error of the datagram before is told once, in the place of sending.
    match send() {
        Err(Errno(libc::ECONNREFUSED)) => send(),
        other => other,
    }
}
