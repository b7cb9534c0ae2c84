// SPDX-License-Identifier: Apache-2.0
use crate::record::hook::Hook;
use crate::record::mapped;
use crate::thread::Thread;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use tare_hook_segment::{Event, EventRing};
use tare_shm::syscall;

/// The two ends of a socket.
#[derive(Clone, Copy, Default)]
pub struct Ends {
    pub family: u16,
    pub local_port: u16,
    pub remote_port: u16,
    pub local: [u8; 16],
    pub remote: [u8; 16],
}

impl Ends {
    pub fn of(fd: c_int) -> Self {
        let (family, local_port, local) = address(libc::SYS_getsockname, fd);
        let (_, remote_port, remote) = address(libc::SYS_getpeername, fd);
        Self { family, local_port, remote_port, local, remote }
    }
}

/// Family, port and address; zero where there is none.
fn address(call: i64, fd: c_int) -> (u16, u16, [u8; 16]) {
    let mut bytes = [0u8; 28];
    let mut length = bytes.len() as libc::socklen_t;
    let arguments = [fd as usize, bytes.as_mut_ptr().addr(), (&raw mut length).addr(), 0, 0, 0];
    // SAFETY: the kernel writes at most `length` bytes of the address, and the length.
    if unsafe { syscall::call(call, arguments) }.is_err() {
        return Default::default();
    }
    let family = u16::from_ne_bytes([bytes[0], bytes[1]]);
    let port = u16::from_be_bytes([bytes[2], bytes[3]]);
    let mut address = [0; 16];
    match c_int::from(family) {
        libc::AF_INET => address[..4].copy_from_slice(&bytes[4..8]),
        libc::AF_INET6 => address.copy_from_slice(&bytes[8..24]),
        _ => return (family, 0, address),
    }
    (family, port, address)
}

impl Hook {
    /// Puts events into this thread's ring, or counts them as lost. Not for two at a time of
    /// one thread: a signal handler must not come in between.
    pub fn record(self, events: impl ExactSizeIterator<Item = impl FnOnce(u32, u32) -> Event>) {
        let block = Thread::get();
        let (pid, tid) = block.identity();
        let Some(ring) = self.ring(block, tid).and_then(EventRing::ring) else {
            self.shared.lost.fetch_add(events.len() as u64, Relaxed);
            return;
        };
        for make in events {
            ring.push(&make(pid, tid).encode());
        }
    }

    /// Takes a ring for this thread, unless it has one.
    pub fn claim_ring(self) {
        let block = Thread::get();
        let (_, tid) = block.identity();
        self.ring(block, tid);
    }

    /// The ring that the thread owns; at first, a free one. None for a thread whose number the
    /// kernel was not asked for in time.
    fn ring(self, block: &Thread, tid: u32) -> Option<&'static EventRing> {
        let place = match (block.state.claim.load(Relaxed) as usize).checked_sub(1) {
            Some(place) => place,
            None if tid == 0 || mapped::is_shrunk() => return None,
            None => {
                let place = self.shared.claim(tid).filter(|place| mapped::keep_ring(*place))?;
                block.state.claim.store(place as u32 + 1, Relaxed);
                place
            }
        };
        self.shared.rings.get(place)
    }
}
