// SPDX-License-Identifier: Apache-2.0
//! `threads THREADS EVENTS`: threads that log at once and wait for room, and a span that a panic
//! ends.

use std::panic::{catch_unwind, resume_unwind};
use std::thread;
use tare_log::{Channel, Options, Policy, Span};

fn main() {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<i64>());
    let (Some(Ok(threads)), Some(Ok(events))) = (words.next(), words.next()) else {
        eprintln!("threads THREADS EVENTS");
        std::process::exit(2);
    };
    let options = Options { policy: Policy::Wait, ..Options::default() };
    let numbers = Channel::open_with("numbers", options);
    thread::scope(|scope| {
        for first in (0..threads).map(|place| place * events) {
            scope.spawn(move || (first..first + events).for_each(|number| numbers.log(number)));
        }
    });
    let work = Span::open("work");
    let panicked = catch_unwind(|| {
        let _scope = work.enter(7);
        // Without the hook's message on stderr.
        resume_unwind(Box::new(()));
    });
    assert!(panicked.is_err());
    numbers.close();
    numbers.log(-1);
    assert_eq!(Channel::open("numbers"), numbers);
    numbers.log(-2);
}
