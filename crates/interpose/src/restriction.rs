// SPDX-License-Identifier: Apache-2.0
use core::ffi::{c_int, c_long};
use tare_shm::syscall;

/// PR_SET_SYSCALL_USER_DISPATCH (prctl(2)), which libc does not name on every architecture.
const SET_DISPATCH: c_int = 59;
const FILTER: usize = libc::SECCOMP_MODE_FILTER as usize;
const ADDRESS_SPACE: u32 = libc::RLIMIT_AS;
const STRICT: usize = libc::SECCOMP_MODE_STRICT as usize;
const SET_FILTER: usize = libc::SECCOMP_SET_MODE_FILTER as usize;
const SET_STRICT: usize = libc::SECCOMP_SET_MODE_STRICT as usize;

/// What a program takes away from itself, and so from the library, by a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restriction {
    /// System calls, by a seccomp filter or by dispatching them to a signal handler.
    SystemCalls,
    /// The tick counter.
    TickCounter,
    /// Both, by seccomp's strict mode.
    All,
    /// Its address space, to the limit at an address; or it locks all of its memory: `None`.
    Memory(Option<usize>),
}

impl Restriction {
    /// `None` for a call that restricts nothing, also because it can only fail: programs ask in
    /// this way what the kernel supports.
    pub fn of(number: c_long, first: usize, second: usize, third: usize) -> Option<Self> {
        match (number, first, second, third) {
            (libc::SYS_prctl, option, value, pointer) => match (option as c_int, value) {
                (libc::PR_SET_SECCOMP, STRICT) => Some(Self::All),
                (libc::PR_SET_SECCOMP, FILTER) if pointer != 0 => Some(Self::SystemCalls),
                (SET_DISPATCH, 1..) => Some(Self::SystemCalls),
                (libc::PR_SET_TSC, value) if value as c_int == libc::PR_TSC_SIGSEGV => {
                    Some(Self::TickCounter)
                }
                _ => None,
            },
            (libc::SYS_seccomp, SET_STRICT, 0, 0) => Some(Self::All),
            (libc::SYS_seccomp, SET_FILTER, _, pointer) if pointer != 0 => Some(Self::SystemCalls),
            (libc::SYS_mlockall, 1.., ..) => Some(Self::Memory(None)),
            (libc::SYS_setrlimit, resource, limit @ 1.., _) if resource as u32 == ADDRESS_SPACE => {
                Some(Self::Memory(Some(limit)))
            }
            (libc::SYS_prlimit64, process, resource, limit @ 1..)
                if resource as u32 == ADDRESS_SPACE
                    && (process as u32 == 0 || process as u32 == syscall::getpid()) =>
            {
                Some(Self::Memory(Some(limit)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_can_only_fail_restrict_nothing() {
        const SECCOMP: usize = libc::PR_SET_SECCOMP as usize;
        const TSC: usize = libc::PR_SET_TSC as usize;
        const SPACE: usize = libc::RLIMIT_AS as usize;
        let filter = Some(Restriction::SystemCalls);
        let limit = Some(Restriction::Memory(Some(4096)));
        let own = syscall::getpid() as usize;
        for (number, arguments, expected) in [
            (libc::SYS_prctl, [SECCOMP, STRICT, 0], Some(Restriction::All)),
            (libc::SYS_prctl, [SECCOMP, FILTER, 4096], filter),
            (libc::SYS_prctl, [SECCOMP, FILTER, 0], None),
            (libc::SYS_prctl, [libc::PR_GET_SECCOMP as usize, 0, 0], None),
            (libc::SYS_prctl, [TSC, 2, 0], Some(Restriction::TickCounter)),
            (libc::SYS_prctl, [TSC, 1, 0], None),
            (libc::SYS_prctl, [SET_DISPATCH as usize, 1, 4096], filter),
            (libc::SYS_prctl, [SET_DISPATCH as usize, 0, 0], None),
            (libc::SYS_seccomp, [SET_STRICT, 0, 0], Some(Restriction::All)),
            (libc::SYS_seccomp, [SET_STRICT, 1, 0], None),
            (libc::SYS_seccomp, [SET_FILTER, 1, 4096], filter),
            (libc::SYS_seccomp, [SET_FILTER, 1, 0], None),
            (libc::SYS_mlockall, [1, 0, 0], Some(Restriction::Memory(None))),
            (libc::SYS_mlockall, [0, 0, 0], None),
            (libc::SYS_setrlimit, [SPACE, 4096, 0], limit),
            (libc::SYS_setrlimit, [SPACE, 0, 0], None),
            (libc::SYS_setrlimit, [libc::RLIMIT_NOFILE as usize, 4096, 0], None),
            (libc::SYS_prlimit64, [0, SPACE, 4096], limit),
            (libc::SYS_prlimit64, [own, SPACE, 4096], limit),
            (libc::SYS_prlimit64, [own + 1, SPACE, 4096], None),
            (libc::SYS_prlimit64, [0, SPACE, 0], None),
            (libc::SYS_read, [SECCOMP, STRICT, 0], None),
        ] {
            let [first, second, third] = arguments;
            assert_eq!(Restriction::of(number, first, second, third), expected, "{arguments:?}");
        }
    }
}
