// SPDX-License-Identifier: Apache-2.0
//! Linpack (Dongarra 1979): solves a dense system by Gaussian elimination with partial pivoting.

use crate::clock::try_read;
use std::time::{Duration, Instant};

const ORDER: usize = 300;
/// Long enough for a limit of CPU time to show.
const LEAST: Duration = Duration::from_millis(200);

pub struct Linpack {
    /// The best of some repetitions.
    pub flops_per_second: f64,
    /// CPU time by time: less than 1 if something else had the CPU, or a limit was reached.
    pub cpu_share: f64,
}

pub fn linpack() -> Linpack {
    let (begun, cpu) = (Instant::now(), process_cpu());
    let mut best = f64::INFINITY;
    loop {
        let mut system = System::new(ORDER);
        let started = Instant::now();
        std::hint::black_box(system.solve());
        best = best.min(started.elapsed().as_secs_f64());
        let used = process_cpu().saturating_sub(cpu);
        if used >= LEAST {
            let n = ORDER as f64;
            return Linpack {
                flops_per_second: (2.0 * n.powi(3) / 3.0 + 2.0 * n.powi(2)) / best,
                cpu_share: used.as_secs_f64() / begun.elapsed().as_secs_f64(),
            };
        }
    }
}

fn process_cpu() -> Duration {
    let time = try_read(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or_default();
    Duration::from_nanos(time.unsigned_abs())
}

/// A x = b, with the columns of A one after the other; the solution is all ones.
struct System {
    order: usize,
    columns: Vec<f64>,
    right: Vec<f64>,
}

impl System {
    fn new(order: usize) -> Self {
        let mut seed = fastrand::Rng::with_seed(1);
        let columns: Vec<f64> = (0..order * order).map(|_| seed.f64() - 0.5).collect();
        let right = (0..order)
            .map(|row| (0..order).map(|column| columns[column * order + row]).sum())
            .collect();
        Self { order, columns, right }
    }

    fn solve(&mut self) -> Vec<f64> {
        let n = self.order;
        for step in 0..n {
            let (done, rest) = self.columns.split_at_mut((step + 1) * n);
            let pivots = &mut done[step * n..];
            let larger = |a: &usize, b: &usize| pivots[*a].abs().total_cmp(&pivots[*b].abs());
            let pivot = (step..n).max_by(larger).unwrap_or(step);
            pivots.swap(step, pivot);
            let head = pivots[step];
            for value in &mut pivots[step + 1..] {
                *value /= head;
            }
            for column in rest.chunks_exact_mut(n).chain([&mut self.right[..]]) {
                column.swap(step, pivot);
                let factor = column[step];
                for (value, pivot) in column[step + 1..].iter_mut().zip(&pivots[step + 1..]) {
                    *value -= factor * pivot;
                }
            }
        }
        let mut solution = self.right.clone();
        for step in (0..n).rev() {
            let column = &self.columns[step * n..(step + 1) * n];
            solution[step] /= column[step];
            let found = solution[step];
            for (value, factor) in solution[..step].iter_mut().zip(column) {
                *value -= found * factor;
            }
        }
        solution
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_solution_is_all_ones() {
        for order in [1, 2, 17, ORDER] {
            let worst = System::new(order)
                .solve()
                .iter()
                .fold(0.0, |worst: f64, value| worst.max((value - 1.0).abs()));
            assert!(worst < 1e-9, "order {order}: {worst}");
        }
    }

    #[test]
    fn it_uses_some_cpu_time() {
        let found = linpack();
        assert!(found.flops_per_second > 0.0);
        assert!(found.cpu_share > 0.0);
    }
}
