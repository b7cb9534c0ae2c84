// SPDX-License-Identifier: Apache-2.0
//! The limit of open files: getrlimit(2).

/// Raises the limit of open files to the hard one, as the soft one is often 1024, and returns it.
pub fn raise_open_files() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the result.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return usize::MAX;
    }
    let soft = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is a valid limit.
    let now = match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } {
        0 => limit.rlim_max,
        _ => soft,
    };
    usize::try_from(now).unwrap_or(usize::MAX)
}
