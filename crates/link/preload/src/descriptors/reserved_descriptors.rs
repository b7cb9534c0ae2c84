// SPDX-License-Identifier: Apache-2.0
//! Descriptors of the library: high numbers that the program does not know of and must not close.

use crate::descriptors::high_descriptors;
use crate::state::lock;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64};
use tare_link_segment::Lock;
use tare_shm::syscall;

/// Numbers up to this can be hidden.
pub const MOST: usize = 1 << 17;

static ARE_HIDDEN: [AtomicU64; MOST / 64] = [const { AtomicU64::new(0) }; MOST / 64];

/// Held while a descriptor becomes hidden or is closed: in between, its number is like the program's.
static LOCK: Lock = Lock::new();

/// There was a hidden descriptor.
static WERE_ANY: AtomicBool = AtomicBool::new(false);

/// Does something while no other thread hides or closes a descriptor; waits for one that does.
pub fn while_settled<T>(what: impl FnOnce() -> T) -> T {
    let held = lock::take(&LOCK);
    let done = what();
    lock::release(&LOCK, held);
    done
}

/// In the child of a fork.
pub fn forked() {
    LOCK.clear();
}

/// Moves a descriptor of the library out of the program's way, as `copy`; closes it and says `None` if
/// there is no room.
pub fn hide(fd: c_int) -> Option<c_int> {
    let copy = copy(fd);
    syscall::close(fd);
    copy
}

/// A hidden copy of a descriptor, close-on-exec; `None` if there is no room. The first ones get
/// numbers from half of the program's limit on, further ones numbers above the limit. If the hard
/// limit does not allow that, the third quarter of the numbers can be the library's: the rest is the
/// program's.
pub fn copy(fd: c_int) -> Option<c_int> {
    let limit = syscall::limit(libc::RLIMIT_NOFILE).unwrap_or(1024);
    while_settled(|| {
        let made = below(fd, limit, FEW)
            .or_else(|| high_descriptors::copy(fd, MOST as u64))
            .or_else(|| below(fd, limit, 4))?;
        WERE_ANY.store(true, Relaxed);
        ARE_HIDDEN[made as usize / 64].fetch_or(1 << (made % 64), Relaxed);
        Some(made)
    })
}

/// The part of the numbers, as its divisor, that the first descriptors of the library get.
const FEW: u64 = 64;

fn below(fd: c_int, limit: u64, part: u64) -> Option<c_int> {
    let limit = limit.min(MOST as u64);
    let moved = syscall::duplicate(fd, limit / 2).ok()?;
    if moved as u64 >= limit / 2 + limit / part {
        syscall::close(moved);
        return None;
    }
    Some(moved)
}

pub fn were_any() -> bool {
    WERE_ANY.load(Relaxed)
}

pub fn is_hidden(fd: c_int) -> bool {
    let Ok(fd) = usize::try_from(fd) else { return false };
    ARE_HIDDEN.get(fd / 64).is_some_and(|word| word.load(Relaxed) & 1 << (fd % 64) != 0)
}

/// Closes a hidden descriptor.
pub fn close(fd: c_int) {
    if is_hidden(fd) {
        while_settled(|| {
            ARE_HIDDEN[fd as usize / 64].fetch_and(!(1 << (fd % 64)), Relaxed);
            syscall::close(fd);
        });
    }
}

/// The first hidden number from `first` on.
pub fn next(first: u32) -> Option<u32> {
    let first = first as usize;
    (first / 64..MOST / 64).find_map(|place| {
        let before = if place == first / 64 { (1 << (first % 64)) - 1 } else { 0 };
        let word = ARE_HIDDEN[place].load(Relaxed) & !before;
        (word != 0).then(|| place as u32 * 64 + word.trailing_zeros())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_descriptors_are_known_until_they_are_closed() {
        let _alone = crate::descriptors::test_lock::alone();
        let fd = hide(syscall::open(c"/dev/null", libc::O_RDONLY).unwrap()).unwrap();
        assert!(is_hidden(fd) && !is_hidden(fd + 1) && !is_hidden(-1));
        assert_eq!(next(fd as u32), Some(fd as u32));
        close(fd);
        assert!(!is_hidden(fd) && next(fd as u32) != Some(fd as u32));
        assert!(syscall::fstat(fd).is_err());
    }
}
