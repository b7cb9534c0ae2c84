// SPDX-License-Identifier: Apache-2.0
use std::io;
use std::os::fd::RawFd;
use tare_command::Failure;
use tare_hook_segment::{Control, Handover, Shared, VERSION};
use tare_shm::{Access, Errno, Refusal, Segment, syscall};

/// The two segments, under descriptors that the program inherits.
pub struct Segments {
    pub control: &'static Control,
    pub shared: &'static Shared,
    pub handover: Handover,
}

impl Segments {
    pub fn create() -> Result<Self, Failure> {
        Self::try_create().map_err(|refusal| {
            let reason = match refusal {
                Refusal::Failed(Errno(libc::EFBIG)) => {
                    let needed = size_of::<Shared>().div_ceil(1 << 20);
                    format!("raise the limit of file sizes to {needed} MiB (ulimit -f)")
                }
                Refusal::Failed(Errno(number)) => io::Error::from_raw_os_error(number).to_string(),
                other => format!("{other:?}"),
            };
            Failure::work(format_args!("shared memory could not be made: {reason}"))
        })
    }

    fn try_create() -> Result<Self, Refusal> {
        let (control_fd, control) = Segment::create(
            c"tare-hook-control",
            Control::KIND,
            VERSION,
            size_of::<Control>(),
            Access::ReadOnly,
        )?;
        let (shared_fd, shared) = Segment::create(
            c"tare-hook-shared",
            Shared::KIND,
            VERSION,
            size_of::<Shared>(),
            Access::ReadWrite,
        )?;
        let header = shared.header();
        let handover = Handover {
            pid: header.owner_pid,
            start: header.owner_start,
            control: move_up(control_fd)?,
            shared: move_up(shared_fd)?,
        };
        // SAFETY: both types hold nothing but atomics.
        let (control, shared) = unsafe { (control.at(0), shared.at(0)) };
        let (Some(control), Some(shared)) = (control, shared) else {
            return Err(Refusal::TooSmall);
        };
        Ok(Self { control, shared, handover })
    }
}

/// Moves a descriptor out of the way of programs that count on low numbers, such as
/// `exec 3>file` in a script. It stays close-on-exec here.
fn move_up(fd: RawFd) -> Result<RawFd, Refusal> {
    const HIGH: u64 = 1000;
    let mut limit = libc::rlimit { rlim_cur: HIGH, rlim_max: HIGH };
    // SAFETY: `limit` is valid for the call.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    let lowest = limit.rlim_cur.saturating_sub(8).min(HIGH) as usize;
    let moved = syscall::fcntl(fd, libc::F_DUPFD_CLOEXEC, lowest)?;
    syscall::close(fd);
    Ok(moved as RawFd)
}
