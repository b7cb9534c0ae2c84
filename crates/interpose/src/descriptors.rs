// SPDX-License-Identifier: Apache-2.0
use crate::ThreadBlock;
use core::ffi::c_int;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};
use tare_shm::{memory, syscall};

/// Descriptors of a chunk, whose memory is asked for when the first of them is a socket or
/// is read.
const CHUNK: usize = 1024;

/// Chunks: descriptors up to 2^20 are known, which is the kernel's default limit (fs.nr_open).
const CHUNKS: usize = 1024;

/// Places that are tried for a connection whose own is still taken.
const PROBES: usize = 64;

/// What a descriptor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Not looked at yet.
    Unknown = 0,
    /// No socket.
    Other = 1,
    /// A stream socket of IPv4 or IPv6.
    Tcp = 2,
    /// Another stream socket.
    Stream = 3,
    /// Any other socket: datagrams, packets.
    Datagram = 4,
}

impl Kind {
    fn of_socket(domain: c_int, kind: c_int) -> Self {
        match (domain, kind) {
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM) => Self::Tcp,
            (_, libc::SOCK_STREAM) => Self::Stream,
            _ => Self::Datagram,
        }
    }

    pub fn is_socket(self) -> bool {
        matches!(self, Self::Tcp | Self::Stream | Self::Datagram)
    }

    pub fn is_stream(self) -> bool {
        matches!(self, Self::Tcp | Self::Stream)
    }
}

/// What a library keeps of a stream connection.
///
/// # Safety
/// Made of atomics only, so that zero bytes are a value of it.
pub unsafe trait Connection: Sync + 'static {
    /// Back to the state of a new connection, which is that of zero bytes.
    fn reset(&self);

    /// The library did not see the program open it: another program did, or it was there before.
    fn found(&self) {}
}

/// What is known of a descriptor at one moment: its kind, and the place of its connection
/// plus 1 (0 for none). Of an unknown kind, which close it was: who has asked the kernel before
/// sees that the answer may be of another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(u64);

impl Entry {
    const UNKNOWN: Self = Self(0);
    /// A thread is about to close it: nothing is remembered of it meanwhile. Its kind is unknown.
    const CLOSING: Self = Self(u8::MAX as u64);

    fn new(kind: Kind, place: Option<usize>) -> Self {
        Self(kind as u64 | (place.map_or(0, |place| place as u64 + 1)) << 8)
    }

    #[inline]
    pub fn kind(self) -> Kind {
        match self.0 as u8 {
            1 => Kind::Other,
            2 => Kind::Tcp,
            3 => Kind::Stream,
            4 => Kind::Datagram,
            _ => Kind::Unknown,
        }
    }

    #[inline]
    fn place(self) -> Option<usize> {
        if self.kind() == Kind::Unknown {
            return None;
        }
        (self.0 >> 8).checked_sub(1).map(|place| place as usize)
    }
}

struct Chunk<C> {
    entries: [AtomicU64; CHUNK],
    connections: [Shared<C>; CHUNK],
}

/// A connection and the number of descriptors that it has.
struct Shared<C> {
    references: AtomicU32,
    connection: C,
}

/// What is known of every descriptor of the process, and a `C` for every stream connection.
///
/// Duplicates share their connection. It lives at its first descriptor's own place; when that
/// number is closed and taken again while a duplicate still lives, the newcomer looks for
/// another place near by. Lock-free; a descriptor that is closed by one thread while another
/// reads it may lose what was known of it, never more.
pub struct Descriptors<C> {
    chunks: [AtomicPtr<Chunk<C>>; CHUNKS],
    closes: AtomicU64,
}

impl<C: Connection> Default for Descriptors<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Connection> Descriptors<C> {
    pub const fn new() -> Self {
        Self { chunks: [const { AtomicPtr::new(null_mut()) }; CHUNKS], closes: AtomicU64::new(0) }
    }

    /// What `fd` is, found out if nobody knows yet.
    #[inline]
    pub fn look_up(&self, fd: c_int) -> Entry {
        let entry = self.get(fd);
        if entry.kind() == Kind::Unknown { self.classify(fd, entry) } else { entry }
    }

    /// What is known of `fd`.
    #[inline]
    pub fn get(&self, fd: c_int) -> Entry {
        match self.entry(fd) {
            Some(entry) => Entry(entry.load(Acquire)),
            None => Entry::UNKNOWN,
        }
    }

    /// The connection of a stream socket; `None` where there was no place for it.
    #[inline]
    pub fn connection(&self, entry: Entry) -> Option<&C> {
        Some(&self.shared(entry.place()?)?.connection)
    }

    /// Whether a connection has no other descriptor.
    pub fn is_last(&self, entry: Entry) -> bool {
        let shared = entry.place().and_then(|place| self.shared(place));
        shared.is_some_and(|shared| shared.references.load(Acquire) == 1)
    }

    /// Finds out what `fd` is by asking the kernel, once, and remembers it, unless it is not
    /// `unknown` any more.
    #[cold]
    fn classify(&self, fd: c_int, unknown: Entry) -> Entry {
        if ThreadBlock::of_any().is_borrowed() {
            return Entry::UNKNOWN;
        }
        let domain = socket_option(fd, libc::SO_DOMAIN);
        let kind = match domain.and_then(|domain| Ok((domain, socket_option(fd, libc::SO_TYPE)?))) {
            Ok((domain, kind)) => Kind::of_socket(domain, kind),
            Err(syscall::Errno(libc::ENOTSOCK)) => Kind::Other,
            // Not open, or the kernel does not let us ask.
            Err(_) => return Entry::UNKNOWN,
        };
        self.remember(fd, kind, Some(unknown))
    }

    /// Finds out what all descriptors of the first chunk are, for a time when the kernel cannot be
    /// asked.
    pub fn look_up_all(&self) {
        let _ = self.make(0);
        (0..CHUNK as c_int).for_each(|fd| {
            self.look_up(fd);
        });
    }

    /// `fd` is a new socket.
    pub fn opened(&self, fd: c_int, domain: c_int, kind: c_int) {
        self.replace(fd, Kind::of_socket(domain, kind & 0xff));
    }

    /// `fd` is a new connection of the listening socket `listener`.
    pub fn accepted(&self, fd: c_int, listener: c_int) {
        self.replace(fd, self.look_up(listener).kind());
    }

    /// `new` is now a duplicate of `old`.
    pub fn duplicated(&self, old: c_int, new: c_int) {
        if old == new || ThreadBlock::of_any().is_borrowed() {
            return;
        }
        self.released(new);
        // Known from now on: looked at later, one by one, they would be two connections.
        let entry = self.look_up(old);
        if entry.kind() == Kind::Unknown {
            return;
        }
        let place = entry.place().filter(|place| self.join(*place));
        let entry = Entry::new(entry.kind(), place);
        self.drop_place(match self.make(new) {
            Some(slot) => Entry(slot.swap(entry.0, AcqRel)),
            None => entry,
        });
    }

    /// `fd` is closed, or will be at once.
    #[inline]
    pub fn released(&self, fd: c_int) {
        if let Some(entry) = self.entry(fd)
            && !ThreadBlock::of_any().is_borrowed()
        {
            self.drop_place(Entry(entry.swap(self.unknown().0, AcqRel)));
        }
    }

    /// `fd` will be closed at once. What other threads find out of it until `closed` is not kept:
    /// the number may by then be another file's.
    #[inline]
    pub fn closing(&self, fd: c_int) {
        if let Some(entry) = self.entry(fd)
            && !ThreadBlock::of_any().is_borrowed()
        {
            self.drop_place(Entry(entry.swap(Entry::CLOSING.0, AcqRel)));
        }
    }

    /// The end of what `closing` began: what `fd` is, is unknown, unless it has a new socket.
    #[inline]
    pub fn closed(&self, fd: c_int) {
        if let Some(entry) = self.entry(fd)
            && !ThreadBlock::of_any().is_borrowed()
        {
            let unknown = self.unknown();
            let _ = entry.compare_exchange(Entry::CLOSING.0, unknown.0, AcqRel, Relaxed);
        }
    }

    /// All descriptors from `first` to `last`, both included, are closed.
    pub fn released_range(&self, first: u32, last: u32) {
        let last = last.min((CHUNK * CHUNKS - 1) as u32);
        let mut fd = first;
        while fd <= last {
            if self.chunk(fd as usize / CHUNK).is_none() {
                fd = (fd / CHUNK as u32 + 1) * CHUNK as u32;
                continue;
            }
            self.released(fd as c_int);
            fd += 1;
        }
    }

    /// Does something with every descriptor that is known to be a stream, until it returns true;
    /// returns that descriptor.
    pub fn find(&self, mut what: impl FnMut(c_int, Entry) -> bool) -> Option<c_int> {
        (0..CHUNKS).filter_map(|number| Some((number, self.chunk(number)?))).find_map(
            |(number, chunk)| {
                let entries = chunk.entries.iter().map(|entry| Entry(entry.load(Acquire)));
                let first = (number * CHUNK) as c_int;
                (first..)
                    .zip(entries)
                    .find(|(fd, entry)| entry.kind().is_stream() && what(*fd, *entry))
                    .map(|(fd, _)| fd)
            },
        )
    }

    /// An entry of a descriptor that is closed, unlike all before.
    fn unknown(&self) -> Entry {
        Entry(self.closes.fetch_add(1, Relaxed).wrapping_add(1) << 8)
    }

    fn replace(&self, fd: c_int, kind: Kind) {
        if !ThreadBlock::of_any().is_borrowed() {
            self.released(fd);
            self.remember(fd, kind, None);
        }
    }

    /// Puts a new entry down; where `unknown` must be there still, takes what another thread put
    /// there meanwhile. If that has closed the descriptor, this is about a last call on it.
    fn remember(&self, fd: c_int, kind: Kind, unknown: Option<Entry>) -> Entry {
        let nothing = Entry::new(kind, None);
        let Some(slot) = self.make(fd) else { return nothing };
        if unknown == Some(Entry::CLOSING) {
            return nothing;
        }
        let place = if kind.is_stream() { self.take(fd as usize) } else { None };
        let entry = Entry::new(kind, place);
        if unknown.is_some()
            && let Some(connection) = self.connection(entry)
        {
            connection.found();
        }
        let Some(unknown) = unknown else {
            self.drop_place(Entry(slot.swap(entry.0, AcqRel)));
            return entry;
        };
        match slot.compare_exchange(unknown.0, entry.0, AcqRel, Acquire) {
            Ok(_) => entry,
            Err(other) => {
                self.drop_place(entry);
                let other = Entry(other);
                if other.kind() == Kind::Unknown { nothing } else { other }
            }
        }
    }

    /// A free place for a connection, as near to `wanted` as there is one.
    fn take(&self, wanted: usize) -> Option<usize> {
        (0..PROBES).map(|step| (wanted + step) % (CHUNK * CHUNKS)).find(|place| {
            // Memory is asked for a place only if it is the descriptor's own chunk.
            let Some(shared) = self.shared(*place) else { return false };
            let free = shared.references.compare_exchange(0, 1, AcqRel, Relaxed).is_ok();
            if free {
                shared.connection.reset();
            }
            free
        })
    }

    /// One more descriptor for a connection, unless it has none left.
    fn join(&self, place: usize) -> bool {
        self.shared(place).is_some_and(|shared| {
            let more = |count: u32| (count > 0).then_some(count + 1);
            shared.references.fetch_update(AcqRel, Relaxed, more).is_ok()
        })
    }

    fn leave(&self, place: usize) {
        if let Some(shared) = self.shared(place) {
            let fewer = |count: u32| count.checked_sub(1);
            let _ = shared.references.fetch_update(AcqRel, Relaxed, fewer);
        }
    }

    fn drop_place(&self, entry: Entry) {
        if let Some(place) = entry.place() {
            self.leave(place);
        }
    }

    #[inline]
    fn shared(&self, place: usize) -> Option<&Shared<C>> {
        Some(&self.chunk(place / CHUNK)?.connections[place % CHUNK])
    }

    #[inline]
    fn entry(&self, fd: c_int) -> Option<&AtomicU64> {
        let fd = usize::try_from(fd).ok()?;
        Some(&self.chunk(fd / CHUNK)?.entries[fd % CHUNK])
    }

    #[inline]
    fn chunk(&self, number: usize) -> Option<&Chunk<C>> {
        // SAFETY: null, or a chunk of zero bytes, which is a value of it; never unmapped.
        unsafe { self.chunks.get(number)?.load(Acquire).as_ref() }
    }

    /// The entry of `fd`, with memory for it; `None` beyond the table or without memory.
    fn make(&self, fd: c_int) -> Option<&AtomicU64> {
        if let Some(entry) = self.entry(fd) {
            return Some(entry);
        }
        let number = usize::try_from(fd).ok()? / CHUNK;
        let chunk = self.chunks.get(number)?;
        let length = size_of::<Chunk<C>>();
        let fresh = memory::map_private(length).ok()?;
        if chunk.compare_exchange(null_mut(), fresh.cast(), AcqRel, Acquire).is_err() {
            // SAFETY: nobody knows of the mapping but us.
            unsafe { memory::unmap(fresh, length) };
        }
        self.entry(fd)
    }
}

/// An option of the level SOL_SOCKET.
pub fn socket_option(fd: c_int, name: c_int) -> Result<c_int, syscall::Errno> {
    let mut value: c_int = 0;
    let mut length = size_of::<c_int>() as libc::socklen_t;
    let (value_at, length_at) = ((&raw mut value).addr(), (&raw mut length).addr());
    let (level, name) = (libc::SOL_SOCKET as usize, name as usize);
    // SAFETY: the kernel writes at most `length` bytes of the value, and the length.
    unsafe {
        syscall::call(libc::SYS_getsockopt, [fd as usize, level, name, value_at, length_at, 0])
    }
    .map(|_| value)
}

#[cfg(test)]
#[path = "descriptors_test.rs"]
mod tests;
