// SPDX-License-Identifier: Apache-2.0
//! Memory of this process alone, and how much of its address space is left.

use crate::syscall::{self, Errno, call};
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

/// Bytes of address space that a library leaves to a program that limits its own.
pub const SPARE: u64 = 16 << 20;

/// Whether the kernel locks what is mapped from now on (MCL_FUTURE of mlockall(2)), or may.
static LOCKS_NEW: AtomicBool = AtomicBool::new(false);

/// The program locks its memory.
pub fn lock_new() {
    LOCKS_NEW.store(true, Relaxed);
}

pub fn locks_new() -> bool {
    LOCKS_NEW.load(Relaxed)
}

/// Allows access to a new mapping without any: what is locked when it is mapped gets memory for each
/// of its pages at once. This one gets it page by page.
///
/// # Safety
/// `base` and `length` are those of a mapping that nothing uses yet.
pub unsafe fn allow_unlocked(base: *mut u8, length: usize, protection: c_int) -> Result<(), Errno> {
    // SAFETY: unused, as the caller promises.
    unsafe {
        call(libc::SYS_munlock, [base.addr(), length, 0, 0, 0, 0])?;
        call(libc::SYS_mprotect, [base.addr(), length, protection as usize, 0, 0, 0]).map(drop)
    }
}

/// Since Linux 4.14.
const MADV_WIPEONFORK: usize = 18;

/// Maps `length` bytes, all 0, where the kernel likes.
pub fn map_private(length: usize) -> Result<*mut u8, Errno> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: a new mapping at an address of the kernel's choice disturbs no other.
    let address = unsafe { call(libc::SYS_mmap, [0, length, protection, flags, usize::MAX, 0]) }?;
    Ok(ptr::with_exposed_provenance_mut(address))
}

/// As `map_private`; in a child process, however it was forked, the bytes are 0 again.
pub fn map_wiped_on_fork(length: usize) -> Result<*mut u8, Errno> {
    let base = map_private(length)?;
    let arguments = [base.addr(), length, MADV_WIPEONFORK, 0, 0, 0];
    // SAFETY: the advice is for the new mapping alone.
    match unsafe { call(libc::SYS_madvise, arguments) } {
        Ok(_) => Ok(base),
        Err(error) => {
            // SAFETY: the mapping has not been given out.
            unsafe { unmap(base, length) };
            Err(error)
        }
    }
}

/// Maps a shared mapping once more, with `length` bytes from its begin on, which its file has.
///
/// # Safety
/// `base` is that of a shared mapping.
pub unsafe fn map_again(base: *mut u8, length: usize) -> Result<*mut u8, Errno> {
    let arguments = [base.addr(), 0, length, libc::MREMAP_MAYMOVE as usize, 0, 0];
    // SAFETY: a length of 0 lets the old mapping be, as mremap(2) has it for shared ones.
    let address = unsafe { call(libc::SYS_mremap, arguments) }?;
    Ok(ptr::with_exposed_provenance_mut(address))
}

/// Gives the pages of a shared mapping back to the kernel: their bytes are 0 from then on, in all
/// processes. Does nothing if they are locked (mlock).
///
/// # Safety
/// `base` and `length` are of a shared, writable mapping, and no process uses its bytes.
pub unsafe fn give_back(base: *mut u8, length: usize) {
    let advice = libc::MADV_REMOVE as usize;
    // SAFETY: unused, as the caller promises.
    let _ = unsafe { call(libc::SYS_madvise, [base.addr(), length, advice, 0, 0, 0]) };
}

/// Takes a mapping away.
///
/// # Safety
/// `base` and `length` are those of a mapping that nothing uses any more.
pub unsafe fn unmap(base: *mut u8, length: usize) {
    // SAFETY: unused, as the caller promises.
    let _ = unsafe { call(libc::SYS_munmap, [base.addr(), length, 0, 0, 0, 0]) };
}

/// Takes the whole pages between two addresses away.
///
/// # Safety
/// They are mapped, and nothing uses them any more.
pub unsafe fn unmap_pages(from: usize, to: usize) {
    let page = page();
    let (first, end) = (from.next_multiple_of(page), to / page * page);
    if first < end {
        // SAFETY: unused, as the caller promises.
        unsafe { unmap(ptr::without_provenance_mut(first), end - first) };
    }
}

/// Bytes of a page.
fn page() -> usize {
    // SAFETY: asks for a number that the kernel has given the program.
    unsafe { libc::getauxval(libc::AT_PAGESZ) as usize }.max(1)
}

/// Whether this process's address space has a limit.
pub fn is_limited() -> bool {
    syscall::limit(libc::RLIMIT_AS).is_ok_and(|most| most != u64::MAX)
}

/// Whether a new mapping of `length` bytes leaves `SPARE` to the limit of this process's address
/// space (RLIMIT_AS), and of its locked memory (RLIMIT_MEMLOCK).
pub fn has_room(length: usize) -> bool {
    leaves_room(syscall::limit(libc::RLIMIT_AS).unwrap_or(u64::MAX), length)
        && (!locks_new() || may_map(length.saturating_add(SPARE as usize)))
}

/// Tries it: whether a limit of locked memory holds for this process, only the kernel knows. What
/// allows no access takes no memory.
fn may_map(length: usize) -> bool {
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    let arguments = [0, length, libc::PROT_NONE as usize, flags, usize::MAX, 0];
    // SAFETY: a new mapping at an address of the kernel's choice disturbs no other.
    let mapped = unsafe { call(libc::SYS_mmap, arguments) };
    // SAFETY: nobody else knows of it.
    mapped.is_ok_and(|address| unsafe {
        unmap(ptr::without_provenance_mut(address), length);
        true
    })
}

/// Whether the limit at address `limit`, which the program is about to set, leaves `SPARE` to what
/// is mapped. The kernel refuses an address that cannot be read.
pub fn leaves_room_under(limit: usize) -> bool {
    read_limit(limit).is_none_or(|most| leaves_room(most, 0))
}

fn leaves_room(most: u64, length: usize) -> bool {
    let fits = |used: u64| used.saturating_add(length as u64).saturating_add(SPARE) <= most;
    most == u64::MAX || address_space().is_some_and(fits)
}

/// Bytes that this process has mapped (proc_pid_statm(5)).
fn address_space() -> Option<u64> {
    let fd = syscall::open(c"/proc/self/statm", libc::O_RDONLY).ok()?;
    let mut text = [0; 24];
    let length = syscall::read(fd, &mut text);
    syscall::close(fd);
    let digits = text[..length.ok()?].iter().take_while(|byte| byte.is_ascii_digit());
    let digit = |byte: &u8| u64::from(byte - b'0');
    let pages = digits.fold(0u64, |number, byte| number.wrapping_mul(10).wrapping_add(digit(byte)));
    pages.checked_mul(page() as u64)
}

/// The soft limit that is at an address, read through the kernel: it may not be there.
fn read_limit(address: usize) -> Option<u64> {
    let mut limit = MaybeUninit::<libc::rlimit64>::uninit();
    let length = size_of::<libc::rlimit64>();
    let source = [address, length];
    let place = [limit.as_mut_ptr().addr(), length];
    let pid = syscall::getpid() as usize;
    let arguments = [pid, place.as_ptr().addr(), 1, source.as_ptr().addr(), 1, 0];
    // SAFETY: two iovecs; the kernel writes into `limit` alone, and checks what it reads.
    let read = unsafe { call(libc::SYS_process_vm_readv, arguments) };
    // SAFETY: the kernel has written all of it.
    (read == Ok(length)).then(|| unsafe { limit.assume_init() }.rlim_cur)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn mappings_leave_room_to_the_limit() {
        let used = address_space().unwrap();
        assert!(used > 1 << 20 && has_room(1 << 30), "without a limit");
        let far = used + SPARE + (64 << 20);
        assert!(leaves_room(u64::MAX, usize::MAX) && leaves_room(far, 1 << 20));
        assert!(!leaves_room(far, 256 << 20) && !leaves_room(used, 0));
        let limit = |rlim_cur| libc::rlimit64 { rlim_cur, rlim_max: u64::MAX };
        let under = |limit: &libc::rlimit64| leaves_room_under(ptr::from_ref(limit).addr());
        assert!(under(&limit(far)) && !under(&limit(used)));
        assert!(leaves_room_under(0), "nothing to read: the call fails");
    }

    /// What a child of fork finds where its parent wrote 7.
    fn in_child(base: *mut u8) -> i32 {
        // SAFETY: the test's own mapping; the child makes one system call.
        unsafe {
            base.write(7);
            let child = libc::fork();
            if child == 0 {
                libc::_exit(base.read().into());
            }
            let mut status = -1;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            libc::WEXITSTATUS(status)
        }
    }

    #[test]
    fn child_finds_zeros_only_where_memory_is_wiped() {
        let [kept, wiped] = [map_private(4096), map_wiped_on_fork(4096)].map(Result::unwrap);
        assert_eq!([kept, wiped].map(in_child), [7, 0]);
        for base in [kept, wiped] {
            // SAFETY: used no more.
            unsafe { unmap(base, 4096) };
        }
    }
}
