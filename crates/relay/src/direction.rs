// SPDX-License-Identifier: Apache-2.0
//! One direction of the link: which frames arrive at its other end, and when.

use crate::frame::{bytes_on_link, is_ip};
use std::collections::VecDeque;

pub type Nanoseconds = i64;

const SECOND: u128 = 1_000_000_000;
/// How long frames wait for a slow link, at least, before more are dropped.
const QUEUE: Nanoseconds = 50_000_000;
/// Bytes under way; more are dropped.
const MEMORY: usize = 256 << 20;

#[derive(Debug, Clone, Copy)]
pub struct Link {
    pub delay: Nanoseconds,
    /// Bits per second.
    pub rate: Option<u64>,
    /// A share from 0 to 1.
    pub loss: f64,
}

impl Link {
    /// The waiting frames of a router whose buffer has the size of its bandwidth-delay product.
    fn queue(&self) -> Nanoseconds {
        QUEUE.max(2 * self.delay)
    }

    fn sending_time(&self, frame: &[u8]) -> Nanoseconds {
        let bits = bytes_on_link(frame) as u128 * 8;
        self.rate.map_or(0, |rate| (bits * SECOND).div_ceil(rate.max(1).into()) as Nanoseconds)
    }
}

pub struct Direction {
    link: Link,
    /// When the link has sent what it was given.
    free: Nanoseconds,
    /// With the time of their arrival, which no later one precedes.
    under_way: VecDeque<(Nanoseconds, Box<[u8]>)>,
    bytes: usize,
    random: fastrand::Rng,
}

impl Direction {
    pub fn new(link: Link) -> Self {
        let (under_way, random) = (VecDeque::new(), fastrand::Rng::new());
        Self { link, free: 0, under_way, bytes: 0, random }
    }

    /// Takes a frame, or drops it: where too many wait, or by chance. A frame that is lost by chance
    /// takes its time on the link.
    pub fn send(&mut self, now: Nanoseconds, frame: &[u8]) {
        if self.free - now > self.link.queue() || self.bytes + frame.len() > MEMORY {
            return;
        }
        self.free = self.free.max(now) + self.link.sending_time(frame);
        if is_ip(frame) && self.random.f64() < self.link.loss {
            return;
        }
        self.bytes += frame.len();
        self.under_way.push_back((self.free + self.link.delay, frame.into()));
    }

    /// When the next frame arrives.
    pub fn next(&self) -> Option<Nanoseconds> {
        self.under_way.front().map(|(at, _)| *at)
    }

    /// The next frame, once it has arrived.
    pub fn arrived(&mut self, now: Nanoseconds) -> Option<Box<[u8]>> {
        let (_, frame) = self.under_way.pop_front_if(|(at, _)| *at <= now)?;
        self.bytes -= frame.len();
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanoseconds = 1_000_000;
    const NO_DELAY: Link = Link { delay: 0, rate: None, loss: 0.0 };

    /// An IPv4 packet with a number, in a frame of so many bytes.
    fn frame(length: usize, number: u8) -> Vec<u8> {
        let mut frame = vec![number; 10 + length];
        frame[..10].fill(0);
        frame[10 + 12..10 + 14].copy_from_slice(&[0x08, 0x00]);
        frame
    }

    fn number(frame: &[u8]) -> u8 {
        frame[frame.len() - 1]
    }

    /// When frames arrive that were all sent at 0.
    fn arrivals(direction: &mut Direction) -> Vec<(Nanoseconds, u8)> {
        let mut found = Vec::new();
        while let Some(at) = direction.next() {
            assert!(direction.arrived(at - 1).is_none());
            found.push((at, number(&direction.arrived(at).unwrap())));
        }
        found
    }

    #[test]
    fn every_frame_arrives_after_the_delay_and_in_order() {
        let mut direction = Direction::new(Link { delay: 20 * MS, ..NO_DELAY });
        for sent in 0..5 {
            direction.send(sent * MS, &frame(100, sent as u8));
        }
        let expected: Vec<_> = (0..5).map(|sent| ((20 + sent) * MS, sent as u8)).collect();
        assert_eq!(arrivals(&mut direction), expected);
    }

    #[test]
    fn a_delay_does_not_limit_how_much_is_under_way() {
        let mut direction = Direction::new(Link { delay: 100 * MS, ..NO_DELAY });
        for _ in 0..10_000 {
            direction.send(0, &frame(1514, 0));
        }
        assert_eq!(arrivals(&mut direction).len(), 10_000);
    }

    #[test]
    fn a_rate_sends_one_frame_after_the_other() {
        // 1250 bytes are 10,000 bits: 1 ms each.
        let link = Link { delay: 5 * MS, rate: Some(10_000_000), ..NO_DELAY };
        let mut direction = Direction::new(link);
        for number in 0..3 {
            direction.send(0, &frame(1250, number));
        }
        assert_eq!(arrivals(&mut direction), [(6 * MS, 0), (7 * MS, 1), (8 * MS, 2)]);
        // What was not used before is no credit.
        direction.send(1000 * MS, &frame(1250, 3));
        assert_eq!(arrivals(&mut direction), [(1006 * MS, 3)]);
    }

    #[test]
    fn frames_that_would_wait_too_long_are_dropped() {
        for (delay, queue) in [(0, 50), (100, 200)] {
            let link = Link { delay: delay * MS, rate: Some(10_000_000), ..NO_DELAY };
            let mut direction = Direction::new(link);
            for _ in 0..1000 {
                direction.send(0, &frame(1250, 0));
            }
            // The frame that is being sent, and those that wait.
            assert_eq!(arrivals(&mut direction).len(), queue + 1);
        }
    }

    #[test]
    fn memory_is_limited() {
        let mut direction = Direction::new(Link { delay: MS, ..NO_DELAY });
        let large = frame(1 << 20, 0);
        for _ in 0..300 {
            direction.send(0, &large);
        }
        assert_eq!(arrivals(&mut direction).len(), MEMORY / large.len());
        assert_eq!(direction.bytes, 0);
    }

    #[test]
    fn the_asked_share_of_ip_packets_is_lost() {
        let mut direction = Direction::new(Link { loss: 0.1, ..NO_DELAY });
        direction.random = fastrand::Rng::with_seed(1);
        for _ in 0..100_000 {
            direction.send(0, &frame(60, 0));
        }
        let arrived = arrivals(&mut direction).len();
        // Five standard deviations of a binomial distribution.
        assert!(arrived.abs_diff(90_000) < 5 * 95, "{arrived}");
        let mut arp = frame(60, 0);
        arp[10 + 13] = 0x06;
        for _ in 0..1000 {
            direction.send(0, &arp);
        }
        assert_eq!(arrivals(&mut direction).len(), 1000);
    }
}
