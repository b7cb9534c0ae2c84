// SPDX-License-Identifier: Apache-2.0
/// The times of a span.
#[derive(Default)]
pub struct Times {
    pub count: u64,
    /// Ends or beginnings without their other.
    pub unpaired: u64,
    pub total: f64,
    pub least: u64,
    pub greatest: u64,
    /// In the bins of `tare_hist`, page by page: those of most spans are close together.
    pages: Vec<Option<Box<Page>>>,
}

const PAGE: usize = 64;
pub type Page = [u64; PAGE];

/// Of all spans: 512 MiB. A file of one megabyte can have many thousands of names, each with the
/// longest duration.
pub const MOST_PAGES: usize = 1 << 20;

impl Times {
    /// Returns the number of pages that are new.
    pub fn add(&mut self, duration: f64) -> usize {
        self.total += duration;
        let duration = duration.round() as u64;
        self.least = if self.count == 0 { duration } else { self.least.min(duration) };
        self.greatest = self.greatest.max(duration);
        self.count += 1;
        let bin = tare_hist::index(duration);
        let place = bin / PAGE;
        if place >= self.pages.len() {
            self.pages.resize(place + 1, None);
        }
        let page = &mut self.pages[place];
        let new = usize::from(page.is_none());
        page.get_or_insert_with(|| Box::new([0; PAGE]))[bin % PAGE] += 1;
        new
    }

    /// Within 0.1 %.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let bins = self.pages.iter().flat_map(|page| *page.as_deref().unwrap_or(&[0; PAGE]));
        let bin = tare_hist::quantile(&bins.collect::<Vec<_>>(), share)?;
        Some(tare_hist::middle(bin).clamp(self.least, self.greatest))
    }

    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_durations_take_no_memory_for_shorter_ones() {
        let mut times = Times::default();
        let new: usize = [1.0, 1e9, 1e18, 1e18].map(|duration| times.add(duration)).iter().sum();
        assert_eq!(times.pages.iter().flatten().count(), 3);
        assert_eq!(new, 3);
        let exact = [(0.25, 1e0), (0.5, 1e9), (1.0, 1e18)];
        for (share, expected) in exact {
            let found = times.quantile(share).unwrap() as f64;
            assert!((found - expected).abs() <= expected / 1_000.0, "{share}: {found}");
        }
    }
}
