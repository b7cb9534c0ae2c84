// SPDX-License-Identifier: Apache-2.0
//! The header that every segment begins with (docs/formats/shm.md).

use crate::syscall::Errno;

/// `TAREshm1` in memory order on a little-endian machine: read with the other byte
/// order it is another number, so the magic carries the byte order too.
pub const MAGIC: u64 = u64::from_le_bytes(*b"TAREshm1");

/// What a segment holds.
pub mod kind {
    pub const HOOK: u32 = 1;
    pub const HOOK_SHARED: u32 = 2;
    pub const LOG: u32 = 3;
    pub const LINK: u32 = 4;
    pub const LINK_SHARED: u32 = 5;
}

/// What stands at the beginning of every segment.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub magic: u64,
    /// Version of the layout behind the header, by kind.
    pub version: u32,
    pub kind: u32,
    /// Bytes of the whole segment, this header included.
    pub size: u64,
    /// Start time of the owner in clock ticks after boot.
    pub owner_start: u64,
    pub owner_pid: u32,
    pub reserved: u32,
}

/// Why a segment is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A system call failed.
    Failed(Errno),
    /// It could still be cut short under our feet.
    NotSealed,
    /// It ends before what it must hold.
    TooSmall,
    /// No segment of Tare's, or of the other byte order.
    NotOurs,
    /// It belongs to this user, with whom nothing is shared.
    Strangers(u32),
    /// It says that it is of this process, which is not the one that sent it.
    OtherProcess(u32),
    OtherKind(u32),
    OtherVersion(u32),
    /// A field has a value that no writer gives it.
    Damaged,
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Self {
        Self::Failed(error)
    }
}

impl Header {
    /// The header in the first bytes of a file, for who does not map it.
    pub fn read(bytes: &[u8; size_of::<Self>()]) -> Self {
        // SAFETY: long enough, and any bytes are a header.
        unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() }
    }

    /// Says why this header is not one of `kind` and `version` for a segment of `size` bytes.
    pub fn check(&self, kind: u32, version: u32, size: usize) -> Result<(), Refusal> {
        if self.magic != MAGIC {
            Err(Refusal::NotOurs)
        } else if self.kind != kind {
            Err(Refusal::OtherKind(self.kind))
        } else if self.version != version {
            Err(Refusal::OtherVersion(self.version))
        } else if self.size != size as u64 {
            Err(Refusal::TooSmall)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_checked() {
        let good = Header {
            magic: MAGIC,
            version: 3,
            kind: kind::HOOK,
            size: 4096,
            owner_start: 1,
            owner_pid: 1,
            reserved: 0,
        };
        assert_eq!(good.check(kind::HOOK, 3, 4096), Ok(()));
        let swapped = Header { magic: MAGIC.swap_bytes(), ..good };
        assert_eq!(swapped.check(kind::HOOK, 3, 4096), Err(Refusal::NotOurs));
        assert_eq!(good.check(2, 3, 4096), Err(Refusal::OtherKind(kind::HOOK)));
        assert_eq!(good.check(kind::HOOK, 4, 4096), Err(Refusal::OtherVersion(3)));
        assert_eq!(good.check(kind::HOOK, 3, 8192), Err(Refusal::TooSmall));
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        assert_eq!(size_of::<Header>(), 64);
        assert_eq!(core::mem::offset_of!(Header, owner_pid), 32);
    }
}
