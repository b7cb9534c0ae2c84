// SPDX-License-Identifier: Apache-2.0
use std::sync::atomic::{AtomicI64, Ordering};

/// How many requests may still be sent to each target, by all threads together.
#[derive(Debug)]
pub struct RequestLimit {
    left: Option<Vec<AtomicI64>>,
}

impl RequestLimit {
    pub fn unlimited() -> Self {
        Self { left: None }
    }

    pub fn each(requests: u64, targets: usize) -> Self {
        let requests = i64::try_from(requests).unwrap_or(i64::MAX);
        Self { left: Some((0..targets).map(|_| AtomicI64::new(requests)).collect()) }
    }

    /// Takes one of a target's requests; false if there is none left.
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
    fn each_target_has_its_own_limit() {
        let request_limit = RequestLimit::each(2, 2);
        assert!(request_limit.take(0) && request_limit.take(0) && !request_limit.take(0));
        assert!(request_limit.is_spent_for(0) && !request_limit.is_spent());
        assert!(request_limit.take(1) && request_limit.take(1));
        assert!(request_limit.is_spent());
        assert!(RequestLimit::unlimited().take(0) && !RequestLimit::unlimited().is_spent());
    }
}
