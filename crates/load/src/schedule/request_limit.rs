// SPDX-License-Identifier: Apache-2.0
use std::sync::atomic::{AtomicI64, Ordering};

/// How many requests may still be sent to each target, by all threads together.
#[derive(Debug)]
pub struct Budget {
    left: Option<Vec<AtomicI64>>,
}

impl Budget {
    pub fn unlimited() -> Self {
        Self { left: None }
    }

    pub fn each(requests: u64, targets: usize) -> Self {
        let requests = i64::try_from(requests).unwrap_or(i64::MAX);
        Self { left: Some((0..targets).map(|_| AtomicI64::new(requests)).collect()) }
    }

    /// Takes one request off a target's budget; false if there is none left.
    #[inline]
    pub fn take(&self, target: usize) -> bool {
        match &self.left {
            None => true,
            Some(left) => left[target].fetch_sub(1, Ordering::Relaxed) > 0,
        }
    }

    pub fn is_spent_for(&self, target: usize) -> bool {
        self.left.as_ref().is_some_and(|left| left[target].load(Ordering::Relaxed) <= 0)
    }

    pub fn is_spent(&self) -> bool {
        self.left.as_ref().is_some_and(|left| (0..left.len()).all(|at| self.is_spent_for(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_has_its_own_budget() {
        let budget = Budget::each(2, 2);
        assert!(budget.take(0) && budget.take(0) && !budget.take(0));
        assert!(budget.is_spent_for(0) && !budget.is_spent());
        assert!(budget.take(1) && budget.take(1));
        assert!(budget.is_spent());
        assert!(Budget::unlimited().take(0) && !Budget::unlimited().is_spent());
    }
}
