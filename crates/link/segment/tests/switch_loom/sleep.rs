// SPDX-License-Identifier: Apache-2.0
//! Threads that poll or sleep until there are bytes.

use crate::connection::{CAPACITY, Connection, model};
use loom::sync::Arc;
use loom::sync::atomic::Ordering::Relaxed;
use loom::thread;
use tare_link_segment::Source;

/// As a thread that waits: a look without a lock, then an armed doorbell and a second look. Whether it
/// would sleep.
fn begin_sleep(connection: &Connection) -> bool {
    let direction = &connection.direction;
    Connection::lock(direction.receiver_lock(), 2);
    let doorbell = direction.doorbell();
    direction.sleepers().fetch_add(1, Relaxed);
    let is_empty = !doorbell.is_rung() && {
        doorbell.arm();
        !matches!(direction.source(CAPACITY), Ok(Source::Ring { .. }))
    };
    direction.receiver_lock().release(2);
    is_empty && !direction.is_left()
}

#[test]
fn under_loom_a_thread_that_reads_does_not_take_another_ones_doorbell() {
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
                    direction.doorbell().disarm();
                }
                direction.receiver_lock().release(2);
                found
            })
        };
        let sleeps = begin_sleep(&connection);
        assert!(reader.join().unwrap());
        connection.send(2, true);
        let rings = connection.direction.doorbell().ring();
        assert!(!sleeps || rings || connection.direction.doorbell().is_rung());
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
                connection.direction.doorbell().ring()
            })
        };
        let saw = connection.direction.has_updates();
        let sleeps = !saw && begin_sleep(&connection);
        let is_woken = sender.join().unwrap();
        assert!(!sleeps || is_woken);
        assert_eq!(connection.receive(), Some(2));
        assert!(!connection.direction.has_updates());
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
                connection.direction.doorbell().ring()
            })
        };
        let doorbell = connection.direction.doorbell();
        doorbell.arm();
        // A first byte may come by TCP only if there is no ring; then the kernel wakes.
        let found = connection.receive().is_some();
        let is_woken = sender.join().unwrap();
        assert!(found || is_woken);
        assert_eq!(doorbell.is_rung(), is_woken);
    });
}
