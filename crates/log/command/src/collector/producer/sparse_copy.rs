// SPDX-License-Identifier: Apache-2.0
//! Copies words of a program's memory without allocating any for it: reading a page of a mapping
//! that was never written allocates the page.

use std::io::{Error, ErrorKind};
use std::os::fd::RawFd;
use std::sync::atomic::Ordering::Relaxed;
use tare_shm::Word;

/// Words that are looked at together.
const PIECE: usize = 1 << 17;

/// Copies `words` to `out`, which is as long; they are at `at` in the file behind `fd`.
pub fn copy(words: &[Word], fd: RawFd, at: usize, out: &mut [u64]) {
    let pieces = words.chunks(PIECE).zip(out.chunks_mut(PIECE));
    for (number, (words, out)) in pieces.enumerate() {
        if are_allocated(words) {
            out.iter_mut().zip(words).for_each(|(place, word)| *place = word.load(Relaxed));
        } else {
            pread(fd, at + 8 * PIECE * number, out);
        }
    }
}

/// Whether all pages of these words were allocated, and are in memory.
fn are_allocated(words: &[Word]) -> bool {
    const PAGE: usize = 4096;
    let mut pages = [0u8; 8 * PIECE / PAGE + 1];
    let begin = words.as_ptr().addr() & !(PAGE - 1);
    let length = words.as_ptr_range().end.addr() - begin;
    let pages = &mut pages[..length.div_ceil(PAGE)];
    let begin = std::ptr::without_provenance_mut(begin);
    // SAFETY: the kernel writes a byte for each page.
    let done = unsafe { libc::mincore(begin, length, pages.as_mut_ptr()) };
    done == 0 && pages.iter().all(|page| page & 1 != 0)
}

/// What was never written is zeros, and so is what cannot be read.
fn pread(fd: RawFd, at: usize, out: &mut [u64]) {
    let mut done = 0;
    while done < size_of_val(out) {
        let rest = out.as_mut_ptr().cast::<u8>().wrapping_add(done);
        // SAFETY: the kernel writes to the rest of `out`, for which all bytes are valid.
        let count = unsafe {
            libc::pread(fd, rest.cast(), size_of_val(out) - done, (at + done) as libc::off_t)
        };
        match usize::try_from(count) {
            Ok(count @ 1..) => done += count,
            Err(_) if Error::last_os_error().kind() == ErrorKind::Interrupted => {}
            _ => return out[done / 8..].fill(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_shm::{Access, Fill, Segment, syscall};

    #[test]
    fn words_are_copied_and_pages_between_them_are_not_allocated() {
        const WORDS: usize = 3 * PIECE;
        let fd = syscall::memfd_create(c"test", 0).unwrap();
        syscall::ftruncate(fd, 8 * WORDS).unwrap();
        let part = Segment::part(fd, 0, 8 * WORDS, Access::ReadWrite, Fill::Later).unwrap();
        let words = part.words(0, WORDS).unwrap();
        let never = PIECE..WORDS - 8;
        let numbers = |place: usize| if never.contains(&place) { 0 } else { place as u64 };
        for place in (0..WORDS).filter(|place| !never.contains(place)) {
            words[place].store(numbers(place), Relaxed);
        }
        let blocks = syscall::fstat(fd).unwrap().st_blocks;
        let mut out = vec![7; WORDS];
        copy(words, fd, 0, &mut out);
        assert!(out.iter().copied().eq((0..WORDS).map(numbers)));
        copy(&words[1..], fd, 8, &mut out[1..]);
        assert!(out.iter().copied().eq((0..WORDS).map(numbers)));
        assert_eq!(syscall::fstat(fd).unwrap().st_blocks, blocks);
    }
}
