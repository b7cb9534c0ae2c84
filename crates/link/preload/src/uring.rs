// SPDX-License-Identifier: Apache-2.0
//! Whether the program has an io_uring, which it can get by raw system calls: it moves bytes of
//! connections without a call that the library sees.

use crate::kernel;
use core::ffi::{CStr, c_int};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicI64};
use tare_shm::syscall::{self, call};

const NAME: &[u8] = b"anon_inode:[io_uring]";
/// Milliseconds between two looks.
const OFTEN: i64 = 1000;
/// Descriptors that are looked at.
const MOST: u32 = 4096;

static IS_FOUND: AtomicBool = AtomicBool::new(false);
static LOOKED: AtomicI64 = AtomicI64::new(i64::MIN);

/// As of the last second.
pub fn is_used() -> bool {
    let now = kernel::now();
    let looked = LOOKED.load(Relaxed);
    if now.saturating_sub(looked) >= OFTEN
        && LOOKED.compare_exchange(looked, now, Relaxed, Relaxed).is_ok()
    {
        IS_FOUND.store(look().is_some(), Relaxed);
    }
    IS_FOUND.load(Relaxed)
}

/// `None` if there is none.
fn look() -> Option<()> {
    let folder = syscall::open(c"/proc/self/fd", libc::O_RDONLY | libc::O_DIRECTORY).ok()?;
    let found = find(folder);
    syscall::close(folder);
    found
}

fn find(folder: c_int) -> Option<()> {
    let mut seen = 0;
    let mut entries = [0u8; 1024];
    while seen < MOST {
        let arguments = [folder as usize, entries.as_mut_ptr().addr(), entries.len(), 0, 0, 0];
        // SAFETY: the kernel writes at most this number of bytes.
        let length =
            unsafe { call(libc::SYS_getdents64, arguments) }.ok().filter(|got| *got > 0)?;
        let mut rest = entries.get(..length)?;
        // Each is an inode, an offset (8 bytes each), its length (2), its type (1) and its name.
        while let Some([low, high]) = rest.get(16..18) {
            let (entry, others) =
                rest.split_at_checked(u16::from_ne_bytes([*low, *high]).into())?;
            let name = CStr::from_bytes_until_nul(entry.get(19..)?).ok()?;
            if is_ring(folder, name) {
                return Some(());
            }
            (rest, seen) = (others, seen + 1);
        }
    }
    None
}

fn is_ring(folder: c_int, name: &CStr) -> bool {
    let mut target = [0u8; NAME.len()];
    let place = target.as_mut_ptr().addr();
    let arguments = [folder as usize, name.as_ptr().addr(), place, target.len(), 0, 0];
    // SAFETY: the kernel writes at most this number of bytes.
    let read = unsafe { call(libc::SYS_readlinkat, arguments) };
    read == Ok(NAME.len()) && target == NAME
}
