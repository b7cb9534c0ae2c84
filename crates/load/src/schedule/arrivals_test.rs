// SPDX-License-Identifier: Apache-2.0
use super::*;

const ALONE: Share = Share { thread: 0, threads: 1, pipeline: 1 };
const LONG: Nanoseconds = 1_000_000_000_000;

/// Intended and actual starts of requests that each take `service` ns, with a send
/// whenever one is possible, in the slice that has begun at `start`.
fn simulate(
    arrivals: &mut Arrivals,
    start: Nanoseconds,
    service: impl Fn(Nanoseconds) -> Nanoseconds,
) -> Vec<(Nanoseconds, Nanoseconds)> {
    let mut now = start;
    let mut busy: Vec<(Nanoseconds, Turn)> = Vec::new();
    let mut sent = Vec::new();
    loop {
        let wake = match arrivals.next(now) {
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
                arrivals.finished(turn, now);
            }
            *end != now
        });
    }
    sent
}

#[test]
fn a_closed_loop_sends_when_it_has_its_answer() {
    let mut arrivals = Arrivals::closed();
    arrivals.begin(0, 25, 2);
    let starts: Vec<_> = simulate(&mut arrivals, 0, |_| 10).iter().map(|sent| sent.1).collect();
    assert_eq!(starts, [0, 0, 10, 10, 20, 20]);
}

#[test]
fn a_closed_loop_takes_the_users_of_each_slice() {
    let mut arrivals = Arrivals::closed();
    arrivals.begin(0, 10, 3);
    assert_eq!(simulate(&mut arrivals, 0, |_| 10).len(), 3);
    arrivals.begin(50, 60, 1);
    assert_eq!(simulate(&mut arrivals, 50, |_| 10).len(), 1);
}

#[test]
fn workers_of_a_constant_rate_are_spread_evenly() {
    let mut arrivals = Arrivals::constant(1e9 / 10.0, 2, ALONE);
    arrivals.begin(0, 60, 2);
    let sent = simulate(&mut arrivals, 0, |_| 3);
    let expected: Vec<_> = (0..6).map(|at| (at * 10, at * 10)).collect();
    assert_eq!(sent, expected);
}

#[test]
fn a_late_worker_does_not_catch_up_but_its_lateness_shows() {
    let mut arrivals = Arrivals::constant(1e9 / 10.0, 1, ALONE);
    arrivals.begin(0, 70, 1);
    let sent = simulate(&mut arrivals, 0, |at| if at == 10 { 25 } else { 3 });
    assert_eq!(sent, [(0, 0), (10, 10), (20, 35), (45, 45), (55, 55), (65, 65)]);
}

#[test]
fn an_open_loop_sends_late_requests_at_once_and_keeps_their_times() {
    let mut arrivals = Arrivals::open(1e9 / 10.0, 2, ALONE);
    arrivals.begin(0, 60, 2);
    let sent = simulate(&mut arrivals, 0, |at| if at < 20 { 35 } else { 1 });
    assert_eq!(sent, [(0, 0), (10, 10), (20, 35), (30, 36), (40, 40), (50, 50)]);
}

#[test]
fn an_open_loop_sends_all_that_was_due_in_its_slice() {
    let mut arrivals = Arrivals::open(1e9 / 10.0, 1, ALONE);
    arrivals.begin(0, 40, 1);
    let sent = simulate(&mut arrivals, 0, |_| 30);
    assert_eq!(sent, [(0, 0), (10, 30), (20, 60), (30, 90)]);
}

#[test]
fn a_rate_holds_over_the_slices_of_a_target() {
    let mut arrivals = Arrivals::open(1e9 / 10.0, 4, ALONE);
    let mut intended = Vec::new();
    for start in [1000, 2000, 3000, 4000] {
        arrivals.begin(start, start + 25, 4);
        intended.extend(simulate(&mut arrivals, start, |_| 40).iter().map(|sent| sent.0));
    }
    assert_eq!(intended, [0, 10, 20, 5, 15, 0, 10, 20, 5, 15]);
}

#[test]
fn threads_share_users_and_times() {
    let shares = (0..3).map(|thread| Share { thread, threads: 3, pipeline: 1 });
    assert_eq!(shares.clone().map(|share| share.of(7)).collect::<Vec<_>>(), [3, 2, 2]);
    let mut all: Vec<_> = shares
        .flat_map(|share| {
            let mut arrivals = Arrivals::open(1e9 / 10.0, 9, share);
            arrivals.begin(0, 90, 9);
            simulate(&mut arrivals, 0, |_| 1)
        })
        .collect();
    all.sort_unstable();
    assert_eq!(all, (0..9).map(|at| (at * 10, at * 10)).collect::<Vec<_>>());
}

#[test]
fn threads_stay_in_step_where_load_goes_on() {
    let shares = [0, 1].map(|thread| Share { thread, threads: 2, pipeline: 1 });
    let makers: [fn(Share) -> Arrivals; 2] = [
        |share| Arrivals::open(1e9 / 10.0, 4, share),
        |share| Arrivals::constant(1e9 / 10.0, 4, share),
    ];
    for make in makers {
        let mut intended = Vec::new();
        for mut arrivals in shares.map(make) {
            let mut until = 125;
            arrivals.begin(100, until, 2);
            for _ in 0..8 {
                // The last answer comes after the border, where it is not waited for.
                while let Next::Now(turn) = arrivals.next(until - 1) {
                    intended.push(turn.intended);
                    arrivals.finished(&turn, turn.intended + 7);
                }
                // One of the threads was late at the border, and the next slice starts then.
                until += 7 + 25;
                arrivals.go_on(until);
            }
        }
        intended.sort_unstable();
        assert_eq!(intended, (0..25).map(|at| 100 + at * 10).collect::<Vec<_>>());
    }
}

#[test]
fn threads_stay_in_step_where_targets_take_turns() {
    let mut intended: Vec<_> = [(0, 3), (1, 18)]
        .into_iter()
        .flat_map(|(thread, service)| {
            let mut arrivals =
                Arrivals::constant(1e9 / 10.0, 4, Share { thread, threads: 2, pipeline: 1 });
            [1000, 2000, 3000].into_iter().enumerate().flat_map(move |(slice, start)| {
                arrivals.begin(start, start + 25, 2);
                let sent = simulate(&mut arrivals, start, |_| service);
                // In the time that the target has load.
                sent.into_iter().map(move |(intended, _)| intended + slice as Nanoseconds * 25)
            })
        })
        .collect();
    intended.sort_unstable();
    assert_eq!(intended, (0..8).map(|at| at * 10).collect::<Vec<_>>());
}

#[test]
fn a_worker_that_was_busy_at_the_end_of_a_slice_is_free_in_the_next() {
    let mut arrivals = Arrivals::constant(1e9 / 10.0, 1, ALONE);
    arrivals.begin(0, 25, 1);
    assert_eq!(simulate(&mut arrivals, 0, |_| 200), [(0, 0)]);
    arrivals.begin(1000, 1025, 1);
    assert_eq!(simulate(&mut arrivals, 1000, |_| 3), [(-15, 0), (10, 10), (20, 20)]);
}

#[test]
fn a_slice_that_continues_keeps_the_times_of_the_one_before() {
    let mut arrivals = Arrivals::open(1e9 / 10.0, 4, ALONE);
    arrivals.begin(100, 125, 4);
    while let Next::Now(_) = arrivals.next(125) {}
    arrivals.go_on(152);
    assert!(matches!(arrivals.next(127), Next::At(130)));
    assert!(arrivals.is_behind());
}

#[test]
fn places_of_users_are_spread_evenly_over_threads() {
    let shares = [0, 1].map(|thread| Share { thread, threads: 2, pipeline: 2 });
    assert_eq!(shares.map(|share| share.slots(3)), [4, 2]);
    let mut all: Vec<_> = shares
        .into_iter()
        .flat_map(|share| {
            let mut arrivals = Arrivals::constant(1e9 / 100.0, 3, share);
            arrivals.begin(0, 600, share.slots(3));
            simulate(&mut arrivals, 0, |_| 1)
        })
        .collect();
    all.sort_unstable();
    assert_eq!(all, (0..6).map(|at| (at * 100, at * 100)).collect::<Vec<_>>());
}
