// SPDX-License-Identifier: Apache-2.0
extern crate std;
use super::*;

const RING_BYTES: u64 = 1 << SMALLEST_RING;

fn linked(read: u64) -> Direction {
    let direction = Direction::default();
    direction.ready(read);
    direction
}

#[test]
fn nothing_changes_before_the_receiver_is_ready() {
    let direction = Direction::default();
    assert!(!direction.upgrade(|| Some(0)));
    assert_eq!((direction.mode(), direction.source(1)), (Mode::Tcp, Ok(Source::Tcp(u64::MAX))));
}

#[test]
fn the_receiver_reads_tcp_up_to_the_place_of_the_upgrade() {
    let direction = linked(100);
    assert!(direction.upgrade(|| Some(150)));
    assert!(direction.publish(0, 7));
    assert_eq!(direction.source(RING_BYTES), Ok(Source::Tcp(50)));
    direction.end_read(50);
    assert_eq!(direction.source(RING_BYTES), Ok(Source::Ring { from: 0, length: 7 }));
    assert!(direction.consume(0, 7));
    assert_eq!(direction.source(RING_BYTES), Ok(Source::Empty));
}

#[test]
fn a_full_ring_goes_on_as_tcp_and_comes_back() {
    let direction = linked(0);
    assert!(direction.upgrade(|| Some(0)));
    assert_eq!(direction.room(RING_BYTES), Ok((0, RING_BYTES)));
    assert!(direction.publish(0, RING_BYTES));
    assert_eq!(direction.room(RING_BYTES), Ok((RING_BYTES, 0)));
    assert!(!direction.begin_write());
    assert!(direction.can_downgrade());
    direction.downgrade();
    assert!(direction.begin_write());
    direction.end_write(9);
    assert!(!direction.upgrade(|| None), "the receiver is behind");
    assert_eq!(direction.source(RING_BYTES), Ok(Source::Ring { from: 0, length: RING_BYTES }));
    assert!(direction.consume(0, RING_BYTES));
    assert_eq!(direction.source(RING_BYTES), Ok(Source::Tcp(u64::MAX)));
    assert!(direction.upgrade(|| None), "the number of bytes is known");
    assert_eq!(direction.source(RING_BYTES), Ok(Source::Tcp(9)));
}

#[test]
fn a_thread_that_writes_to_tcp_keeps_the_stream_there() {
    let direction = linked(0);
    assert!(direction.begin_write());
    assert!(!direction.upgrade(|| Some(0)));
    direction.end_write(1);
    assert!(direction.upgrade(|| Some(1)));
    assert!(!direction.begin_write());
}

#[test]
fn a_receiver_that_reads_without_limit_holds_a_downgrade_back() {
    let direction = linked(0);
    direction.begin_read();
    assert!(direction.upgrade(|| Some(0)));
    assert!(!direction.can_downgrade());
    direction.end_read(0);
    assert!(direction.can_downgrade());
}

#[test]
fn unread_bytes_are_taken_back_and_the_stream_stays_tcp() {
    let direction = linked(0);
    assert!(direction.upgrade(|| Some(0)));
    assert!(direction.publish(0, 10) && direction.consume(0, 4));
    assert!(direction.leave() && !direction.leave() && direction.is_left());
    assert!(!direction.is_back());
    assert_eq!((direction.take_back(RING_BYTES), direction.backlog()), (Ok(()), Some((4, 6))));
    assert!(direction.begin_write());
    direction.end_write(2);
    assert_eq!(direction.backlog(), Some((6, 4)));
    direction.end_write(4);
    assert_eq!((direction.backlog(), direction.has_backlog()), (None, true));
    direction.forget_backlog();
    assert!(!direction.has_backlog());
    assert!(direction.is_back());
    assert_eq!(direction.source(RING_BYTES), Ok(Source::Tcp(u64::MAX)));
    assert!(!direction.upgrade(|| None));
}

#[test]
fn the_receiver_finds_what_tcp_has_not_delivered_of_a_killed_sender() {
    let direction = linked(3);
    assert!(direction.upgrade(|| Some(5)));
    direction.end_read(2);
    assert!(direction.publish(0, 10));
    assert_eq!(direction.source(RING_BYTES), Ok(Source::Ring { from: 0, length: 10 }));
    assert!(direction.consume(0, 4));
    assert_eq!(direction.take_back(RING_BYTES), Ok(()));
    assert_eq!(direction.undelivered(0, RING_BYTES), Ok(None), "the downgrade is not followed");
    assert_eq!(direction.source(RING_BYTES), Ok(Source::Tcp(u64::MAX)));
    assert_eq!(direction.undelivered(0, RING_BYTES), Ok(Some((4, 6))));
    // It was killed between the call that wrote to TCP and its count.
    direction.end_read(2);
    assert_eq!(direction.undelivered(0, RING_BYTES), Ok(Some((6, 4))));
    assert_eq!(direction.undelivered(1, RING_BYTES), Ok(Some((7, 3))));
    assert_eq!(direction.undelivered(4, RING_BYTES), Ok(None));
    assert_eq!(direction.undelivered(0, 5), Err(Corrupt));
    direction.end_read(4);
    assert_eq!(direction.undelivered(0, RING_BYTES), Ok(None));
}

#[test]
fn bytes_of_a_signal_handler_do_not_mix_with_the_interrupted_ones() {
    let direction = linked(0);
    assert!(direction.upgrade(|| Some(0)));
    assert!(direction.publish(0, 3));
    assert!(!direction.publish(0, 5), "the handler has written there");
    assert!(direction.consume(0, 3) && !direction.consume(0, 3));
}

#[test]
fn only_an_empty_ring_grows_and_not_beyond_the_largest() {
    let direction = linked(0);
    assert!(direction.upgrade(|| Some(0)) && direction.publish(0, 1));
    assert!(!direction.grow());
    assert!(direction.consume(0, 1));
    let mut times = 0;
    while direction.grow() {
        times += 1;
    }
    assert_eq!((times, direction.capacity()), (3, 1 << LARGEST_RING));
}

#[test]
fn hostile_counters_are_refused_and_never_lead_outside() {
    let values = [0, 1, 2, 3, RING_BYTES, RING_BYTES + 1, 1 << 63, u64::MAX, u64::MAX - 2];
    for number in 0..9 {
        for value in values {
            let direction = linked(0);
            assert!(direction.upgrade(|| Some(0)) && direction.publish(0, 2));
            let Direction { sent, receiver, received, .. } = &direction;
            let fields = [
                &sent.head,
                &sent.changes,
                &sent.places[0],
                &received.tail,
                &received.followed,
                &receiver.read,
                &sent.backlog,
                &sent.backlog_at,
                &sent.backlog_behind,
            ];
            fields[number].store(value, Relaxed);
            received.growth.store(value as u32, Relaxed);
            let capacity = direction.capacity();
            assert!(capacity.is_power_of_two() && capacity <= 1 << LARGEST_RING);
            if let Ok((_, room)) = direction.room(capacity) {
                assert!(room <= capacity);
            }
            if let Ok(Source::Ring { length, .. }) = direction.source(capacity) {
                assert!(length <= capacity);
            }
            if let Ok(Some((_, length))) = direction.undelivered(0, capacity) {
                assert!(length <= capacity);
            }
            if direction.take_back(capacity).is_ok() {
                assert!(direction.backlog().is_none_or(|(_, length)| length <= capacity));
            }
        }
    }
}
