// SPDX-License-Identifier: Apache-2.0
//! Copies the segment of a program, or a copy of one, into memory that nobody else changes.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use tare_command::SegmentError;
use tare_log_segment::layout::{
    KIND, MOST_RINGS, Process, RingHead, VERSION, checked_ring_words, ring_at,
};
use tare_shm::{Errno, Header, Refusal, Segment, service, syscall};

const CHUNK: usize = 1 << 16;

/// The copy, sealed as a segment is; and the process that it belongs to, if it is one's own and
/// here, else 0. In words why not.
pub fn copy(path: &Path, source: &File) -> Result<(OwnedFd, u32), String> {
    if let Ok(Some(other)) = service::server(source.as_raw_fd()) {
        return Err(format!("collector (process {other}) uses it; stop that collector first"));
    }
    let cut_off = |_| "it is truncated".to_owned();
    let mut header = [0; size_of::<Header>()];
    source.read_exact_at(&mut header, 0).map_err(cut_off)?;
    let (mut words, mut used) = ([0; 8], [0; 4]);
    source.read_exact_at(&mut words, offset_of!(Process, ring_words) as u64).map_err(cut_off)?;
    source.read_exact_at(&mut used, offset_of!(Process, rings_used) as u64).map_err(cut_off)?;
    let (ring_words, size) = checked(&Header::read(&header), u64::from_le_bytes(words))
        .map_err(|refusal| SegmentError::Refused(refusal).to_string())?;
    let copy = memory(size).map_err(|error| error.to_string())?;
    let used = u32::from_le_bytes(used) as usize;
    move_all(source, &copy, ring_words, used.min(MOST_RINGS)).map_err(|error| error.to_string())?;
    Segment::seal(copy.as_raw_fd()).map_err(|error| failed(error).to_string())?;
    Ok((copy.into(), owner(path)))
}

/// Words of a ring, and bytes of the whole segment; a copy may be cut off behind what was read.
fn checked(header: &Header, ring_words: u64) -> Result<(usize, usize), Refusal> {
    // Before the numbers of other kinds are looked at.
    header.check(KIND, VERSION, header.size as usize)?;
    let ring_words = checked_ring_words(ring_words)?;
    let size = ring_at(MOST_RINGS, ring_words);
    header.check(KIND, VERSION, size).map(|()| (ring_words, size))
}

fn failed(Errno(number): Errno) -> io::Error {
    io::Error::from_raw_os_error(number)
}

fn memory(size: usize) -> io::Result<File> {
    let fd = syscall::memfd_create(c"tare-log-recovered", libc::MFD_CLOEXEC).map_err(failed)?;
    // SAFETY: it is new, and nobody else's.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    syscall::ftruncate(fd, size).map_err(failed)?;
    Ok(file.into())
}

/// The process whose descriptor the path names.
fn owner(path: &Path) -> u32 {
    let mut parts = path.iter();
    let is_proc = parts.next().is_some_and(|root| root == "/")
        && parts.next().is_some_and(|folder| folder == "proc");
    let pid = parts.next().and_then(|pid| pid.to_str()?.parse().ok());
    pid.filter(|_| is_proc).unwrap_or(0)
}

fn move_all(source: &File, copy: &File, ring_words: usize, used: usize) -> io::Result<()> {
    move_range(source, copy, 0, size_of::<Process>())?;
    for place in 0..used {
        let at = ring_at(place, ring_words);
        let mut head = vec![0; size_of::<RingHead>()];
        read_at(source, &mut head, at)?;
        move_range(source, copy, at + head.len(), 8 * ring_words)?;
        // What a thread has overwritten meanwhile is not taken.
        let mut after = vec![0; head.len()];
        read_at(source, &mut after, at)?;
        let index = |head: &[u8], at: usize| {
            u64::from_le_bytes(std::array::from_fn(|byte| head[at + byte]))
        };
        let passed = index(&after, TAIL).wrapping_sub(index(&head, TAIL));
        let there = index(&head, HEAD).wrapping_sub(index(&head, TAIL));
        let tail = index(&head, TAIL).wrapping_add(passed.min(there));
        head[TAIL..TAIL + 8].copy_from_slice(&tail.to_le_bytes());
        copy.write_all_at(&head, at as u64)?;
    }
    Ok(())
}

/// Where a ring's indices stand (docs/formats/shm.md).
const HEAD: usize = 0;
const TAIL: usize = 128;

/// What is all zero is left as it is, so that it takes no memory. Holes are not even read: most of
/// the room for tables and rings is never used.
fn move_range(source: &File, copy: &File, from: usize, length: usize) -> io::Result<()> {
    let (mut chunk, zeros) = (vec![0; CHUNK], vec![0; CHUNK]);
    let end = from + length;
    let mut at = from;
    while let Some(data) = data_from(source, at).filter(|data| *data < end) {
        let chunk = &mut chunk[..CHUNK.min(end - data)];
        read_at(source, chunk, data)?;
        if *chunk != zeros[..chunk.len()] {
            copy.write_all_at(chunk, data as u64)?;
        }
        at = data + chunk.len();
    }
    Ok(())
}

/// Where the first byte is that is not in a hole; `at` if the file system knows of no holes.
fn data_from(source: &File, at: usize) -> Option<usize> {
    // SAFETY: a call without pointers; no place of this file is ever used otherwise.
    let data = unsafe { libc::lseek(source.as_raw_fd(), at as i64, libc::SEEK_DATA) };
    let no_more = || io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO);
    match usize::try_from(data) {
        Ok(data) => Some(data),
        Err(_) if no_more() => None,
        Err(_) => Some(at),
    }
}

/// Behind the end of what was cut off there are zeros.
fn read_at(source: &File, bytes: &mut [u8], at: usize) -> io::Result<()> {
    let mut read = 0;
    while read < bytes.len() {
        match source.read_at(&mut bytes[read..], (at + read) as u64) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes[read..].fill(0);
    Ok(())
}
