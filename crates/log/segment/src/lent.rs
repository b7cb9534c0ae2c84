// SPDX-License-Identifier: Apache-2.0
//! What the collector lends to a program: the file that events come into, and
//! sockets that ask.

use crate::layout::{Channel, Process};
use core::ffi::c_int;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::fence;
use tare_shm::syscall::{self, Errno};

/// A file as `fstat` knows it, whatever its descriptor is in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
}

impl Identity {
    pub fn of(fd: c_int) -> Result<Self, Errno> {
        syscall::fstat(fd).map(|status| Self { device: status.st_dev, inode: status.st_ino })
    }

    /// How a program asks the collector for a descriptor.
    pub fn bytes(self) -> [u8; 16] {
        (u128::from(self.device) << 64 | u128::from(self.inode)).to_le_bytes()
    }

    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let both = u128::from_le_bytes(bytes);
        Self { device: (both >> 64) as u64, inode: both as u64 }
    }
}

impl Process {
    /// For the collector: its file, in which the process has this number, can be written to by
    /// the program as well.
    pub fn lend(&self, number: u32, file: Identity) {
        self.withdraw();
        self.number.store(number, Relaxed);
        self.device.store(file.device, Relaxed);
        self.inode.store(file.inode, Release);
    }

    /// The program is to write no longer into what it was lent.
    pub fn withdraw(&self) {
        self.inode.store(0, SeqCst);
        fence(SeqCst);
    }

    /// The file, and the process's number in it.
    pub fn lent(&self) -> Option<(u32, Identity)> {
        let inode = self.inode.load(Acquire);
        let number = self.number.load(Relaxed);
        let file = Identity { device: self.device.load(Relaxed), inode };
        // Else another collector is at it, which writes in between.
        fence(Acquire);
        (inode != 0 && self.inode.load(Relaxed) == inode).then_some((number, file))
    }
}

impl Channel {
    /// For the collector: its socket that asks for this channel; `None` for none.
    pub fn lend(&self, socket: Option<Identity>) {
        let Identity { device, inode } = socket.unwrap_or(Identity { device: 0, inode: 0 });
        self.socket_inode.store(0, SeqCst);
        self.socket_device.store(device, Relaxed);
        self.socket_inode.store(inode, Release);
    }

    pub fn lent(&self) -> Option<Identity> {
        let inode = self.socket_inode.load(Acquire);
        let device = self.socket_device.load(Relaxed);
        (inode != 0).then_some(Identity { device, inode })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_as_it_was_sent() {
        let identity = Identity { device: 0xfd01, inode: u64::MAX - 1 };
        assert_eq!(Identity::from_bytes(identity.bytes()), identity);
    }
}
