// SPDX-License-Identifier: Apache-2.0
//! Raw system calls: the only I/O that a preload library makes for itself. A libc
//! function could be interposed, sets errno, and may be a cancellation point.

use core::arch::asm;
use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;

/// The kernel's error number, positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub c_int);

/// Makes system call `number` (`libc::SYS_*`) with six arguments, unused ones 0.
///
/// # Safety
/// The arguments must be valid for this call: it can do whatever the kernel lets the
/// process do to itself.
#[inline]
pub unsafe fn call(number: i64, arguments: [usize; 6]) -> Result<usize, Errno> {
    // SAFETY: the caller vouches for the arguments.
    let result = unsafe { trap(number as usize, arguments) };
    // The kernel returns -4095..=-1 for errors, on every architecture.
    if (-4095..0).contains(&result) { Err(Errno(-result as c_int)) } else { Ok(result as usize) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn trap(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel's calling convention; it changes only rax, rcx and r11.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

#[cfg(target_arch = "aarch64")]
#[inline]
unsafe fn trap(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel's calling convention; it changes only x0.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a as isize => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    result
}

/// A memfd that can be sealed; `flags` besides `MFD_ALLOW_SEALING`.
pub fn memfd_create(name: &CStr, flags: u32) -> Result<c_int, Errno> {
    let create = |flags: u32| {
        // SAFETY: `name` is terminated; the call touches no other memory.
        unsafe { call(libc::SYS_memfd_create, [name.as_ptr().addr(), flags as usize, 0, 0, 0, 0]) }
    };
    let flags = flags | libc::MFD_ALLOW_SEALING;
    match create(flags | libc::MFD_NOEXEC_SEAL) {
        // Before Linux 6.3 the flag is unknown.
        Err(Errno(libc::EINVAL)) => create(flags),
        result => result,
    }
    .map(|fd| fd as c_int)
}

pub fn ftruncate(fd: c_int, size: usize) -> Result<(), Errno> {
    // SAFETY: no memory is touched.
    unsafe { call(libc::SYS_ftruncate, [fd as usize, size, 0, 0, 0, 0]) }.map(drop)
}

pub fn fchmod(fd: c_int, mode: u32) -> Result<(), Errno> {
    // SAFETY: no memory is touched.
    unsafe { call(libc::SYS_fchmod, [fd as usize, mode as usize, 0, 0, 0, 0]) }.map(drop)
}

/// `fcntl` with an integer argument.
pub fn fcntl(fd: c_int, command: c_int, argument: usize) -> Result<usize, Errno> {
    // SAFETY: commands with an integer argument touch no memory; one that takes a
    // pointer fails with EFAULT or writes where the caller said.
    unsafe { call(libc::SYS_fcntl, [fd as usize, command as usize, argument, 0, 0, 0]) }
}

pub fn fstat(fd: c_int) -> Result<libc::stat, Errno> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `status` has room for the kernel's struct, which is glibc's on both
    // architectures; on success it is filled in.
    unsafe {
        call(libc::SYS_fstat, [fd as usize, status.as_mut_ptr().addr(), 0, 0, 0, 0])?;
        Ok(status.assume_init())
    }
}

/// The kind of file system that `fd` is of, as statfs(2) numbers them.
pub fn file_system(fd: c_int) -> Result<i64, Errno> {
    let mut status = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: as in `fstat`.
    unsafe {
        call(libc::SYS_fstatfs, [fd as usize, status.as_mut_ptr().addr(), 0, 0, 0, 0])?;
        Ok(status.assume_init().f_type)
    }
}

/// Maps `size` bytes of `fd` shared, from `offset` on, where the kernel likes; `filled` gives
/// memory to every page at once.
pub fn map_shared(
    fd: c_int,
    offset: usize,
    size: usize,
    protection: c_int,
    filled: bool,
) -> Result<*mut u8, Errno> {
    let flags = libc::MAP_SHARED | if filled { libc::MAP_POPULATE } else { 0 };
    // SAFETY: a new mapping at an address of the kernel's choice disturbs no other.
    let address = unsafe {
        call(libc::SYS_mmap, [0, size, protection as usize, flags as usize, fd as usize, offset])
    }?;
    Ok(core::ptr::with_exposed_provenance_mut(address))
}

/// Opens an existing file, close-on-exec.
pub fn open(path: &CStr, flags: c_int) -> Result<c_int, Errno> {
    let flags = (flags | libc::O_CLOEXEC) as usize;
    // SAFETY: `path` is terminated.
    unsafe {
        call(libc::SYS_openat, [libc::AT_FDCWD as usize, path.as_ptr().addr(), flags, 0, 0, 0])
    }
    .map(|fd| fd as c_int)
}

/// Reads at most `buffer.len()` bytes; 0 at the end.
pub fn read(fd: c_int, buffer: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`.
    unsafe {
        call(libc::SYS_read, [fd as usize, buffer.as_mut_ptr().addr(), buffer.len(), 0, 0, 0])
    }
}

pub fn close(fd: c_int) {
    // SAFETY: no memory is touched; the descriptor is gone whatever is returned.
    let _ = unsafe { call(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// Changes the thread's mask, the kernel's set of a bit a signal, and says what it was.
pub fn sigprocmask(how: c_int, set: u64) -> Result<u64, Errno> {
    let mut before = 0u64;
    let (new, old) = ((&raw const set).addr(), (&raw mut before).addr());
    // SAFETY: the kernel reads one set and writes the other.
    unsafe { call(libc::SYS_rt_sigprocmask, [how as usize, new, old, size_of::<u64>(), 0, 0]) }?;
    Ok(before)
}

pub fn getpid() -> u32 {
    // SAFETY: no memory is touched; it cannot fail.
    unsafe { call(libc::SYS_getpid, [0; 6]) }.map_or(0, |pid| pid as u32)
}

pub fn getppid() -> u32 {
    // SAFETY: no memory is touched; it cannot fail.
    unsafe { call(libc::SYS_getppid, [0; 6]) }.map_or(0, |pid| pid as u32)
}

/// The soft limit of a resource (`libc::RLIMIT_*`) of this process.
pub fn limit(resource: libc::__rlimit_resource_t) -> Result<u64, Errno> {
    let mut limit = libc::rlimit64 { rlim_cur: u64::MAX, rlim_max: u64::MAX };
    let arguments = [0, resource as usize, 0, (&raw mut limit).addr(), 0, 0];
    // SAFETY: the kernel writes the limit.
    unsafe { call(libc::SYS_prlimit64, arguments) }.map(|_| limit.rlim_cur)
}

/// The user as whom this process acts.
pub fn geteuid() -> u32 {
    // SAFETY: no memory is touched; it cannot fail.
    unsafe { call(libc::SYS_geteuid, [0; 6]) }.map_or(u32::MAX, |user| user as u32)
}

pub fn gettid() -> u32 {
    // SAFETY: no memory is touched; it cannot fail.
    unsafe { call(libc::SYS_gettid, [0; 6]) }.map_or(0, |tid| tid as u32)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_the_kernels_number() {
        assert_eq!(fstat(-1).unwrap_err(), Errno(libc::EBADF));
        assert_eq!(open(c"/does/not/exist", libc::O_RDONLY).unwrap_err(), Errno(libc::ENOENT));
    }

    #[test]
    fn a_file_is_read_through_to_its_end() {
        let fd = open(c"/proc/self/comm", libc::O_RDONLY).unwrap();
        let mut buffer = [0; 64];
        let length = read(fd, &mut buffer).unwrap();
        assert!(length > 1 && buffer[length - 1] == b'\n');
        assert_eq!(read(fd, &mut buffer), Ok(0));
        close(fd);
        assert_eq!(read(fd, &mut buffer), Err(Errno(libc::EBADF)));
    }
}
