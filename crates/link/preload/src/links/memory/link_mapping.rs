// SPDX-License-Identifier: Apache-2.0
//! The memory of a link, and places in it.

use core::sync::atomic::AtomicU8;
use libc::iovec;
use tare_link_segment::{Direction, Link};

/// A direction of a link.
#[derive(Clone, Copy)]
pub enum DirectionIndex {
    Outgoing = 0,
    Incoming = 1,
}

/// Memory of a link.
#[derive(Clone, Copy)]
pub struct LinkMapping {
    pub link: Link,
    pub outgoing: &'static Direction,
    pub incoming: &'static Direction,
    /// The first bytes of what this end sends, and of what it receives.
    pub rings: [&'static [AtomicU8]; 2],
}

impl LinkMapping {
    pub fn new(link: Link) -> Option<Self> {
        Some(Self {
            link,
            outgoing: link.outgoing()?,
            incoming: link.incoming()?,
            rings: [link.outgoing_ring()?, link.incoming_ring()?],
        })
    }
}

/// The parts of a ring where `length` bytes from place `from` on are.
pub fn ring_iovecs(ring: &[AtomicU8], capacity: u64, from: u64, length: u64) -> [iovec; 2] {
    let size = (capacity as usize).min(ring.len());
    let start = from as usize & (size - 1);
    let length = (length as usize).min(size);
    let first = length.min(size - start);
    let base: *mut u8 = ring.as_ptr().cast_mut().cast();
    [
        iovec { iov_base: base.wrapping_add(start).cast(), iov_len: first },
        iovec { iov_base: base.cast(), iov_len: length - first },
    ]
}
