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
    /// The producer's number in the file, and the ring's place in it.
    pub producer: u32,
    pub ring: usize,
    /// The place of the first word, counted since the ring was made.
    pub from: u64,
    /// Whose they are until a record says otherwise, unless they follow the batch before.
    pub thread: Option<Thread>,
    pub words: Vec<u64>,
    pub codecs: Arc<Codecs>,
}

/// A batch and what goes into the file.
pub struct Compressed {
    pub batch: Batch,
    pub packed: Packed,
}

type Done = (u64, io::Result<Compressed>);

/// Batches that may wait for each thread that compresses, one it has in hand included.
const EACH: u64 = 3;

pub struct Compressor {
    encoder: Encoder,
    /// `None` where this thread does it.
    workers: Option<Workers>,
    /// Numbers of the batch that comes next, and of the one that is given back next.
    begun: u64,
    ended: u64,
    early: BTreeMap<u64, io::Result<Compressed>>,
    ready: VecDeque<Compressed>,
    /// Memory to be used again.
    spare: Vec<Vec<u64>>,
}

struct Workers {
    jobs: Sender<(u64, Batch)>,
    done: Receiver<Done>,
    most: u64,
}

impl Compressor {
    /// With so many threads; 0 is this one.
    pub fn new(workers: usize) -> io::Result<Self> {
        Ok(Self {
            encoder: Encoder::default(),
            workers: if workers == 0 { None } else { Some(Workers::start(workers)?) },
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
        match &self.workers {
            None => self.ready.is_empty(),
            Some(workers) => self.begun - self.ended + (self.ready.len() as u64) < workers.most,
        }
    }

    /// Whether all that came was taken.
    pub fn is_empty(&self) -> bool {
        self.begun == self.ended && self.ready.is_empty()
    }

    pub fn add(&mut self, batch: Batch) -> io::Result<()> {
        let number = self.begun;
        match &self.workers {
            None => self.ready.push_back(compress(&mut self.encoder, batch)?),
            Some(workers) => {
                self.begun += 1;
                workers.jobs.send((number, batch)).map_err(|_| ended())?;
            }
        }
        Ok(())
    }

    /// The oldest batch, if it is compressed; with `wait`, as soon as it is. It stays until it
    /// is taken.
    pub fn first(&mut self, wait: bool) -> io::Result<Option<&Compressed>> {
        while self.ready.is_empty() && self.begun > self.ended {
            let Some(workers) = &self.workers else { break };
            if let Some(next) = self.early.remove(&self.ended) {
                self.ended += 1;
                self.ready.push_back(next?);
            } else if wait {
                let (number, compressed) = workers.done.recv().map_err(|_| ended())?;
                self.early.insert(number, compressed);
            } else if let Ok((number, compressed)) = workers.done.try_recv() {
                self.early.insert(number, compressed);
            } else {
                break;
            }
        }
        Ok(self.ready.front())
    }

    /// The oldest batch is in the file.
    pub fn take(&mut self) {
        if let Some(compressed) = self.ready.pop_front() {
            self.give_back(compressed.batch.words);
        }
    }

    /// At once, past what waits.
    pub fn pack(&mut self, words: &[u64], codecs: &Codecs) -> io::Result<Packed> {
        self.encoder.pack(words, codecs)
    }
}

fn compress(encoder: &mut Encoder, batch: Batch) -> io::Result<Compressed> {
    let packed = encoder.pack(&batch.words, &batch.codecs)?;
    Ok(Compressed { batch, packed })
}

fn ended() -> io::Error {
    io::Error::other("a thread that compresses has ended")
}

impl Workers {
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
        if finished.send((number, compress(&mut encoder, batch))).is_err() {
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
        Batch { producer: 1, ring: 0, from: number, thread: None, words, codecs }
    }

    #[test]
    fn batches_come_back_in_order_however_many_threads_there_are() {
        for workers in [0, 1, 2, 5] {
            let mut compressor = Compressor::new(workers).unwrap();
            let mut given = Vec::new();
            for number in 0..60 {
                while !compressor.has_room() {
                    given.push(compressor.first(true).unwrap().unwrap().batch.from);
                    compressor.take();
                }
                compressor.add(batch(number)).unwrap();
            }
            while let Some(compressed) = compressor.first(true).unwrap() {
                assert_eq!(compressed.packed.summary.words, compressed.batch.words.len());
                given.push(compressed.batch.from);
                compressor.take();
            }
            assert!(given.into_iter().eq(0..60), "{workers}");
            assert!(compressor.is_empty());
        }
    }

    #[test]
    fn what_is_not_taken_stays() {
        let mut compressor = Compressor::new(1).unwrap();
        compressor.add(batch(7)).unwrap();
        for _ in 0..3 {
            assert_eq!(compressor.first(true).unwrap().unwrap().batch.from, 7);
        }
        assert!(!compressor.is_empty());
        compressor.take();
        assert!(compressor.first(true).unwrap().is_none());
    }
}
