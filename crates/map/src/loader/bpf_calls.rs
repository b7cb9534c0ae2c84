// SPDX-License-Identifier: Apache-2.0
//! Calls of bpf(2) that the loader has no function for.

use aya::Pod;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const PROGRAM_INFO: libc::c_int = 15;
const LOOKUP_BATCH: libc::c_int = 24;
const LOOKUP_AND_DELETE_BATCH: libc::c_int = 25;
const LINK_CREATE: libc::c_int = 28;
const ITERATOR_CREATE: libc::c_int = 33;
const TRACE_ITERATOR: u32 = 28;

/// Calls bpf(2) with one of the members of `union bpf_attr`; shorter ones are valid.
fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_long> {
    // SAFETY: the kernel reads and writes at most the size that it is given, and the memory that
    // the attributes point to lives as long as the caller's variables.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn owned(descriptor: libc::c_long) -> OwnedFd {
    // SAFETY: the kernel has just returned it, and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(descriptor as i32) }
}

/// A program that runs for each element of a map, or for each object of a kind.
pub struct Iterator(OwnedFd);

impl Iterator {
    pub fn new(program: BorrowedFd<'_>, map: Option<BorrowedFd<'_>>) -> io::Result<Self> {
        #[repr(C)]
        struct Attributes {
            program: u32,
            target: u32,
            kind: u32,
            flags: u32,
            information: u64,
            length: u32,
            padding: u32,
        }
        // union bpf_iter_link_info: its first member is the map.
        let information = [map.map_or(0, |map| map.as_raw_fd() as u32), 0, 0, 0];
        let mut attributes = Attributes {
            program: program.as_raw_fd() as u32,
            target: 0,
            kind: TRACE_ITERATOR,
            flags: 0,
            information: map.map_or(0, |_| information.as_ptr() as u64),
            length: map.map_or(0, |_| size_of_val(&information) as u32),
            padding: 0,
        };
        Ok(Self(owned(bpf(LINK_CREATE, &mut attributes)?)))
    }

    /// Runs the program once for everything; what it prints is dropped.
    pub fn run(&self) -> io::Result<()> {
        #[repr(C)]
        struct Attributes {
            link: u32,
            flags: u32,
        }
        let mut attributes = Attributes { link: self.0.as_raw_fd() as u32, flags: 0 };
        let mut file = File::from(owned(bpf(ITERATOR_CREATE, &mut attributes)?));
        let mut buffer = [0; 64];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                // After a million objects the kernel lets others run.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                    ) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// All elements of a hash map, in batches. The map may change meanwhile; an element that stays in
/// it is read at least once.
pub fn elements<K: Pod, V: Pod>(map: impl AsFd, empty: (K, V)) -> io::Result<Vec<(K, V)>> {
    batches(LOOKUP_BATCH, map, empty)
}

/// The same, and they are removed.
pub fn take_elements<K: Pod, V: Pod>(map: impl AsFd, empty: (K, V)) -> io::Result<Vec<(K, V)>> {
    batches(LOOKUP_AND_DELETE_BATCH, map, empty)
}

/// Returns when every program that was running in the kernel has ended.
pub fn wait_for_programs() -> io::Result<()> {
    const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;
    // SAFETY: the call has no pointers.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn batches<K: Pod, V: Pod>(
    command: libc::c_int,
    map: impl AsFd,
    empty: (K, V),
) -> io::Result<Vec<(K, V)>> {
    #[repr(C)]
    struct Attributes {
        from: u64,
        to: u64,
        keys: u64,
        values: u64,
        count: u32,
        map: u32,
        element_flags: u64,
        flags: u64,
    }
    let mut batch = 1024;
    let mut found = Vec::new();
    // Where the next batch begins: for a hash map a number of 32 bits.
    let mut place: Option<u32> = None;
    let (mut keys, mut values) = (vec![empty.0; batch], vec![empty.1; batch]);
    loop {
        let mut next = 0_u32;
        let from = place;
        let mut attributes = Attributes {
            from: from.as_ref().map_or(0, |place| std::ptr::from_ref(place) as u64),
            to: std::ptr::from_mut(&mut next) as u64,
            keys: keys.as_mut_ptr() as u64,
            values: values.as_mut_ptr() as u64,
            count: batch as u32,
            map: map.as_fd().as_raw_fd() as u32,
            element_flags: 0,
            flags: 0,
        };
        let result = bpf(command, &mut attributes);
        let (count, is_last) = match result {
            Ok(_) => (attributes.count as usize, false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (attributes.count as usize, true)
            }
            // One bucket has more elements than a batch has room for.
            Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => {
                batch *= 4;
                (keys, values) = (vec![empty.0; batch], vec![empty.1; batch]);
                continue;
            }
            Err(error) => return Err(error),
        };
        found.extend(keys[..count].iter().copied().zip(values[..count].iter().copied()));
        if is_last {
            return Ok(found);
        }
        place = Some(next);
    }
}

/// What the kernel counts for a program.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgramRuns {
    /// Zero without statistics, like `count`.
    pub nanoseconds: u64,
    pub count: u64,
    /// Events for which it did not run, because it was running on the same CPU.
    pub missed: u64,
}

pub fn program_runs(program: BorrowedFd<'_>) -> io::Result<ProgramRuns> {
    #[repr(C)]
    struct Attributes {
        program: u32,
        length: u32,
        information: u64,
    }
    // struct bpf_prog_info as words; later kernels have more.
    let mut information = [0_u64; 29];
    let mut attributes = Attributes {
        program: program.as_raw_fd() as u32,
        length: size_of_val(&information) as u32,
        information: information.as_mut_ptr() as u64,
    };
    bpf(PROGRAM_INFO, &mut attributes)?;
    // run_time_ns, run_cnt and recursion_misses are at bytes 192, 200 and 208.
    Ok(ProgramRuns {
        nanoseconds: information[24],
        count: information[25],
        missed: information[26],
    })
}
