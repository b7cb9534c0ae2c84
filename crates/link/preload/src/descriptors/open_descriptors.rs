// SPDX-License-Identifier: Apache-2.0
//! The open descriptors of the process, as /proc/self/fd lists them.

use crate::descriptors::reserved_descriptors;
use core::ffi::{CStr, c_int};
use tare_shm::syscall::{self, call};

/// Descriptors that are looked at.
const MOST: u32 = 1 << 20;

/// Whether any of the first `most` has what `is_meant`, which gets the folder and a name in it.
pub fn any(most: u32, is_meant: impl FnMut(c_int, &CStr) -> bool) -> bool {
    let Ok(folder) = syscall::open(c"/proc/self/fd", libc::O_RDONLY | libc::O_DIRECTORY) else {
        return false;
    };
    let found = find(folder, most, is_meant);
    syscall::close(folder);
    found.is_some()
}

/// The highest one of the program.
pub fn highest() -> Option<usize> {
    let mut highest = None;
    reserved_descriptors::while_settled(|| {
        any(MOST, |folder, name| {
            let digits = name.to_bytes().iter().try_fold(0usize, |sum, digit| {
                Some(sum.checked_mul(10)? + char::from(*digit).to_digit(10)? as usize)
            });
            let is_own =
                |fd: usize| fd == folder as usize || reserved_descriptors::is_hidden(fd as c_int);
            highest = highest.max(digits.filter(|fd| !is_own(*fd)));
            false
        })
    });
    highest
}

/// `None` if there is none.
fn find(folder: c_int, most: u32, mut is_meant: impl FnMut(c_int, &CStr) -> bool) -> Option<()> {
    let mut seen = 0;
    let mut entries = [0u8; 1024];
    while seen < most {
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
            if is_meant(folder, name) {
                return Some(());
            }
            (rest, seen) = (others, seen + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptors::test_lock;
    use core::sync::atomic::AtomicBool;
    use core::sync::atomic::Ordering::Relaxed;

    #[test]
    fn highest_descriptor_is_that_of_the_program() {
        let _alone = test_lock::alone();
        let null = syscall::open(c"/dev/null", libc::O_RDONLY).unwrap();
        let high = syscall::duplicate(null, 900).unwrap();
        assert!(highest() >= Some(high as usize));
        let hid = reserved_descriptors::hide(high).unwrap();
        assert!(highest() < Some(high as usize) && highest() >= Some(null as usize));
        reserved_descriptors::close(hid);
        syscall::close(null);
    }

    #[test]
    fn no_other_thread_sees_a_descriptor_that_is_about_to_be_hidden() {
        let _alone = test_lock::alone();
        let lowest = syscall::limit(libc::RLIMIT_NOFILE)
            .unwrap()
            .min(reserved_descriptors::MOST as u64) as usize
            / 2;
        let is_over = AtomicBool::new(false);
        let highest = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    let null = syscall::open(c"/dev/null", libc::O_RDONLY).unwrap();
                    reserved_descriptors::close(reserved_descriptors::hide(null).unwrap());
                }
            });
            let highest = (0..10_000).filter_map(|_| highest()).max();
            is_over.store(true, Relaxed);
            highest
        });
        assert!(highest.is_some_and(|highest| highest < lowest), "{highest:?}");
    }
}
