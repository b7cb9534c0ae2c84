// SPDX-License-Identifier: Apache-2.0
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Signals to this process as a descriptor that becomes readable: they interrupt nothing.
pub struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
}

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    pub number: i32,
    /// Sent by the kernel, as the terminal's Ctrl-C is: it went to the whole foreground
    /// process group, a child included.
    pub from_kernel: bool,
}

impl Signals {
    /// Takes `signals` out of their ordinary way; to be called before the first thread starts.
    pub fn take(signals: &[i32]) -> io::Result<Self> {
        let mut set = empty_set();
        let mut before = empty_set();
        // SAFETY: the sets are initialised, and the pointers valid for each call.
        let fd = unsafe {
            for signal in signals {
                libc::sigaddset(&mut set, *signal);
            }
            match libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before) {
                0 => libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK),
                error => return Err(io::Error::from_raw_os_error(error)),
            }
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor, owned by nobody else.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, before })
    }

    /// The next signal that has arrived, without waiting.
    pub fn next(&self) -> Option<Signal> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes at most `size` bytes, and always whole records.
        let info = unsafe {
            if libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), size) != size as isize {
                return None;
            }
            info.assume_init()
        };
        Some(Signal { number: info.ssi_signo as i32, from_kernel: info.ssi_code > 0 })
    }

    /// The signal mask as it was before [`Signals::take`]: what a child should begin with.
    pub(crate) fn mask_before(&self) -> libc::sigset_t {
        self.before
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set, and cannot fail.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}
