// SPDX-License-Identifier: Apache-2.0
//! What a collector does from time to time: says what it costs, reads the clocks, and looks whether its
//! file, its socket and its programs are still what they were.

use super::Collector;
use crate::collector::costs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};
use tare_command::{CostsFile, Failure, say};
use tare_tables::Vacant;

/// Between the first two readings of the clocks in the file, and between later ones. The time
/// between grows from one to the other by doubling: a file that ends early, too, has readings
/// over half of its time at least.
const FIRST_CLOCKS: Duration = Duration::from_millis(1);
const CLOCKS: Duration = Duration::from_secs(1);
/// The longest time between them while no program logs.
const IDLE_CLOCKS: Duration = Duration::from_secs(5);

/// Between two checks whether a program that logs nothing is still the same. After each, the collector
/// waits at least `LOOKING` times as long as the check took.
const LOOKS: Duration = Duration::from_secs(5);
const LOOKING: u32 = 500;

impl Collector {
    /// Says from now on in `file` what collecting costs.
    pub fn write_costs(&mut self, file: &Path) -> Result<(), Failure> {
        self.costs = Some(CostsFile::create(file, |vacant| self.cost_table(vacant))?);
        Ok(())
    }

    pub(super) fn cost_table(&self, vacant: Vacant) -> io::Result<()> {
        costs::write(self.programs, self.event_counts(), self.bytes(), vacant)
    }

    pub(super) fn costs(&mut self, write: impl FnOnce(&mut CostsFile, &Self)) {
        if let Some(mut file) = self.costs.take() {
            write(&mut file, self);
            self.costs = Some(file);
        }
    }

    /// At one program, by turns.
    pub(super) fn look(&mut self) {
        let begin = Instant::now();
        let (due, before) = self.looks;
        let count = self.producers.len();
        if begin < due || count == 0 {
            return;
        }
        let place = (before + 1) % count;
        self.producers[place].look();
        let gap = (LOOKS / count as u32).max(begin.elapsed() * LOOKING);
        self.looks = (begin + gap, place);
    }

    pub(super) fn read_clocks(&mut self) -> io::Result<()> {
        if Instant::now() >= self.clocks_due() {
            self.log_file.check_path();
            self.look_at_socket();
            self.log_file.clock()?;
            let gap = (2 * self.clocks.1).max(FIRST_CLOCKS).min(self.longest_of_clocks());
            self.clocks = (Instant::now(), gap);
        }
        Ok(())
    }

    pub(super) fn clocks_due(&self) -> Instant {
        self.clocks.0 + self.clocks.1.min(self.longest_of_clocks())
    }

    fn longest_of_clocks(&self) -> Duration {
        // Programs that were lent the file write events that are not counted here.
        if self.is_idle && !self.log_file.is_lent() { IDLE_CLOCKS } else { CLOCKS }
    }

    fn look_at_socket(&mut self) {
        if !self.has_told_of_socket && !self.acceptor.is_there() {
            self.has_told_of_socket = true;
            say(format_args!(
                "{}: the socket was deleted, so new programs cannot connect. Restart the \
                 collector",
                self.acceptor.path().display()
            ));
        }
    }
}
