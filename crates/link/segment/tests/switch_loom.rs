// SPDX-License-Identifier: Apache-2.0
//! Every interleaving of upgrades, downgrades, bytes that are taken back, and sleep:
//! `RUSTFLAGS="--cfg loom" cargo test -p tare-link-segment --release --test switch_loom`
#![cfg(loom)]

use loom::sync::atomic::AtomicU8;
use loom::sync::atomic::Ordering::Relaxed;
use loom::sync::{Arc, Mutex};
use loom::thread;
use std::collections::VecDeque;
use tare_link_segment::{Direction, Mode, Source, Taken};

/// A connection: one direction of it, its ring, and what the kernel has of it.
#[derive(Default)]
struct Connection {
    direction: Direction,
    ring: [AtomicU8; 2],
    tcp: Mutex<Tcp>,
}

#[derive(Default)]
struct Tcp {
    queue: VecDeque<u8>,
    written: u64,
    /// The sender has closed it, or has ended.
    is_closed: bool,
}

/// What a call gives that finds no byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Nothing,
    End,
}

const CAPACITY: u64 = 2;

impl Connection {
    fn lock(lock: &tare_link_segment::Lock, thread: u32) {
        while lock.try_take(thread) != Taken::Now {
            thread::yield_now();
        }
    }

    /// The receiver's lock, which a sender that was killed may have.
    fn lock_receiver(&self) {
        let lock = self.direction.receiver_lock();
        loop {
            match lock.try_take(2) {
                Taken::Now => return,
                _ if self.tcp.lock().unwrap().is_closed && lock.take_from(1, 2) => return,
                _ => thread::yield_now(),
            }
        }
    }

    fn close(&self) {
        self.tcp.lock().unwrap().is_closed = true;
    }

    fn to_tcp(&self, byte: u8) {
        assert!(self.direction.begin_write());
        let mut tcp = self.tcp.lock().unwrap();
        tcp.queue.push_back(byte);
        tcp.written += 1;
        drop(tcp);
        self.direction.end_write(1);
    }

    /// As the library sends: through the ring where it can, else through TCP.
    fn send(&self, byte: u8, upgrades: bool) {
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
    fn take_back(&self) {
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
    fn push(&self) -> bool {
        let Some((from, _)) = self.direction.backlog() else { return false };
        self.to_tcp(self.ring[(from % CAPACITY) as usize].load(Relaxed));
        if self.direction.backlog().is_none() {
            self.direction.forget_backlog();
        }
        true
    }

    /// As the library receives, without waiting.
    fn look(&self) -> Result<u8, Rest> {
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
            let Some((from, _)) = direction.cut(0, CAPACITY).unwrap() else {
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

    fn receive(&self) -> Option<u8> {
        self.look().ok()
    }

    /// All bytes until the stream ends, and how it does.
    fn receive_all(&self) -> (Vec<u8>, Rest) {
        let mut all = Vec::new();
        loop {
            match self.look() {
                Ok(byte) => all.push(byte),
                Err(Rest::Nothing) => thread::yield_now(),
                Err(rest) => return (all, rest),
            }
        }
    }

    fn expect(&self, byte: u8) {
        loop {
            if let Some(got) = self.receive() {
                assert_eq!(got, byte);
                return;
            }
            thread::yield_now();
        }
    }
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

#[test]
fn under_loom_bytes_keep_their_order_through_upgrades_and_downgrades() {
    model(|| {
        let connection = Arc::new(Connection::default());
        connection.direction.ready(0);
        let sender = {
            let connection = connection.clone();
            thread::spawn(move || (1..=4).for_each(|byte| connection.send(byte, true)))
        };
        (1..=4).for_each(|byte| connection.expect(byte));
        sender.join().unwrap();
        assert_eq!(connection.receive(), None);
    });
}

#[test]
fn under_loom_the_receiver_may_become_ready_at_any_time() {
    model(|| {
        let connection = Arc::new(Connection::default());
        let sender = {
            let connection = connection.clone();
            thread::spawn(move || (1..=2).for_each(|byte| connection.send(byte, true)))
        };
        connection.direction.ready(0);
        (1..=2).for_each(|byte| connection.expect(byte));
        sender.join().unwrap();
    });
}

#[test]
fn under_loom_a_receiver_that_leaves_gets_every_byte_from_tcp() {
    model(|| {
        let connection = Arc::new(Connection::default());
        connection.direction.ready(0);
        connection.send(1, true);
        let sender = {
            let connection = connection.clone();
            thread::spawn(move || {
                connection.send(2, true);
                // The sender's next call, which may be a wait.
                Connection::lock(connection.direction.sender_lock(), 1);
                if connection.direction.is_left() {
                    connection.take_back();
                }
                connection.direction.sender_lock().release(1);
            })
        };
        let first = connection.receive();
        connection.direction.leave();
        sender.join().unwrap();
        connection.send(3, true);
        let rest = std::iter::from_fn(|| connection.receive());
        let all: Vec<u8> = first.into_iter().chain(rest).collect();
        assert_eq!(all, [1, 2, 3]);
        assert!(connection.direction.is_back());
        assert_eq!(connection.direction.mode(), Mode::Tcp);
    });
}

#[test]
fn under_loom_unread_bytes_stay_before_those_of_tcp() {
    model(|| {
        let connection = Arc::new(Connection::default());
        connection.direction.ready(0);
        connection.send(1, true);
        let sender = {
            let connection = connection.clone();
            thread::spawn(move || {
                let direction = &connection.direction;
                Connection::lock(direction.sender_lock(), 1);
                while !direction.can_downgrade() {
                    thread::yield_now();
                }
                direction.downgrade();
                connection.to_tcp(2);
                direction.sender_lock().release(1);
                connection.send(3, true);
            })
        };
        (1..=3).for_each(|byte| connection.expect(byte));
        sender.join().unwrap();
        assert_eq!(connection.receive(), None);
    });
}

#[test]
fn under_loom_all_bytes_come_before_the_end() {
    for upgrades in [false, true] {
        model(move || {
            let connection = Arc::new(Connection::default());
            connection.direction.ready(0);
            let sender = {
                let connection = connection.clone();
                thread::spawn(move || {
                    connection.send(1, upgrades);
                    connection.send(2, true);
                    connection.close();
                })
            };
            assert_eq!(connection.receive_all(), (vec![1, 2], Rest::End));
            sender.join().unwrap();
        });
    }
}

#[test]
fn under_loom_a_sender_that_is_killed_has_sent_what_it_had_published() {
    for is_published in [false, true] {
        model(move || {
            let connection = Arc::new(Connection::default());
            connection.direction.ready(0);
            let sender = {
                let connection = connection.clone();
                thread::spawn(move || {
                    connection.send(1, true);
                    let direction = &connection.direction;
                    Connection::lock(direction.sender_lock(), 1);
                    let (head, _) = direction.room(CAPACITY).unwrap();
                    connection.ring[(head % CAPACITY) as usize].store(2, Relaxed);
                    if is_published {
                        assert!(direction.publish(head, 1));
                    }
                    connection.close();
                })
            };
            let sent = if is_published { vec![1, 2] } else { vec![1] };
            assert_eq!(connection.receive_all(), (sent, Rest::End));
            sender.join().unwrap();
        });
    }
}

#[test]
fn under_loom_bytes_that_a_killed_sender_took_back_are_received() {
    for (pushed, is_counted) in [(0, true), (1, false), (1, true), (2, false), (2, true)] {
        take_back_and_end(pushed, is_counted);
    }
}

/// The sender is killed when TCP has accepted this number of bytes, before or after it has counted
/// the last one.
fn take_back_and_end(pushed: usize, is_counted: bool) {
    model(move || {
        let connection = Arc::new(Connection::default());
        connection.direction.ready(0);
        connection.send(1, true);
        connection.send(2, true);
        let sender = {
            let connection = connection.clone();
            thread::spawn(move || {
                let direction = &connection.direction;
                Connection::lock(direction.sender_lock(), 1);
                while !direction.can_downgrade() {
                    thread::yield_now();
                }
                Connection::lock(direction.receiver_lock(), 1);
                direction.take_back(CAPACITY).unwrap();
                let counted = pushed - usize::from(!is_counted);
                for _ in 0..counted {
                    connection.push();
                }
                if !is_counted && let Some((from, _)) = direction.backlog() {
                    let byte = connection.ring[(from % CAPACITY) as usize].load(Relaxed);
                    connection.tcp.lock().unwrap().queue.push_back(byte);
                }
                connection.close();
            })
        };
        assert_eq!(connection.receive_all(), (vec![1, 2], Rest::End));
        sender.join().unwrap();
    });
}

/// As a thread that waits: a look without a lock, then an armed bell and a second look. Whether it
/// would sleep.
fn falls_asleep(connection: &Connection) -> bool {
    let direction = &connection.direction;
    Connection::lock(direction.receiver_lock(), 2);
    let bell = direction.bell();
    direction.sleepers().fetch_add(1, Relaxed);
    let is_empty = !bell.is_rung() && {
        bell.arm();
        !matches!(direction.source(CAPACITY), Ok(Source::Ring { .. }))
    };
    direction.receiver_lock().release(2);
    is_empty && !direction.is_left()
}

#[test]
fn under_loom_a_thread_that_reads_does_not_take_another_ones_bell() {
    model(|| {
        let connection = Arc::new(Connection::default());
        connection.direction.ready(0);
        connection.send(1, true);
        let reader = {
            let connection = connection.clone();
            thread::spawn(move || {
                let found = connection.receive().is_some();
                let direction = &connection.direction;
                Connection::lock(direction.receiver_lock(), 2);
                if direction.sleepers().load(Relaxed) == 0 {
                    direction.bell().disarm();
                }
                direction.receiver_lock().release(2);
                found
            })
        };
        let sleeps = falls_asleep(&connection);
        assert!(reader.join().unwrap());
        connection.send(2, true);
        let rings = connection.direction.bell().ring();
        assert!(!sleeps || rings || connection.direction.bell().is_rung());
    });
}

#[test]
fn under_loom_a_thread_that_spins_or_sleeps_sees_the_bytes() {
    model(|| {
        let connection = Arc::new(Connection::default());
        connection.direction.ready(0);
        connection.send(1, true);
        assert_eq!(connection.receive(), Some(1));
        let sender = {
            let connection = connection.clone();
            thread::spawn(move || {
                connection.send(2, true);
                connection.direction.bell().ring()
            })
        };
        let saw = connection.direction.has_news();
        let sleeps = !saw && falls_asleep(&connection);
        let is_woken = sender.join().unwrap();
        assert!(!sleeps || is_woken);
        assert_eq!(connection.receive(), Some(2));
        assert!(!connection.direction.has_news());
    });
}

#[test]
fn under_loom_no_reader_sleeps_while_bytes_wait() {
    model(|| {
        let connection = Arc::new(Connection::default());
        connection.direction.ready(0);
        let sender = {
            let connection = connection.clone();
            thread::spawn(move || {
                connection.send(1, true);
                connection.direction.bell().ring()
            })
        };
        let bell = connection.direction.bell();
        bell.arm();
        // A first byte may come by TCP only if there is no ring; then the kernel wakes.
        let found = connection.receive().is_some();
        let is_woken = sender.join().unwrap();
        assert!(found || is_woken);
        assert_eq!(bell.is_rung(), is_woken);
    });
}
