// SPDX-License-Identifier: Apache-2.0
//! A third that changes words of memory which a program and its collector share: between their
//! steps, and from another thread at any moment of them.

use super::mutator::Mutator;
use std::hint;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

/// Between two changes of the other thread: some steps of both.
const MOST_SPINS: usize = 1 << 15;

pub struct ConcurrentMutation<'a> {
    memory: &'a [AtomicU64],
    /// A place where something is kept.
    place: fn(&mut Mutator) -> usize,
    /// How far an index is changed.
    words: usize,
    /// What was changed and what was there before, oldest first.
    changes: Mutex<Vec<(usize, u64)>>,
    is_done: AtomicBool,
}

impl<'a> ConcurrentMutation<'a> {
    /// Runs both while memory changes, and puts back everything that was changed.
    pub fn run(
        memory: &'a [AtomicU64],
        place: fn(&mut Mutator) -> usize,
        words: usize,
        mutator: &mut Mutator,
        program: impl FnOnce(&Self, &mut Mutator),
    ) {
        let (changes, is_done) = (Mutex::default(), AtomicBool::new(false));
        let mutation = Self { memory, place, words, changes, is_done };
        let mut own = Mutator::of(&mutator.next().to_ne_bytes());
        thread::scope(|scope| {
            let other = scope.spawn(|| mutation.change_at_any_moment(&mut own));
            program(&mutation, mutator);
            mutation.is_done.store(true, Relaxed);
            // The end of the scope does not wait until the thread has freed its memory, which would
            // seem to be leaked.
            other.join().expect("nothing panics");
        });
        let changes = mutation.changes.into_inner().expect("nothing panics");
        for (place, before) in changes.into_iter().rev() {
            memory[place].store(before, Relaxed);
        }
    }

    pub fn change(&self, mutator: &mut Mutator) {
        let place = (self.place)(mutator);
        let mut changes = self.changes.lock().expect("nothing panics");
        let before = self.memory[place].load(Relaxed);
        changes.push((place, before));
        self.memory[place].store(mutator.mutate(before, self.words), Relaxed);
    }

    fn change_at_any_moment(&self, mutator: &mut Mutator) {
        while !self.is_done.load(Relaxed) {
            for _ in 0..mutator.below(MOST_SPINS) {
                hint::spin_loop();
            }
            self.change(mutator);
        }
    }
}
