// SPDX-License-Identifier: Apache-2.0
//! The end of a collector.

use super::{Collector, SHORT};
use crate::collector::producer::Producer;
use crate::collector::quotas::time_share::TimeShares;
use crate::procfs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};
use tare_log_file::How;

/// For programs that come, and for all that those of one other user have left.
const LAST: Duration = Duration::from_secs(1);

impl Collector {
    /// Takes what is there, and leaves programs that go on to who comes next. Where it cannot be
    /// written, what those have that ended is counted.
    pub fn finish(&mut self) -> io::Result<()> {
        let written = self.write_rest();
        if written.is_err() {
            self.count_rest();
        }
        self.costs(|file, collector| file.renew(|vacant| collector.cost_table(vacant)));
        written
    }

    fn count_rest(&mut self) {
        while let Some(place) = self.producers.iter_mut().position(|producer| !producer.has_ended())
        {
            self.left += 1;
            self.remove(place);
        }
        let written = self.event_counts().events;
        self.log_file.give_up();
        let _ = self.write_rest();
        self.unwritten = self.event_counts().events - written;
    }

    fn write_rest(&mut self) -> io::Result<()> {
        self.take_over(LAST);
        let begin = Instant::now();
        loop {
            self.time_shares.renew();
            if begin.elapsed() < LAST {
                self.accept_clients();
            }
            let is_empty = self.move_events()? == 0 && self.compressor.is_empty();
            // Of those that have ended, the rest is on its way.
            let is_answered = !self.producers.iter_mut().any(Producer::has_ended);
            if is_empty && is_answered || !is_empty && begin.elapsed() > LAST {
                break;
            }
            if is_empty {
                thread::sleep(SHORT);
            }
        }
        let mut last = TimeShares::of(LAST, Duration::MAX);
        while let Some(place) = self.producers.len().checked_sub(1) {
            let (user, begin) = (self.producers[place].user, Instant::now());
            let is_own = procfs::is_own(user);
            let until = (!is_own).then(|| last.end(user, begin).unwrap_or(begin));
            // One that has ended meanwhile has left nothing to others.
            let has_ended = self.producers[place].has_ended();
            self.allow_rings(place);
            self.write_metadata(place, until)?;
            while self.copy(place, true, until)? > 0
                && has_ended
                && until.is_none_or(|until| Instant::now() < until)
            {}
            last.spend(user, begin);
            self.end(place, (!has_ended).then_some(How::Left))?;
            self.left += u64::from(!has_ended);
            self.remove(place);
        }
        self.log_file.clock()
    }
}
