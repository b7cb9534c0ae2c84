// SPDX-License-Identifier: Apache-2.0
//! Every interleaving of upgrades, downgrades, bytes that are taken back, and sleep:
//! `RUSTFLAGS="--cfg loom" cargo test -p tare-link-segment --release --test switch_loom`
#![cfg(loom)]

mod connection;
mod sleep;

use connection::{CAPACITY, Connection, Rest, model};
use loom::sync::Arc;
use loom::sync::atomic::Ordering::Relaxed;
use loom::thread;
use tare_link_segment::Mode;

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
