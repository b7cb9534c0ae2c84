// SPDX-License-Identifier: Apache-2.0
use super::*;

const ALONE: Share = Share { thread: 0, threads: 1 };
const LONG: Nanoseconds = 1_000_000_000_000;

/// Intended and actual starts of requests that each take `service` ns, with a send
/// whenever one is possible, for `length` ns from `start`.
fn simulate(
    pace: &mut Pace,
    start: Nanoseconds,
    length: Nanoseconds,
    service: impl Fn(Nanoseconds) -> Nanoseconds,
) -> Vec<(Nanoseconds, Nanoseconds)> {
    let until = start + length;
    let mut now = start;
    let mut busy: Vec<(Nanoseconds, Turn)> = Vec::new();
    let mut sent = Vec::new();
    loop {
        let wake = match pace.next(now, until) {
            Next::Now(turn) => {
                sent.push((turn.intended - start, now - start));
                busy.push((now + service(now - start), turn));
                continue;
            }
            Next::At(at) => Some(at),
            Next::Never => None,
        };
        let done = busy.iter().map(|(end, _)| *end).min();
        now = match (wake, done) {
            (None, None) => break,
            (wake, done) => wake.unwrap_or(LONG).min(done.unwrap_or(LONG)),
        };
        busy.retain(|(end, turn)| {
            if *end == now {
                pace.finished(turn, now);
            }
            *end != now
        });
    }
    pace.end(now.max(until), length, true);
    sent
}

#[test]
fn a_closed_loop_sends_when_it_has_its_answer() {
    let mut pace = Pace::closed();
    pace.begin(0, 2, false);
    let starts: Vec<_> = simulate(&mut pace, 0, 25, |_| 10).iter().map(|sent| sent.1).collect();
    assert_eq!(starts, [0, 0, 10, 10, 20, 20]);
}

#[test]
fn a_closed_loop_takes_the_users_of_each_slice() {
    let mut pace = Pace::closed();
    pace.begin(0, 3, false);
    assert_eq!(simulate(&mut pace, 0, 10, |_| 10).len(), 3);
    pace.begin(50, 1, false);
    assert_eq!(simulate(&mut pace, 50, 10, |_| 10).len(), 1);
}

#[test]
fn workers_of_a_constant_rate_are_spread_evenly() {
    let mut pace = Pace::constant(1e9 / 10.0, 2, ALONE);
    pace.begin(0, 2, false);
    let sent = simulate(&mut pace, 0, 60, |_| 3);
    let expected: Vec<_> = (0..6).map(|at| (at * 10, at * 10)).collect();
    assert_eq!(sent, expected);
}

#[test]
fn a_late_worker_does_not_catch_up_but_its_lateness_shows() {
    let mut pace = Pace::constant(1e9 / 10.0, 1, ALONE);
    pace.begin(0, 1, false);
    let sent = simulate(&mut pace, 0, 70, |at| if at == 10 { 25 } else { 3 });
    assert_eq!(sent, [(0, 0), (10, 10), (20, 35), (45, 45), (55, 55), (65, 65)]);
}

#[test]
fn an_open_loop_sends_late_requests_at_once_and_keeps_their_times() {
    let mut pace = Pace::open(1e9 / 10.0, 2, ALONE);
    pace.begin(0, 2, false);
    let sent = simulate(&mut pace, 0, 60, |at| if at < 20 { 35 } else { 1 });
    assert_eq!(sent, [(0, 0), (10, 10), (20, 35), (30, 36), (40, 40), (50, 50)]);
}

#[test]
fn an_open_loop_sends_all_that_was_due_in_its_slice() {
    let mut pace = Pace::open(1e9 / 10.0, 1, ALONE);
    pace.begin(0, 1, false);
    let sent = simulate(&mut pace, 0, 40, |_| 30);
    assert_eq!(sent, [(0, 0), (10, 30), (20, 60), (30, 90)]);
}

#[test]
fn a_rate_holds_over_the_slices_of_a_target() {
    let mut pace = Pace::open(1e9 / 10.0, 4, ALONE);
    let mut intended = Vec::new();
    for start in [1000, 2000, 3000, 4000] {
        pace.begin(start, 4, false);
        intended.extend(simulate(&mut pace, start, 25, |_| 40).iter().map(|sent| sent.0));
    }
    assert_eq!(intended, [0, 10, 20, 5, 15, 0, 10, 20, 5, 15]);
}

#[test]
fn threads_share_users_and_times() {
    let shares = (0..3).map(|thread| Share { thread, threads: 3 });
    assert_eq!(shares.clone().map(|share| share.of(7)).collect::<Vec<_>>(), [3, 2, 2]);
    let mut all: Vec<_> = shares
        .flat_map(|share| {
            let mut pace = Pace::open(1e9 / 10.0, 9, share);
            pace.begin(0, 9, false);
            simulate(&mut pace, 0, 90, |_| 1)
        })
        .collect();
    all.sort_unstable();
    assert_eq!(all, (0..9).map(|at| (at * 10, at * 10)).collect::<Vec<_>>());
}

#[test]
fn a_slice_that_continues_keeps_the_times_of_the_one_before() {
    let mut pace = Pace::open(1e9 / 10.0, 4, ALONE);
    pace.begin(100, 4, false);
    while let Next::Now(_) = pace.next(125, 125) {}
    pace.end(127, 25, false);
    pace.begin(127, 4, true);
    assert!(matches!(pace.next(127, 150), Next::At(130)));
    assert!(pace.is_behind(150));
}
