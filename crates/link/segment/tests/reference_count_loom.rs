// SPDX-License-Identifier: Apache-2.0
//! Every interleaving of threads that use, close, free and fill a place of a table:
//! `RUSTFLAGS="--cfg loom" cargo test -p tare-link-segment --release --test reference_count_loom`
#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use tare_link_segment::ReferenceCount;

#[derive(Default)]
struct Place {
    users: ReferenceCount,
    /// Loom fails if a thread reads it while another one writes it.
    value: UnsafeCell<u8>,
}

// SAFETY: that this is sound is what the model checks.
unsafe impl Sync for Place {}

impl Place {
    fn set(&self, value: u8) {
        // SAFETY: as the model checks.
        self.value.with_mut(|place| unsafe { place.write(value) });
    }

    fn read(&self) -> u8 {
        // SAFETY: as the model checks.
        self.value.with(|place| unsafe { place.read() })
    }

    fn fill(&self) -> bool {
        let is_taken = self.users.take();
        if is_taken {
            self.set(1);
            self.users.begin();
        }
        is_taken
    }

    fn leave(&self) {
        if self.users.leave() {
            self.set(0);
            self.users.free();
        }
    }

    fn use_once(&self) {
        if self.users.enter() {
            assert_eq!(self.read(), 1);
        }
        self.leave();
    }

    /// For a user.
    fn end(&self) {
        assert_eq!(self.read(), 1);
        self.users.close();
        self.leave();
    }
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

#[test]
fn under_loom_no_place_is_freed_that_a_thread_uses() {
    model(|| {
        let place = Arc::new(Place::default());
        assert!(place.fill());
        let user = {
            let place = place.clone();
            thread::spawn(move || (0..2).for_each(|_| place.use_once()))
        };
        let next = {
            let place = place.clone();
            thread::spawn(move || {
                if place.fill() {
                    place.end();
                }
            })
        };
        place.end();
        user.join().unwrap();
        next.join().unwrap();
        // The last user has freed it.
        assert!(!place.users.is_used() && place.fill());
    });
}

#[test]
fn under_loom_two_threads_that_close_a_place_free_it_once() {
    model(|| {
        let place = Arc::new(Place::default());
        assert!(place.fill());
        let other = {
            let place = place.clone();
            thread::spawn(move || {
                if place.users.enter() {
                    place.end();
                } else {
                    place.leave();
                }
            })
        };
        place.end();
        other.join().unwrap();
        assert!(place.fill());
    });
}
