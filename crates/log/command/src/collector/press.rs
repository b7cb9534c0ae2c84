// SPDX-License-Identifier: Apache-2.0
//! Compresses what was copied out of rings, in other threads where there are any, and gives it
//! back in the order in which it came.

use crate::collector::producer::ring::Thread;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use tare_log_file::{Codecs, Encoder, Packed};

/// Words of a ring on their way into the file.
pub struct Batch {
    /// The target's number in the file, and the ring's place in it.
    pub target: u32,
    pub ring: usize,
    /// The place of the first word, counted since the ring was made.
    pub from: u64,
    /// Whose they are until a record says otherwise, unless they follow the batch before.
    pub thread: Option<Thread>,
    pub words: Vec<u64>,
    pub codecs: Arc<Codecs>,
}

/// A batch and what goes into the file.
pub struct Pressed {
    pub batch: Batch,
    pub packed: Packed,
}

type Done = (u64, io::Result<Pressed>);

/// Batches that may wait for each thread that compresses, one it has in hand included.
const EACH: u64 = 3;

pub struct Press {
    encoder: Encoder,
    /// `None` where this thread does it.
    helpers: Option<Helpers>,
    /// Numbers of the batch that comes next, and of the one that is given back next.
    begun: u64,
    ended: u64,
    early: BTreeMap<u64, io::Result<Pressed>>,
    ready: VecDeque<Pressed>,
    /// Memory to be used again.
    spare: Vec<Vec<u64>>,
}

struct Helpers {
    jobs: Sender<(u64, Batch)>,
    done: Receiver<Done>,
    most: u64,
}

impl Press {
    /// With so many threads; 0 is this one.
    pub fn new(workers: usize) -> io::Result<Self> {
        Ok(Self {
            encoder: Encoder::default(),
            helpers: if workers == 0 { None } else { Some(Helpers::start(workers)?) },
            begun: 0,
            ended: 0,
            early: BTreeMap::new(),
            ready: VecDeque::new(),
            spare: Vec::new(),
        })
    }

    /// Memory for the words of a batch.
    pub fn memory(&mut self) -> Vec<u64> {
        self.spare.pop().unwrap_or_default()
    }

    /// Memory that is used no more.
    pub fn give_back(&mut self, memory: Vec<u64>) {
        self.spare.push(memory);
    }

    /// Whether another batch may come; else some must be taken first.
    pub fn has_room(&self) -> bool {
        match &self.helpers {
            None => self.ready.is_empty(),
            Some(helpers) => self.begun - self.ended + (self.ready.len() as u64) < helpers.most,
        }
    }

    /// Whether all that came was taken.
    pub fn is_empty(&self) -> bool {
        self.begun == self.ended && self.ready.is_empty()
    }

    pub fn add(&mut self, batch: Batch) -> io::Result<()> {
        let number = self.begun;
        match &self.helpers {
            None => self.ready.push_back(press(&mut self.encoder, batch)?),
            Some(helpers) => {
                self.begun += 1;
                helpers.jobs.send((number, batch)).map_err(|_| ended())?;
            }
        }
        Ok(())
    }

    /// The oldest batch, if it is compressed; with `wait`, as soon as it is. It stays until it
    /// is taken.
    pub fn first(&mut self, wait: bool) -> io::Result<Option<&Pressed>> {
        while self.ready.is_empty() && self.begun > self.ended {
            let Some(helpers) = &self.helpers else { break };
            if let Some(next) = self.early.remove(&self.ended) {
                self.ended += 1;
                self.ready.push_back(next?);
            } else if wait {
                let (number, pressed) = helpers.done.recv().map_err(|_| ended())?;
                self.early.insert(number, pressed);
            } else if let Ok((number, pressed)) = helpers.done.try_recv() {
                self.early.insert(number, pressed);
            } else {
                break;
            }
        }
        Ok(self.ready.front())
    }

    /// The oldest batch is in the file.
    pub fn take(&mut self) {
        if let Some(pressed) = self.ready.pop_front() {
            self.give_back(pressed.batch.words);
        }
    }

    /// At once, past what waits.
    pub fn pack(&mut self, words: &[u64], codecs: &Codecs) -> io::Result<Packed> {
        self.encoder.pack(words, codecs)
    }
}

fn press(encoder: &mut Encoder, batch: Batch) -> io::Result<Pressed> {
    let packed = encoder.pack(&batch.words, &batch.codecs)?;
    Ok(Pressed { batch, packed })
}

fn ended() -> io::Error {
    io::Error::other("a thread that compresses has ended")
}

impl Helpers {
    fn start(workers: usize) -> io::Result<Self> {
        let (jobs, waiting) = channel::<(u64, Batch)>();
        let (finished, done) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for number in 0..workers {
            let (waiting, finished) = (waiting.clone(), finished.clone());
            let name = format!("compress-{number}");
            thread::Builder::new().name(name).spawn(move || work(&waiting, &finished))?;
        }
        Ok(Self { jobs, done, most: workers as u64 * EACH })
    }
}

/// Until nobody can have any more to do for it.
fn work(waiting: &Mutex<Receiver<(u64, Batch)>>, finished: &Sender<Done>) {
    let mut encoder = Encoder::default();
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, batch)) = next else { return };
        if finished.send((number, press(&mut encoder, batch))).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_log_segment::record::short_tag;

    /// Of very different lengths, so that later ones are finished earlier.
    fn batch(number: u64) -> Batch {
        let events = if number.is_multiple_of(3) { 30_000 } else { 1 };
        let tag = short_tag(1, number as i64).unwrap();
        let words = (0..events).flat_map(|ticks| [ticks, tag]).collect();
        let codecs = Arc::default();
        Batch { target: 1, ring: 0, from: number, thread: None, words, codecs }
    }

    #[test]
    fn batches_come_back_in_order_however_many_threads_there_are() {
        for workers in [0, 1, 2, 5] {
            let mut press = Press::new(workers).unwrap();
            let mut given = Vec::new();
            for number in 0..60 {
                while !press.has_room() {
                    given.push(press.first(true).unwrap().unwrap().batch.from);
                    press.take();
                }
                press.add(batch(number)).unwrap();
            }
            while let Some(pressed) = press.first(true).unwrap() {
                assert_eq!(pressed.packed.summary.words, pressed.batch.words.len());
                given.push(pressed.batch.from);
                press.take();
            }
            assert!(given.into_iter().eq(0..60), "{workers}");
            assert!(press.is_empty());
        }
    }

    #[test]
    fn what_is_not_taken_stays() {
        let mut press = Press::new(1).unwrap();
        press.add(batch(7)).unwrap();
        for _ in 0..3 {
            assert_eq!(press.first(true).unwrap().unwrap().batch.from, 7);
        }
        assert!(!press.is_empty());
        press.take();
        assert!(press.first(true).unwrap().is_none());
    }
}
