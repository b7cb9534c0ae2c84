// SPDX-License-Identifier: Apache-2.0
use crate::header::{Header, MAGIC, Refusal};
use crate::memory_file::{MODE, memory_device};
use crate::syscall::{self, Errno};
use crate::{memory, process};
use core::ffi::{CStr, c_int};
use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;

/// Once set the size is final, so that no access can fault, and no seal can be added
/// or taken away.
const SEALS: usize = (libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL) as usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    ReadOnly,
    ReadWrite,
}

impl Access {
    /// For open(2), of what may turn out to be something else.
    pub(crate) fn flags(self) -> c_int {
        let rights = if self == Self::ReadOnly { libc::O_RDONLY } else { libc::O_RDWR };
        rights | libc::O_NONBLOCK | libc::O_NOCTTY
    }
}

/// When memory is given to pages that nobody has touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    Later,
    /// At once: no later access has to wait for the kernel.
    Now,
}

/// A mapped segment. In a program it stays mapped as long as the process lives: a thread may
/// be inside any access, and there is no moment that is safe for an end.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: the mapping is never removed, and is reached only through atomics or by
// `unsafe` code that says what it shares.
unsafe impl Send for Segment {}
// SAFETY: what it gives out is atomics, or `unsafe` code says how it is shared.
unsafe impl Sync for Segment {}

impl Segment {
    /// Creates a sealed segment of `size` bytes, zero behind its header, and maps it. Says its
    /// descriptor, which is close-on-exec. Its owner may write it, others only under a
    /// descriptor that they are given.
    pub fn create(
        name: &CStr,
        kind: u32,
        version: u32,
        size: usize,
    ) -> Result<(c_int, Self), Refusal> {
        Self::create_begun(name, kind, version, size, size)
    }

    /// As `create`, with only the first `mapped` bytes mapped; see [`Segment::part`].
    pub fn create_begun(
        name: &CStr,
        kind: u32,
        version: u32,
        size: usize,
        mapped: usize,
    ) -> Result<(c_int, Self), Refusal> {
        if mapped < size_of::<Header>() || mapped > size {
            return Err(Refusal::TooSmall);
        }
        let fd = syscall::memfd_create(name, libc::MFD_CLOEXEC)?;
        let filled = Self::fill(fd, kind, version, size, mapped);
        let segment = filled.inspect_err(|_| syscall::close(fd))?;
        Ok((fd, segment))
    }

    fn fill(
        fd: c_int,
        kind: u32,
        version: u32,
        size: usize,
        mapped: usize,
    ) -> Result<Self, Refusal> {
        syscall::fchmod(fd, MODE)?;
        syscall::ftruncate(fd, size)?;
        let segment = Self::map(fd, 0, mapped, Access::ReadWrite, Fill::Later)?;
        Self::seal(fd)?;
        let pid = syscall::getpid();
        let header = Header {
            magic: MAGIC,
            version,
            kind,
            size: size as u64,
            owner_start: process::start_time(pid).unwrap_or(0),
            owner_pid: pid,
            reserved: 0,
        };
        // SAFETY: the mapping is page-aligned, writable, longer than a header, and no
        // other process knows of it yet.
        unsafe { segment.base.cast::<Header>().write(header) };
        Ok(segment)
    }

    /// Makes the size of a memfd final. Seals cannot be removed.
    pub fn seal(fd: c_int) -> Result<(), Errno> {
        syscall::fcntl(fd, libc::F_ADD_SEALS, SEALS).map(drop)
    }

    /// Refuses what could still be cut short. Only files in memory have seals.
    pub(crate) fn check_seals(fd: c_int) -> Result<(), Refusal> {
        match syscall::fcntl(fd, libc::F_GET_SEALS, 0) {
            Ok(seals) if seals & SEALS == SEALS => Ok(()),
            Ok(_) => Err(Refusal::NotSealed),
            Err(Errno(libc::EINVAL)) => Err(Refusal::NotOurs),
            Err(error) => Err(Refusal::Failed(error)),
        }
    }

    /// Maps the segment behind `fd` after its seals, file system, size and header were checked:
    /// a hole punched in huge pages ends who reads there.
    pub fn open(fd: c_int, kind: u32, version: u32, access: Access) -> Result<Self, Refusal> {
        Self::open_begun(fd, kind, version, access, usize::MAX)
    }

    /// As `open`, with at most the first `mapped` bytes mapped; see [`Segment::part`].
    pub fn open_begun(
        fd: c_int,
        kind: u32,
        version: u32,
        access: Access,
        mapped: usize,
    ) -> Result<Self, Refusal> {
        Self::check_seals(fd)?;
        let status = syscall::fstat(fd)?;
        if status.st_dev != memory_device()? {
            return Err(Refusal::NotOurs);
        }
        let size = status.st_size as usize;
        if size < size_of::<Header>() {
            return Err(Refusal::TooSmall);
        }
        let segment = Self::map(fd, 0, size.min(mapped), access, Fill::Later)?;
        let checked = segment.header().check(kind, version, size);
        // SAFETY: nothing of it was given out.
        checked.map(|()| segment).inspect_err(|_| unsafe { segment.unmap() })
    }

    /// Maps `size` bytes from `offset` on, whole pages both, of a segment that has been created
    /// or opened here: it is not checked again. `at` counts from there, and `header` means
    /// nothing.
    pub fn part(
        fd: c_int,
        offset: usize,
        size: usize,
        access: Access,
        fill: Fill,
    ) -> Result<Self, Refusal> {
        let end = offset.checked_add(size).ok_or(Refusal::TooSmall)?;
        if end > syscall::fstat(fd)?.st_size as usize {
            return Err(Refusal::TooSmall);
        }
        Self::map(fd, offset, size, access, fill)
    }

    fn map(
        fd: c_int,
        offset: usize,
        size: usize,
        access: Access,
        fill: Fill,
    ) -> Result<Self, Refusal> {
        let protection = match access {
            Access::ReadOnly => libc::PROT_READ,
            Access::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        };
        let is_allowed_later = fill == Fill::Later && memory::locks_new();
        let first = if is_allowed_later { libc::PROT_NONE } else { protection };
        let base = syscall::map_shared(fd, offset, size, first, fill == Fill::Now)?;
        if is_allowed_later {
            // SAFETY: the mapping has not been given out.
            unsafe {
                memory::allow_unlocked(base, size, protection)
                    .inspect_err(|_| memory::unmap(base, size))?;
            }
        }
        Ok(Self { base: NonNull::new(base).ok_or(Refusal::Damaged)?, size })
    }

    /// Takes the mapping away.
    ///
    /// # Safety
    /// Nothing that `at` or `words` gave out is used any more, here or in another copy.
    pub unsafe fn unmap(self) {
        // SAFETY: mapped by this type, and unused, as the caller promises.
        unsafe { memory::unmap(self.base.as_ptr(), self.size) };
    }

    /// A copy of the header as it stands now.
    pub fn header(&self) -> Header {
        // SAFETY: mapped, aligned and long enough; the header has no invalid values.
        unsafe { self.base.cast::<Header>().read_volatile() }
    }

    /// The `T` at `offset`, `None` where it does not fit or is not aligned.
    ///
    /// # Safety
    /// `T` must hold nothing but atomics (or arrays and structs of them), so that every
    /// bit pattern is valid and another process may write at any time; a segment mapped
    /// read-only must not be written through it.
    pub unsafe fn at<T>(&self, offset: usize) -> Option<&'static T> {
        let end = offset.checked_add(size_of::<T>())?;
        if end > self.size || !offset.is_multiple_of(align_of::<T>()) {
            return None;
        }
        // SAFETY: in bounds and aligned (the base is page-aligned); never unmapped.
        Some(unsafe { self.base.add(offset).cast::<T>().as_ref() })
    }

    /// `length` words from `offset` on, `None` where they do not fit or are not aligned. Of
    /// a segment mapped read-only they must not be written.
    pub fn words(&self, offset: usize, length: usize) -> Option<&'static [AtomicU64]> {
        let end = offset.checked_add(length.checked_mul(size_of::<AtomicU64>())?)?;
        if end > self.size || !offset.is_multiple_of(align_of::<AtomicU64>()) {
            return None;
        }
        // SAFETY: in bounds and aligned (the base is page-aligned); never unmapped.
        Some(unsafe { core::slice::from_raw_parts(self.base.add(offset).cast().as_ptr(), length) })
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::header::kind::HOOK;
    use core::sync::atomic::Ordering::Relaxed;

    extern crate std;

    fn create(size: usize) -> (c_int, Segment) {
        Segment::create(c"test", HOOK, 1, size).unwrap()
    }

    #[test]
    fn what_one_mapping_writes_another_reads() {
        let (fd, writer) = create(8192);
        let reader = Segment::open(fd, HOOK, 1, Access::ReadOnly).unwrap();
        writer.words(4096, 1).unwrap()[0].store(42, Relaxed);
        assert_eq!(reader.words(4096, 1).unwrap()[0].load(Relaxed), 42);
        assert_eq!(reader.header().owner_pid, syscall::getpid());
        assert_eq!(reader.header().size, 8192);
    }

    #[test]
    fn nothing_reaches_beyond_the_end() {
        let (_, segment) = create(4096);
        assert!(segment.words(4096 - 8, 1).is_some());
        assert!(segment.words(4096 - 8, 2).is_none());
        assert!(segment.words(4, 1).is_none(), "not aligned");
        assert!(segment.words(64, usize::MAX / 8).is_none());
        assert!(segment.words(usize::MAX - 7, 1).is_none());
    }

    #[test]
    fn the_size_is_final() {
        let (fd, _) = create(4096);
        assert_eq!(syscall::ftruncate(fd, 0), Err(Errno(libc::EPERM)));
        assert_eq!(syscall::ftruncate(fd, 8192), Err(Errno(libc::EPERM)));
    }

    #[test]
    fn its_owner_alone_may_open_it_for_writing() {
        let (fd, _) = create(4096);
        assert_eq!(syscall::fstat(fd).unwrap().st_mode & 0o777, 0o644);
    }

    #[test]
    fn a_segment_that_could_shrink_is_refused() {
        let fd = syscall::memfd_create(c"test", 0).unwrap();
        syscall::ftruncate(fd, 4096).unwrap();
        let refusal = Segment::open(fd, HOOK, 1, Access::ReadOnly).unwrap_err();
        assert_eq!(refusal, Refusal::NotSealed);
    }

    #[test]
    fn huge_pages_are_refused() {
        let flags = libc::MFD_HUGETLB | libc::MFD_ALLOW_SEALING;
        let Ok(fd) = syscall::memfd_create(c"test", flags) else { return };
        syscall::ftruncate(fd, 2 << 20).unwrap();
        Segment::seal(fd).unwrap();
        let refusal = Segment::open(fd, HOOK, 1, Access::ReadOnly).unwrap_err();
        assert_eq!(refusal, Refusal::NotOurs);
        syscall::close(fd);
    }

    #[test]
    fn a_segment_that_is_refused_is_not_left_mapped() {
        let (fd, _) = Segment::create(c"refused", HOOK, 1, 4096).unwrap();
        assert!(Segment::open(fd, HOOK, 2, Access::ReadOnly).is_err());
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        assert_eq!(maps.matches("/memfd:refused").count(), 1);
    }

    #[test]
    fn another_kind_and_another_version_are_refused() {
        let (fd, _) = create(4096);
        let open = |kind, version| Segment::open(fd, kind, version, Access::ReadOnly).unwrap_err();
        assert_eq!(open(HOOK + 1, 1), Refusal::OtherKind(HOOK));
        assert_eq!(open(HOOK, 2), Refusal::OtherVersion(1));
    }
}
