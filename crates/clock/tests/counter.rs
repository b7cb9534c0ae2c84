// SPDX-License-Identifier: Apache-2.0
//! The counter is replaced for the whole process: this test is alone in its own.

use std::thread::sleep;
use std::time::Duration;
use tare_clock::{Rate, Snapshot, Source, counter, ticks};

fn ban_counter() -> bool {
    // SAFETY: no memory is touched.
    unsafe { libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV) == 0 }
}

#[test]
fn ticks_go_on_without_the_counter() {
    assert!(counter::is_readable());
    let first = Snapshot::take();
    sleep(Duration::from_millis(20));
    let second = Snapshot::take();
    let rate = Rate::between(&first, &second).unwrap();
    counter::replace(&second, rate);
    if !ban_counter() {
        return; // A kernel that cannot.
    }
    assert!(!counter::is_readable());
    let before = ticks();
    assert!(before >= second.ticks);
    for (_, source) in Source::ALL {
        let now = source.now();
        assert!(source.now() >= now);
    }
    let third = Snapshot::take();
    let passed = rate.nanoseconds(third.ticks - second.ticks) as i64;
    assert!(passed.abs_diff(third.monotonic_ns - second.monotonic_ns) < 1_000_000);
    tare_shm::syscall::forbid();
    let last = ticks();
    assert!(last >= third.ticks);
    assert_eq!((ticks(), Source::Monotonic.now() > 0), (last, true));
}
