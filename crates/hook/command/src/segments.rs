// SPDX-License-Identifier: Apache-2.0
use crate::poll_interval::Pace;
use std::os::fd::RawFd;
use tare_command::{Failure, SegmentError};
use tare_hook_segment::{Control, Handover, Shared, VERSION};
use tare_shm::{Access, Errno, Refusal, Segment, move_up, service, syscall};

/// The two segments, which this process alone serves.
pub struct Segments {
    pub control: &'static Control,
    pub shared: &'static Shared,
}

impl Segments {
    /// New ones, under descriptors that the program inherits.
    pub fn create() -> Result<(Self, Handover), Failure> {
        Self::try_create().map_err(|error| {
            let reason = match error {
                SegmentError::Refused(Refusal::Failed(Errno(libc::EFBIG))) => {
                    let needed = size_of::<Shared>().div_ceil(1 << 20);
                    format!("raise the limit of file sizes to {needed} MiB (ulimit -f)")
                }
                error => error.to_string(),
            };
            Failure::work(format_args!("shared memory could not be created: {reason}"))
        })
    }

    fn try_create() -> Result<(Self, Handover), SegmentError> {
        let (control_fd, control) =
            Segment::create(Control::NAME, Control::KIND, VERSION, size_of::<Control>())?;
        let (shared_fd, shared) =
            Segment::create(Shared::NAME, Shared::KIND, VERSION, size_of::<Shared>())?;
        let header = shared.header();
        let handover = Handover {
            pid: header.owner_pid,
            start: header.owner_start,
            control: move_up(read_only(control_fd)?),
            shared: move_up(shared_fd),
        };
        let segments = Self::serve(control, shared, handover.shared)?;
        segments.shared.settle();
        Pace::begin(segments.shared);
        Ok((segments, handover))
    }

    /// Those of a program, by the files that it has mapped. The descriptors stay open: with
    /// them the lock would go.
    pub fn open(control: RawFd, shared: RawFd) -> Result<Self, SegmentError> {
        let open = |fd, kind| Segment::open(fd, kind, VERSION, Access::ReadWrite);
        Self::serve(open(control, Control::KIND)?, open(shared, Shared::KIND)?, shared)
    }

    fn serve(control: Segment, shared: Segment, fd: RawFd) -> Result<Self, SegmentError> {
        // SAFETY: both types hold nothing but atomics.
        let (control, shared) = unsafe { (control.at(0), shared.at(0)) };
        let (Some(control), Some(shared)) = (control, shared) else {
            return Err(Refusal::TooSmall.into());
        };
        match service::serve(fd)? {
            None => Ok(Self { control, shared }),
            Some(other) => Err(SegmentError::Served(other)),
        }
    }
}

/// The same file under a descriptor that writes nothing, in place of `fd`.
fn read_only(fd: RawFd) -> Result<RawFd, Errno> {
    let path = std::ffi::CString::new(format!("/proc/self/fd/{fd}")).unwrap_or_default();
    let fresh = syscall::open(&path, libc::O_RDONLY)?;
    syscall::close(fd);
    Ok(fresh)
}
