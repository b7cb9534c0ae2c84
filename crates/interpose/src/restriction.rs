// SPDX-License-Identifier: Apache-2.0
use core::ffi::{c_int, c_long};

const FILTER: usize = libc::SECCOMP_MODE_FILTER as usize;
const STRICT: usize = libc::SECCOMP_MODE_STRICT as usize;
const SET_FILTER: usize = libc::SECCOMP_SET_MODE_FILTER as usize;
const SET_STRICT: usize = libc::SECCOMP_SET_MODE_STRICT as usize;

/// What a program takes away from itself, and so from the library, by a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restriction {
    /// System calls, by a seccomp filter.
    SystemCalls,
    /// The tick counter.
    TickCounter,
    /// Both, by seccomp's strict mode.
    All,
}

impl Restriction {
    /// `None` for a call that restricts nothing, also because it can only fail: programs ask in
    /// this way what the kernel supports.
    pub fn of(number: c_long, first: usize, second: usize, third: usize) -> Option<Self> {
        match (number, first, second, third) {
            (libc::SYS_prctl, option, value, pointer) => match (option as c_int, value) {
                (libc::PR_SET_SECCOMP, STRICT) => Some(Self::All),
                (libc::PR_SET_SECCOMP, FILTER) if pointer != 0 => Some(Self::SystemCalls),
                (libc::PR_SET_TSC, value) if value as c_int == libc::PR_TSC_SIGSEGV => {
                    Some(Self::TickCounter)
                }
                _ => None,
            },
            (libc::SYS_seccomp, SET_STRICT, 0, 0) => Some(Self::All),
            (libc::SYS_seccomp, SET_FILTER, _, pointer) if pointer != 0 => Some(Self::SystemCalls),
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
        let filter = Some(Restriction::SystemCalls);
        for (number, arguments, expected) in [
            (libc::SYS_prctl, [SECCOMP, STRICT, 0], Some(Restriction::All)),
            (libc::SYS_prctl, [SECCOMP, FILTER, 4096], filter),
            (libc::SYS_prctl, [SECCOMP, FILTER, 0], None),
            (libc::SYS_prctl, [libc::PR_GET_SECCOMP as usize, 0, 0], None),
            (libc::SYS_prctl, [TSC, 2, 0], Some(Restriction::TickCounter)),
            (libc::SYS_prctl, [TSC, 1, 0], None),
            (libc::SYS_seccomp, [SET_STRICT, 0, 0], Some(Restriction::All)),
            (libc::SYS_seccomp, [SET_STRICT, 1, 0], None),
            (libc::SYS_seccomp, [SET_FILTER, 1, 4096], filter),
            (libc::SYS_seccomp, [SET_FILTER, 1, 0], None),
            (libc::SYS_read, [SECCOMP, STRICT, 0], None),
        ] {
            let [first, second, third] = arguments;
            assert_eq!(Restriction::of(number, first, second, third), expected, "{arguments:?}");
        }
    }
}
