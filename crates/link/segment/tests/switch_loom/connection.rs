// SPDX-License-Identifier: Apache-2.0
//! A connection as two threads use it, in all interleavings.

use loom::sync::Mutex;
use loom::sync::atomic::AtomicU8;
use loom::sync::atomic::Ordering::Relaxed;
use loom::thread;
use std::collections::VecDeque;
use tare_link_segment::{Direction, Mode, Source, Taken};

/// A connection: one direction of it, its ring, and what the kernel has of it.
#[derive(Default)]
pub struct Connection {
    pub direction: Direction,
    pub ring: [AtomicU8; 2],
    pub tcp: Mutex<Tcp>,
}

#[derive(Default)]
pub struct Tcp {
    pub queue: VecDeque<u8>,
    pub written: u64,
    /// The sender has closed it, or has ended.
    pub is_closed: bool,
}

/// What a call gives that finds no byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    Nothing,
    End,
}

pub const CAPACITY: u64 = 2;

impl Connection {
    pub fn lock(lock: &tare_link_segment::Lock, thread: u32) {
        while lock.try_take(thread) != Taken::Now {
            thread::yield_now();
        }
    }

    /// The receiver's lock, which a sender that was killed may have.
    pub fn lock_receiver(&self) {
        let lock = self.direction.receiver_lock();
        loop {
            match lock.try_take(2) {
                Taken::Now => return,
                _ if self.tcp.lock().unwrap().is_closed && lock.take_from(1, 2) => return,
                _ => thread::yield_now(),
            }
        }
    }

    pub fn close(&self) {
        self.tcp.lock().unwrap().is_closed = true;
    }

    pub fn to_tcp(&self, byte: u8) {
        assert!(self.direction.begin_write());
        let mut tcp = self.tcp.lock().unwrap();
        tcp.queue.push_back(byte);
        tcp.written += 1;
        drop(tcp);
        self.direction.end_write(1);
    }

    /// As the library sends: through the ring where it can, else through TCP.
    pub fn send(&self, byte: u8, upgrades: bool) {
        let direction = &self.direction;
        Self::lock(direction.sender_lock(), 1);
        if direction.is_left() {
            self.take_back();
        } else if direction.mode() == Mode::Tcp && upgrades {
            direction.upgrade(|| Some(self.tcp.lock().unwrap().written));
        }
        let (head, room) = direction.room(CAPACITY).unwrap();
        if direction.mode() == Mode::Ring && room > 0 {
            self.ring[(head % CAPACITY) as usize].store(byte, Relaxed);
            assert!(direction.publish(head, 1));
        } else {
            self.take_back();
            self.to_tcp(byte);
        }
        direction.sender_lock().release(1);
    }

    /// Writes what was not read of the ring to TCP, for a receiver that leaves.
    pub fn take_back(&self) {
        let direction = &self.direction;
        if direction.mode() == Mode::Tcp {
            return;
        }
        while !direction.can_downgrade() {
            thread::yield_now();
        }
        Self::lock(direction.receiver_lock(), 1);
        direction.take_back(CAPACITY).unwrap();
        direction.receiver_lock().release(1);
        while self.push() {}
    }

    /// Writes a byte that was taken back to TCP.
    pub fn push(&self) -> bool {
        let Some((from, _)) = self.direction.backlog() else { return false };
        self.to_tcp(self.ring[(from % CAPACITY) as usize].load(Relaxed));
        if self.direction.backlog().is_none() {
            self.direction.forget_backlog();
        }
        true
    }

    /// As the library receives, without waiting.
    pub fn look(&self) -> Result<u8, Rest> {
        let direction = &self.direction;
        self.lock_receiver();
        let mut source = direction.source(CAPACITY).unwrap();
        if matches!(source, Source::Tcp(_)) {
            direction.begin_read();
            source = direction.source(CAPACITY).unwrap();
            if !matches!(source, Source::Tcp(_)) {
                direction.end_read(0);
            }
        }
        let rest = |is_closed, is_same: fn(&Source) -> bool| {
            // Bytes of the ring may have been published before the end.
            let is_end = is_closed && is_same(&direction.source(CAPACITY).unwrap());
            if !is_end {
                return Err(Rest::Nothing);
            }
            let Some((from, _)) = direction.undelivered(0, CAPACITY).unwrap() else {
                return Err(Rest::End);
            };
            direction.end_read(1);
            Ok(self.ring[(from % CAPACITY) as usize].load(Relaxed))
        };
        let found = match source {
            Source::Tcp(_) => {
                let mut tcp = self.tcp.lock().unwrap();
                let (byte, is_closed) = (tcp.queue.pop_front(), tcp.is_closed);
                drop(tcp);
                direction.end_read(byte.is_some().into());
                byte.map_or_else(|| rest(is_closed, |now| matches!(now, Source::Tcp(_))), Ok)
            }
            Source::Ring { from, .. } => {
                let byte = self.ring[(from % CAPACITY) as usize].load(Relaxed);
                assert!(direction.consume(from, 1));
                Ok(byte)
            }
            Source::Empty => {
                let is_closed = self.tcp.lock().unwrap().is_closed;
                rest(is_closed, |now| matches!(now, Source::Empty))
            }
        };
        direction.receiver_lock().release(2);
        found
    }

    pub fn receive(&self) -> Option<u8> {
        self.look().ok()
    }

    /// All bytes until the stream ends, and how it does.
    pub fn receive_all(&self) -> (Vec<u8>, Rest) {
        let mut all = Vec::new();
        loop {
            match self.look() {
                Ok(byte) => all.push(byte),
                Err(Rest::Nothing) => thread::yield_now(),
                Err(rest) => return (all, rest),
            }
        }
    }

    pub fn expect(&self, byte: u8) {
        loop {
            if let Some(got) = self.receive() {
                assert_eq!(got, byte);
                return;
            }
            thread::yield_now();
        }
    }
}

pub fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}
