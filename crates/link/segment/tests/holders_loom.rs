// SPDX-License-Identifier: Apache-2.0
//! Every interleaving of processes that share an end of a link, close it and fork:
//! `RUSTFLAGS="--cfg loom" cargo test -p tare-link-segment --release --test holders_loom`
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::SeqCst;
use loom::thread;
use tare_link_segment::Holders;

#[derive(Default)]
struct End {
    holders: Holders,
    /// Processes that have not begun to close it, and those that found that they are the last.
    open: AtomicU32,
    last: AtomicU32,
}

impl End {
    fn of(holders: &[u64]) -> Arc<Self> {
        let end = Self::default();
        holders.iter().for_each(|holder| end.holders.add(*holder, |_| true));
        end.open.store(holders.len() as u32, SeqCst);
        Arc::new(end)
    }

    fn close(&self, own: u64) {
        self.open.fetch_sub(1, SeqCst);
        self.holders.remove(own);
        if !self.holders.has_others(own, |_| true) {
            assert_eq!(self.open.load(SeqCst), 0, "another process has the end");
            self.last.fetch_add(1, SeqCst);
        }
    }

    /// A process that has the end forks; its child closes it.
    fn fork(end: &Arc<Self>, child: u64) -> thread::JoinHandle<()> {
        end.open.fetch_add(1, SeqCst);
        end.holders.add(child, |_| true);
        let end = end.clone();
        thread::spawn(move || end.close(child))
    }
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

#[test]
fn under_loom_one_of_two_processes_that_close_an_end_is_the_last() {
    model(|| {
        let end = End::of(&[1, 2]);
        let other = {
            let end = end.clone();
            thread::spawn(move || end.close(2))
        };
        end.close(1);
        other.join().unwrap();
        assert!(end.last.load(SeqCst) > 0);
    });
}

#[test]
fn under_loom_no_process_is_the_last_while_a_child_has_the_end() {
    model(|| {
        let end = End::of(&[9, 1, 2]);
        // The child gets a place before its parent's.
        end.holders.remove(9);
        end.open.fetch_sub(1, SeqCst);
        let other = {
            let end = end.clone();
            thread::spawn(move || end.close(2))
        };
        let child = End::fork(&end, 3);
        end.close(1);
        child.join().unwrap();
        other.join().unwrap();
        assert!(end.last.load(SeqCst) > 0);
    });
}

#[test]
fn under_loom_a_process_that_has_ended_is_not_counted() {
    model(|| {
        let end = End::of(&[1, 2, 3]);
        let looks = |own: u64| {
            let end = end.clone();
            thread::spawn(move || {
                end.holders.remove(own);
                end.holders.has_others(own, |holder| holder != 3)
            })
        };
        let others = [1, 2].map(looks).map(|look| look.join().unwrap());
        assert!(others.contains(&false));
        assert!(!end.holders.has_others(1, |_| true));
    });
}
