// SPDX-License-Identifier: Apache-2.0
//! Why a connection stays TCP, or its bytes go back to it.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Defines the reasons: their codes for programs, and their texts. Both are one string each: a table
/// of strings would cost the library a relocation per entry.
macro_rules! reasons {
    (
        $(#[$about_first:meta])* $first:ident $first_code:literal $first_text:literal;
        $($(#[$about:meta])* $name:ident $code:literal $text:literal;)*
    ) => {
        /// Numbers begin with 1: in shared memory, 0 is no reason.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Reason {
            $(#[$about_first])* $first = 1,
            $($(#[$about])* $name,)*
        }

        impl Reason {
            pub const ALL: &[Self] = &[Self::$first, $(Self::$name,)*];
        }

        const CODES: &str = concat!("\n", $first_code, $("\n", $code,)*);
        const TEXTS: &str = concat!("\n", $first_text, $("\n", $text,)*);
    };
}

reasons! {
    /// A number that no correct program writes.
    Unknown "unknown" "the reason is unknown";
    // Before a connection is linked.
    NoAnswer "no_answer" "the other end did not answer: it may not be linked";
    Short "short" "it had too few messages (see --eager)";
    Excluded "excluded" "excluded by --only or --except";
    OtherUser "other_user" "the other end is of another user (see --allow-uid)";
    NotMet "not_met" "the other end cannot be asked";
    NoAddresses "no_addresses" "it has no two addresses";
    NoMemory "no_memory" "no memory or descriptor for a link";
    Limit "memory_limit" "the rings have all memory that they may have (--memory)";
    Inherited "inherited" "another program opened it";
    Forked "forked" "the program has forked since the connection was opened";
    IoUring "io_uring" "the program has an io_uring";
    /// Also of linked connections, as all that follow.
    Restricted "restricted" "the program restricts its system calls";
    Exec "exec" "another program took the place of this program (exec)";
    Spawn "spawn" "the program started another program (posix_spawn, vfork)";
    Passed "passed" "it was passed to another program over a Unix socket";
    Stdio "stdio" "stdio uses it (fdopen, dprintf, descriptor 0, 1 or 2)";
    Kernel "kernel" "the kernel moves its bytes (splice, sendfile, io_submit)";
    Tls "kernel_tls" "kernel TLS (TCP_ULP)";
    SocketOption "socket_option" "a socket option that is not supported";
    Signals "signals" "signals for its bytes (O_ASYNC)";
    ShutReading "shut_reading" "the program stopped reading (SHUT_RD)";
    PeekAll "peek_all" "a call waits for all bytes and leaves them (MSG_PEEK, MSG_WAITALL)";
    LongPoll "long_poll" "poll or select with more than 256 descriptors";
    EpollFlags "epoll_flags" "EPOLLEXCLUSIVE, or EPOLLONESHOT that is not supported";
    EpollSet "epoll_set" "an epoll set that another program made, or too many sets";
    Shared "shared" "the program closed it, other processes have it";
    Disconnected "disconnected" "the program disconnected it (AF_UNSPEC)";
    // Of the bytes that one end sends.
    Full "ring_full" "the ring was full";
    Urgent "urgent" "urgent data (MSG_OOB)";
    Call "call" "a call that only TCP carries (pwritev2, splice, sendfile)";
    Handler "handler" "a signal handler sent while the program copied";
    ShutWriting "shut_writing" "the program ended what it sends (SHUT_WR)";
    Closed "closed" "the program closed it or exited";
    OtherClosed "other_closed" "the other end closed it, or ended what it sends";
}

impl Reason {
    /// Of a number in shared memory.
    pub fn of(number: u32) -> Self {
        let place = (number as usize).wrapping_sub(1);
        Self::ALL.get(place).copied().unwrap_or(Self::Unknown)
    }

    /// For programs: `ring_full`.
    pub fn code(self) -> &'static str {
        entry(CODES, self)
    }

    /// For people.
    pub fn text(self) -> &'static str {
        entry(TEXTS, self)
    }
}

fn entry(all: &'static str, reason: Reason) -> &'static str {
    all.split('\n').nth(reason as usize).unwrap_or_default()
}

/// How often each reason occurred.
#[repr(C)]
#[derive(Debug)]
pub struct Reasons([AtomicU64; Reason::ALL.len() + 1]);

impl Reasons {
    pub fn add(&self, reason: Reason) {
        if let Some(count) = self.0.get(reason as usize) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Those that occurred.
    pub fn all(&self) -> impl Iterator<Item = (Reason, u64)> {
        let counts = self.0.iter().skip(1).map(|count| count.load(Relaxed));
        Reason::ALL.iter().copied().zip(counts).filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::HashSet;
    use std::vec::Vec;

    #[test]
    fn each_reason_has_a_number_a_code_and_a_text_of_its_own() {
        let all = Reason::ALL;
        assert!(all.iter().all(|reason| Reason::of(*reason as u32) == *reason));
        assert_eq!([0, all.len() as u32 + 1, u32::MAX].map(Reason::of), [Reason::Unknown; 3]);
        let codes: HashSet<_> = all.iter().map(|reason| reason.code()).collect();
        let texts: HashSet<_> = all.iter().map(|reason| reason.text()).collect();
        assert_eq!((codes.len(), texts.len()), (all.len(), all.len()));
        assert!(!codes.contains("") && !texts.contains(""));
        assert_eq!((Reason::Full.code(), Reason::Full.text()), ("ring_full", "the ring was full"));
    }

    #[test]
    fn reasons_that_occurred_are_counted() {
        let reasons = Reasons([const { AtomicU64::new(0) }; Reason::ALL.len() + 1]);
        [Reason::OtherClosed, Reason::Unknown, Reason::OtherClosed]
            .iter()
            .for_each(|reason| reasons.add(*reason));
        let found: Vec<_> = reasons.all().collect();
        assert_eq!(found, [(Reason::Unknown, 1), (Reason::OtherClosed, 2)]);
    }
}
