// SPDX-License-Identifier: Apache-2.0
use super::*;
use std::fs::File;
use std::os::fd::IntoRawFd;

const WORDS: usize = 1 << 13;

/// In a file that the system forgets.
fn empty(name: &str) -> Ring {
    let path = std::env::temp_dir().join(format!("tare-ring-{}-{name}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file.set_len((ring_at(0, WORDS) + ring_size(WORDS)) as u64).unwrap();
    Ring::map(file.into_raw_fd(), 0, WORDS).unwrap()
}

/// How many events a ring of four reports as lost. A thread was killed while it overwrote the first
/// two, before or after it moved the tail.
fn lost_when_killed(has_moved: bool) -> Option<u64> {
    let mut ring = empty(if has_moved { "moved" } else { "unmoved" });
    let mut words = Vec::new();
    assert!(!ring.is_time(true));
    ring.head().indices.head().store(8, Release);
    assert!(ring.is_time(true));
    Oldest::note(&ring.head().overwritten, &Known { tail: 4, lost: 2, ..Known::default() });
    if has_moved {
        ring.head().indices.free(0, 4).unwrap();
    }
    let (from, _) = ring.copy(&mut words);
    ring.free(from, &words, 0, &Summary::default());
    assert_eq!(ring.head().indices.tail(), 8);
    let lost = ring.last_loss().map(|(_, record)| record[2]);
    ring.unmap();
    lost
}

#[test]
fn a_thread_killed_while_it_overwrites_has_lost_what_it_freed() {
    assert_eq!(lost_when_killed(true), Some(2));
    assert_eq!(lost_when_killed(false), None);
}

#[test]
fn thread_of_events_is_known_though_all_before_them_were_overwritten_during_the_copy() {
    let mut ring = empty("overtaken");
    let mut words = vec![0; 8];
    ring.head().indices.head().store(8, Release);
    Oldest::note(&ring.head().overwritten, &Known { tail: 8, tid: 7, ..Known::default() });
    ring.head().indices.free(0, 8).unwrap();
    assert_eq!(ring.keep(&mut words, false).0, 8);
    assert!(words.is_empty());
    ring.head().indices.head().store(16, Release);
    let (from, thread) = ring.copy(&mut words);
    assert_eq!((from, words.len(), thread.map(|(tid, _)| tid)), (8, 8, Some(7)));
    ring.unmap();
}

#[test]
fn ring_of_an_ended_program_is_emptied_though_it_is_filled_again() {
    let mut ring = empty("refilled");
    let mut words = Vec::new();
    ring.finish();
    let copies = (0..100).take_while(|_| {
        let head = ring.head().indices.tail() + WORDS as u64;
        ring.head().indices.head().store(head, Release);
        let is_time = ring.is_time(true);
        if is_time {
            let (from, _) = ring.copy(&mut words);
            ring.free(from, &words, 0, &Summary::default());
        }
        is_time
    });
    assert_eq!(copies.count(), 3);
    ring.unmap();
}

#[test]
fn what_came_during_a_long_sleep_has_waited_enough() {
    let mut ring = empty("slept");
    assert!(!ring.is_time(false) && ring.due().is_none());
    ring.head().indices.head().store(8, Release);
    assert!(!ring.is_time(false) && ring.due().is_some());
    ring.since = ring.since.checked_sub(PATIENCE).unwrap();
    assert!(ring.is_time(false));
    ring.unmap();
}

#[test]
fn a_tail_that_was_moved_back_is_put_where_it_was() {
    let mut ring = empty("back");
    let mut words = Vec::new();
    for (head, before) in [(8, 0), (16, 8)] {
        ring.head().indices.head().store(head, Release);
        let (from, _) = ring.copy(&mut words);
        ring.head().indices.free(before, before.wrapping_sub(4)).unwrap();
        ring.free(from, &words, 0, &Summary::default());
        assert_eq!(ring.head().indices.tail(), head);
    }
    ring.head().indices.free(16, 4).unwrap();
    assert!(!ring.is_time(true));
    assert_eq!(ring.head().indices.tail(), 16);
    ring.unmap();
}
