// SPDX-License-Identifier: Apache-2.0
//! Raw system calls: the only I/O that a preload library makes for itself. A libc
//! function could be interposed, sets errno, and may be a cancellation point.

use core::arch::asm;
use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::Ordering::SeqCst;
use core::sync::atomic::{AtomicBool, AtomicU32};

/// The kernel's error number, positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub c_int);

static ARE_FORBIDDEN: AtomicBool = AtomicBool::new(false);
static UNDER_WAY: AtomicU32 = AtomicU32::new(0);

/// Lets every later `call` of this process fail with EPERM before it reaches the kernel: the
/// program installs a seccomp filter, which may kill it for a system call that it does not expect.
///
/// This holds for all threads: a thread inherits the filter of the thread that starts it, which
/// the library does not see. It holds for good: no filter can be removed. Waits for calls that
/// other threads have begun, which a filter for all threads would meet; not for ever: a call that
/// a signal handler has jumped out of does not end, nor does one of a thread that only the parent
/// of this process has.
pub fn forbid() {
    const MOST: u32 = 10_000;
    const MOST_NS: u64 = 50_000_000;
    let begin = clock(libc::CLOCK_MONOTONIC).unwrap_or(0);
    if ARE_FORBIDDEN.swap(true, SeqCst) {
        return;
    }
    for _ in 0..MOST {
        // A turn of the scheduler is long where other programs use the processor.
        let is_over = || read_clock(libc::CLOCK_MONOTONIC).is_ok_and(|now| now > begin + MOST_NS);
        if UNDER_WAY.load(SeqCst) == 0 || is_over() {
            break;
        }
        // SAFETY: no memory is touched.
        unsafe { trap(libc::SYS_sched_yield as usize, [0; 6]) };
    }
}

pub fn are_forbidden() -> bool {
    ARE_FORBIDDEN.load(SeqCst)
}

/// While it exists, `forbid` waits.
struct UnderWay;

impl UnderWay {
    fn begin() -> Result<Self, Errno> {
        let this = Self;
        if Self::count() { Ok(this) } else { Err(Errno(libc::EPERM)) }
    }

    /// Whether calls are allowed. Once for all of them: each would be longer by it.
    #[inline(never)]
    fn count() -> bool {
        UNDER_WAY.fetch_add(1, SeqCst);
        !are_forbidden()
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        UNDER_WAY.fetch_sub(1, SeqCst);
    }
}

/// Makes system call `number` (`libc::SYS_*`) with six arguments, unused ones 0.
///
/// # Safety
/// The arguments must be valid for this call: it can do whatever the kernel lets the
/// process do to itself.
#[inline]
pub unsafe fn call(number: i64, arguments: [usize; 6]) -> Result<usize, Errno> {
    let _under_way = UnderWay::begin()?;
    // SAFETY: the caller vouches for the arguments.
    unsafe { call_for_program(number, arguments) }
}

/// The same for a call that is the program's own, whatever is forbidden to the library.
///
/// # Safety
/// As of `call`.
#[inline]
pub unsafe fn call_for_program(number: i64, arguments: [usize; 6]) -> Result<usize, Errno> {
    // SAFETY: the caller vouches for the arguments.
    let result = unsafe { trap(number as usize, arguments) };
    // The kernel returns -4095..=-1 for errors, on every architecture.
    if (-4095..0).contains(&result) { Err(Errno(-result as c_int)) } else { Ok(result as usize) }
}

/// # Safety
/// As of `call`.
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

/// # Safety
/// As of `call`.
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

/// A copy of `fd` with the lowest free number from `lowest` on, close-on-exec.
pub fn duplicate(fd: c_int, lowest: u64) -> Result<c_int, Errno> {
    fcntl(fd, libc::F_DUPFD_CLOEXEC, lowest as usize).map(|made| made as c_int)
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

/// As `fstat`, without a descriptor: for a moment it would have a number that the program expects to
/// be free.
pub fn stat(path: &CStr) -> Result<libc::stat, Errno> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    let (path, status_at) = (path.as_ptr().addr(), status.as_mut_ptr().addr());
    let arguments = [libc::AT_FDCWD as usize, path, status_at, 0, 0, 0];
    // SAFETY: as for `fstat`.
    unsafe {
        call(libc::SYS_newfstatat, arguments)?;
        Ok(status.assume_init())
    }
}

/// The device of the file system of `fd`, as `fstat` says it. The file system is not asked: one of
/// FUSE need not answer.
pub fn device(fd: c_int) -> Result<u64, Errno> {
    let mut status = MaybeUninit::<libc::statx>::uninit();
    let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    // Only what the kernel has itself.
    let mask = 0;
    // SAFETY: the path is empty, `status` has room for the kernel's struct; on success it is filled
    // in.
    unsafe {
        let (path, status_at) = (c"".as_ptr().addr(), status.as_mut_ptr().addr());
        call(libc::SYS_statx, [fd as usize, path, flags as usize, mask, status_at, 0])?;
        let status = status.assume_init();
        Ok(libc::makedev(status.stx_dev_major, status.stx_dev_minor))
    }
}

/// Maps `size` bytes of `fd` shared, from `offset` on, where the kernel likes; `filled` gives
/// memory to every page at once. The core of a program does not have them: it would be as large as
/// all that is mapped.
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
    // SAFETY: the advice is for the new mapping alone. Without it, only cores differ.
    let _ =
        unsafe { call(libc::SYS_madvise, [address, size, libc::MADV_DONTDUMP as usize, 0, 0, 0]) };
    Ok(ptr::with_exposed_provenance_mut(address))
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

/// Signals that a thread brings upon itself. One that is blocked then ends the program; SIGSYS
/// is how a sandbox answers our system calls.
const ITS_OWN: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// All other signals, for `with_signals_blocked`: glibc's own two (cancellation, changes of user)
/// included.
pub const FROM_OTHERS: u64 = {
    let (mut set, mut index) = (!0, 0);
    while index < ITS_OWN.len() {
        set &= !(1 << (ITS_OWN[index] - 1));
        index += 1;
    }
    set
};

/// Does `work` while the thread blocks these signals, the kernel's set of a bit a signal. Where
/// system calls are forbidden, nothing is done; if that begins meanwhile, the mask is restored.
pub fn with_signals_blocked<T>(set: u64, work: impl FnOnce() -> T) -> Result<T, Errno> {
    let _under_way = UnderWay::begin()?;
    let change = |how: c_int, new: &u64, old: &mut u64| {
        let (new, old) = (ptr::from_ref(new).addr(), ptr::from_mut(old).addr());
        let arguments = [how as usize, new, old, size_of::<u64>(), 0, 0];
        // SAFETY: the kernel reads one set and writes the other.
        unsafe { trap(libc::SYS_rt_sigprocmask as usize, arguments) };
    };
    let mut before = 0;
    change(libc::SIG_BLOCK, &set, &mut before);
    let done = work();
    change(libc::SIG_SETMASK, &before, &mut 0);
    Ok(done)
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

/// Nanoseconds of a clock of the kernel (`libc::CLOCK_*`), by the system call: libc's function may
/// be another library's, and reads the tick counter.
pub fn clock(clock: libc::clockid_t) -> Result<u64, Errno> {
    let _under_way = UnderWay::begin()?;
    read_clock(clock)
}

fn read_clock(clock: libc::clockid_t) -> Result<u64, Errno> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let arguments = [clock as usize, (&raw mut time).addr(), 0, 0, 0, 0];
    // SAFETY: the kernel writes the time.
    unsafe { call_for_program(libc::SYS_clock_gettime, arguments) }?;
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// For about so long: an interruption is as good as the end.
pub fn sleep(nanoseconds: i64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
    // SAFETY: the kernel reads the time.
    let _ = unsafe { call(libc::SYS_nanosleep, [(&raw const time).addr(), 0, 0, 0, 0, 0]) };
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
