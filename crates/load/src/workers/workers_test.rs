// SPDX-License-Identifier: Apache-2.0
use super::*;
use rtrb::RingBuffer;
use std::sync::mpsc;
use std::time::Duration;

/// Sends nothing, and panics in its first slice if it is to.
struct Idle {
    panics: bool,
}

impl Sender for Idle {
    fn prepare(&mut self, _slice: &Slice) {}

    fn run(&mut self, slice: &Slice, start: Nanoseconds, _log: &mut SampleQueue) -> Nanoseconds {
        assert!(!self.panics, "as this test wants it");
        start + slice.length
    }
}

/// Slices without end.
struct Endless;

impl Schedule for Endless {
    fn next(&mut self, _now: Nanoseconds, _last: Done) -> Option<Slice> {
        let length = 1_000;
        Some(Slice { number: None, target: 0, users: 2, length, continues: false, drains: true })
    }
}

#[test]
fn a_thread_that_panics_ends_the_work_of_the_others() {
    for who_panics in 0..2 {
        let workers = Arc::new(Workers::new(2, Clock::start()));
        let (ended, has_ended) = mpsc::channel();
        for thread in 0..2 {
            let (workers, ended) = (workers.clone(), ended.clone());
            std::thread::spawn(move || {
                let leader = (thread == 0).then(|| Leader {
                    schedule: Box::new(Endless),
                    gauges: Gauges::open(&[], vec![vec![]]),
                    measured: RingBuffer::new(1).0,
                });
                let mut sender = Idle { panics: thread == who_panics };
                let mut queue = SampleQueue::new().0;
                let work = || workers.work(&mut sender, &mut queue, leader);
                let panicked = catch_unwind(AssertUnwindSafe(work)).is_err();
                ended.send((thread, panicked)).unwrap();
            });
        }
        for _ in 0..2 {
            let (thread, panicked) = has_ended.recv_timeout(Duration::from_secs(30)).unwrap();
            assert_eq!(panicked, thread == who_panics);
        }
    }
}
