// SPDX-License-Identifier: Apache-2.0
//! What is known of a thread of the kernel: its writer, and which virtual thread of Java on it
//! wrote the last events in its ring.

use core::arch::{asm, global_asm};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicPtr, AtomicU32};
use tare_log_segment::Writer;

/// Memory of each thread, in the initial-exec model; zero in a new one.
#[repr(C, align(16))]
pub struct Carrier {
    writer: AtomicPtr<Writer>,
    /// The number of a virtual thread, which is not 0.
    author: AtomicU32,
}

const _: () = assert!(size_of::<Carrier>() == 16);

global_asm!(
    ".section .tbss.tare_log_carrier,\"awT\",%nobits",
    ".p2align 4",
    ".globl tare_log_carrier",
    ".hidden tare_log_carrier",
    ".type tare_log_carrier, %object",
    ".size tare_log_carrier, 16",
    "tare_log_carrier:",
    ".zero 16",
    ".previous",
);

impl Carrier {
    /// That of the calling thread.
    pub fn this() -> &'static Self {
        let this: *const Self;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: reads the thread pointer and a constant of the linker's.
        unsafe {
            asm!(
                "mov {this}, qword ptr fs:[0]",
                "add {this}, qword ptr [rip + tare_log_carrier@GOTTPOFF]",
                this = out(reg) this,
                options(pure, nomem, nostack),
            );
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        unsafe {
            asm!(
                "mrs {this}, tpidr_el0",
                "adrp {offset}, :gottprel:tare_log_carrier",
                "ldr {offset}, [{offset}, :gottprel_lo12:tare_log_carrier]",
                "add {this}, {this}, {offset}",
                this = out(reg) this,
                offset = out(reg) _,
                options(pure, nomem, nostack),
            );
        }
        // SAFETY: it lives as long as the thread, and is atomics alone.
        unsafe { &*this }
    }

    pub fn author(&self) -> u32 {
        self.author.load(Relaxed)
    }

    /// The writer of this thread, if it has a ring: in the child of a fork it has none.
    pub fn writer(&self) -> Option<&'static Writer> {
        // SAFETY: null, or a writer, which is never unmapped.
        unsafe { self.writer.load(Relaxed).as_ref() }.filter(|writer| writer.ring().is_some())
    }

    pub fn keep(&self, writer: Option<&'static Writer>, author: u32) {
        let writer = writer.map_or(ptr::null_mut(), |writer| ptr::from_ref(writer).cast_mut());
        self.writer.store(writer, Relaxed);
        self.author.store(author, Relaxed);
    }
}
