// SPDX-License-Identifier: Apache-2.0
//! What each statistic gains from the next values. With F the empirical distribution of a run and
//! n its size, N = n + m of a pair, d the difference of its Fs.

/// Values in ascending order: the value `values[k]` occurs `counts[k]` times in `runs[k]`, which
/// may be said in parts.
pub struct Values<'a> {
    pub values: &'a [f64],
    pub runs: &'a [u16],
    pub counts: &'a [i64],
}

/// What is known of r runs when some of their values have been taken.
pub struct State<'a> {
    /// How many values each run has in all.
    pub sizes: &'a [f64],
    /// How many of them were taken.
    pub until: &'a mut [f64],
    /// The logarithm of each run's last value; whatever it is before the first.
    pub since: &'a mut [f64],
}

/// Sums of (r, r), row by row. Of `ad`, `cvm` and `w1` a pair's is spread over both of its places.
pub struct Distances<'a> {
    /// The greatest |d|.
    pub ks: Option<&'a mut [f64]>,
    /// The sum of l d^2 / (B (N - B) - N l / 4) with midranks: B is a value's rank in the pair, l
    /// how often it occurs there.
    pub ad: Option<&'a mut [f64]>,
    /// The sum of l d^2.
    pub cvm: Option<&'a mut [f64]>,
    /// The integral of |d| over the logarithm of the value.
    pub w1: Option<&'a mut [f64]>,
}

/// Takes the next values; false, with some of them taken, where one is of a run there is not.
pub fn add(state: State, found: Distances, values: &Values) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has AVX2.
        return unsafe { add_avx2(state, found, values) };
    }
    add_each(state, found, values)
}

/// Vectors are as wide as the processor's, and what they hold is added in the same order: results
/// do not hang on the machine.
///
/// # Safety
/// The processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn add_avx2(state: State, found: Distances, values: &Values) -> bool {
    add_each(state, found, values)
}

#[inline(always)]
fn add_each(state: State, mut found: Distances, from: &Values) -> bool {
    let State { sizes, until, since } = state;
    let runs = sizes.len();
    let mut share: Vec<f64> = until.iter().zip(sizes).map(|(u, n)| u / n).collect();
    // Of midranks: where a run does not have the value, as the others.
    let (mut middle, mut middle_share) = (until.to_vec(), share.clone());
    let mut here = vec![0.0; runs];
    let mut having: Vec<usize> = Vec::with_capacity(runs);
    let mut next = 0;
    while let Some(&value) = from.values.get(next) {
        loop {
            let run = usize::from(from.runs[next]);
            if run >= runs {
                return false;
            }
            if here[run] == 0.0 {
                having.push(run);
            }
            here[run] += from.counts[next] as f64;
            next += 1;
            if from.values.get(next) != Some(&value) {
                break;
            }
        }
        if let Some(w1) = &mut found.w1 {
            let log = value.ln();
            for &run in &having {
                let (own, begun) = (share[run], since[run]);
                for ((sum, share), since) in row(w1, run, runs).zip(&share).zip(&*since) {
                    *sum += (share - own).abs() * (log - larger(*since, begun));
                }
                since[run] = log;
            }
        }
        for &run in &having {
            until[run] += here[run];
            share[run] = until[run] / sizes[run];
            middle[run] = until[run] - here[run] / 2.0;
            middle_share[run] = middle[run] / sizes[run];
        }
        for &run in &having {
            let (own, count) = (share[run], here[run]);
            if let Some(ks) = &mut found.ks {
                for (most, share) in row(ks, run, runs).zip(&share) {
                    *most = larger(*most, (share - own).abs());
                }
            }
            if let Some(cvm) = &mut found.cvm {
                for (sum, share) in row(cvm, run, runs).zip(&share) {
                    *sum += count * (share - own) * (share - own);
                }
            }
            if let Some(ad) = &mut found.ad {
                let (rank, own, size) = (middle[run], middle_share[run], sizes[run]);
                let others = middle.iter().zip(&middle_share).zip(&here).zip(sizes);
                for (sum, (((middle, share), here), other)) in row(ad, run, runs).zip(others) {
                    let (of_pair, rank) = (size + other, rank + middle);
                    let spread = rank * (of_pair - rank) - of_pair * (count + here) / 4.0;
                    // A pair of one value has 0 / 0.
                    *sum += count * (share - own) * (share - own) / larger(spread, 0.25);
                }
            }
        }
        for run in having.drain(..) {
            here[run] = 0.0;
            middle[run] = until[run];
            middle_share[run] = share[run];
        }
    }
    true
}

#[inline(always)]
fn row(matrix: &mut [f64], run: usize, runs: usize) -> std::slice::IterMut<'_, f64> {
    matrix[run * runs..][..runs].iter_mut()
}

/// Neither is NaN here, and so it is one instruction.
#[inline(always)]
fn larger(first: f64, second: f64) -> f64 {
    if first > second { first } else { second }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All four matrices of three runs, in bits.
    fn taken(add: impl Fn(State, Distances, &Values) -> bool, values: &[f64]) -> Option<Vec<u64>> {
        let runs: Vec<u16> = (0..values.len()).map(|k| (k * k / 2 % 3) as u16).collect();
        let counts: Vec<i64> = (0..values.len()).map(|k| k as i64 % 5 + 1).collect();
        let (mut until, mut since) = ([0.0; 3], [0.0; 3]);
        let mut matrices = [[0.0; 9]; 4];
        let [ks, ad, cvm, w1] = &mut matrices;
        let state = State { sizes: &[900.0, 700.0, 800.0], until: &mut until, since: &mut since };
        let found = Distances { ks: Some(ks), ad: Some(ad), cvm: Some(cvm), w1: Some(w1) };
        let values = Values { values, runs: &runs, counts: &counts };
        add(state, found, &values)
            .then(|| matrices.as_flattened().iter().map(|x| x.to_bits()).collect())
    }

    #[test]
    fn the_width_of_vectors_changes_no_bit() {
        let values: Vec<f64> = (0..400).map(|k| f64::from(1 + k / 3)).collect();
        let found = taken(add, &values).unwrap();
        assert_eq!(found, taken(add_each, &values).unwrap());
        assert!(
            found.iter().filter(|bits| **bits != 0).count() > 20,
            "distances of all three runs"
        );
    }

    #[test]
    fn what_is_no_number_ends() {
        assert!(taken(add, &[f64::NAN; 7]).is_some());
    }
}
