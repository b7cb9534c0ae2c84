// SPDX-License-Identifier: Apache-2.0
//! Whatever a program writes into its segment, before the collector looks or while it does: what
//! the collector copies can be read from its file, and it never goes on for ever.
#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tare_log_file::{Codec, Codecs, Encoder, Events, Item};
use tare_log_segment::layout::{KIND, SMALLEST_RING, VERSION, ring_at, ring_size};
use tare_log_segment::record::{loss_record, short_tag, thread_record, wide_tag};
use tare_log_segment::{ChannelId, Process, RingHead};
use tare_shm::{Access, Fill, Segment};

#[allow(dead_code, reason = "it is the collector's")]
#[path = "../../crates/log/command/src/collector/producer"]
mod producer {
    pub mod event_clock;
    pub mod handler_state;
    pub mod ring;
    pub mod sparse_copy;
}

/// What the collector asks the kernel, which a program's memory has no part in.
mod procfs {
    pub fn ahead_ns(_pid: u32) -> i64 {
        0
    }
}

use producer::event_clock::EventClock;
use producer::handler_state;
use producer::ring::Ring;

const WORDS: usize = SMALLEST_RING / 8;

/// A word, as programs write it and as they do not.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Word {
    Any(u64),
    Small(u8),
    Short { channel: u8, payload: i32 },
    Wide { channel: u8, length: u16 },
    Thread,
    Loss,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// Into the ring, from a place on: so many times the same.
    Words {
        at: u16,
        words: Vec<Word>,
        times: u8,
    },
    /// Into what stands before the words of the ring, or at the beginning of the segment.
    Head {
        at: u8,
        word: Word,
    },
    /// The program has written so much.
    Advance(u16),
    Channel {
        id: u16,
        word: u8,
        value: Word,
    },
    Used {
        channels: u32,
        states: u64,
    },
    State {
        at: u16,
        word: Word,
    },
    Collect {
        all: bool,
    },
    /// Another collector takes over.
    Again,
    Kept,
}

struct Memory {
    fd: i32,
    whole: Segment,
}

static MEMORY: LazyLock<Memory> = LazyLock::new(|| {
    let made = Segment::create(c"fuzz", KIND, VERSION, ring_at(1, WORDS));
    let (fd, whole) = made.expect("memory is there");
    Memory { fd, whole }
});

impl Word {
    fn number(self) -> u64 {
        match self {
            Self::Any(number) => number,
            Self::Small(number) => number.into(),
            Self::Short { channel, payload } => {
                short_tag(channel.into(), payload.into()).expect("32 bits fit")
            }
            Self::Wide { channel, length } => wide_tag(channel.into(), length.into()),
            Self::Thread => thread_record(0, 0, [0; 2])[1],
            Self::Loss => loss_record(0, 0, 0, 0)[1],
        }
    }
}

/// What the program can write to: `T` as words.
fn words<T>(of: &T) -> &[AtomicU64] {
    let length = size_of::<T>() / 8;
    // SAFETY: it holds nothing but atomics, and is as long; the mapping is never taken away.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(of).cast(), length) }
}

fn readable(words: &[u64], encoder: &mut Encoder) {
    let others = [(1, Codec::Lz4), (2, Codec::None)];
    for codecs in [Codecs::default(), Codecs::new(Codec::Lzo1x, others.into_iter())] {
        let packed = encoder.pack(words, &codecs).expect("memory is there");
        assert!(packed.summary.words <= words.len());
        let events = Events::unpack(packed.codec, packed.raw, &packed.stored, 0);
        let events = events.expect("a writer has made it");
        let items = events.items().expect("a writer has made it");
        let count = items.iter().filter(|item| matches!(item, Item::Event(_))).count();
        assert_eq!(count, packed.summary.events as usize);
    }
}

fn collect(ring: &mut Ring, all: bool, batch: &mut Vec<u64>, encoder: &mut Encoder) {
    // Two batches are more than the ring has.
    for _ in 0..4 {
        ring.due();
        assert!((0.0..=1.0).contains(&ring.fullness()));
        if !ring.is_time(all) {
            return;
        }
        let (from, thread) = ring.copy(batch);
        ring.begin(thread);
        assert!(batch.len() <= WORDS);
        readable(batch, encoder);
        let packed = encoder.pack(batch, &Codecs::default()).expect("memory is there");
        let told = packed.summary.lost.map_or(ring.told(), |lost| lost.max(ring.told()));
        ring.writing(from.wrapping_add(batch.len() as u64), told);
        ring.free(from, batch, told, &packed.summary);
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(steps) = Vec::<Step>::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let Memory { fd, whole } = &*MEMORY;
    let part =
        Segment::part(*fd, ring_at(0, WORDS), ring_size(WORDS), Access::ReadWrite, Fill::Now)
            .expect("it is there");
    // SAFETY: atomics only; the mappings outlast the references.
    let (process, head): (&Process, &RingHead) =
        unsafe { (whole.at(0).expect("it is there"), part.at(0).expect("it is there")) };
    let ring_words = part.words(size_of::<RingHead>(), WORDS).expect("they are there");
    let heads = &words(head)[..96];
    heads.iter().chain(ring_words).for_each(|word| word.store(0, Relaxed));
    let channels = &process.channels[..8];
    channels.iter().flat_map(words).for_each(|word| word.store(0, Relaxed));
    process.states[..256].iter().for_each(|word| word.store(0, Relaxed));
    process.channels_used.store(8, Relaxed);
    process.states_used.store(256, Relaxed);

    let mut ring = Ring::map(*fd, 0, WORDS).expect("it is there");
    let (mut batch, mut encoder) = (Vec::new(), Encoder::default());
    for step in &steps {
        match step {
            Step::Words { at, words, times } => {
                let all = words.iter().cycle().take(words.len() * (1 + usize::from(*times)));
                for (place, word) in (usize::from(*at)..).zip(all) {
                    ring_words[place % WORDS].store(word.number(), Relaxed);
                }
            }
            Step::Head { at, word } => {
                heads[usize::from(*at) % heads.len()].store(word.number(), Relaxed);
            }
            Step::Advance(count) => {
                head.indices.head().fetch_add(u64::from(*count), Relaxed);
            }
            Step::Channel { id, word, value } => {
                let channel = words(&channels[usize::from(*id) % channels.len()]);
                channel[usize::from(*word) % channel.len()].store(value.number(), Relaxed);
            }
            Step::Used { channels, states } => {
                process.channels_used.store(*channels, Relaxed);
                process.states_used.store(*states, Relaxed);
            }
            Step::State { at, word } => {
                process.states[usize::from(*at) % 256].store(word.number(), Relaxed);
            }
            Step::Collect { all } => collect(&mut ring, *all, &mut batch, &mut encoder),
            Step::Again => {
                ring.unmap();
                ring = Ring::map(*fd, 0, WORDS).expect("it is there");
            }
            Step::Kept => {
                let mut words = Vec::new();
                for is_copy in [false, true] {
                    handler_state::take_rest(
                        process,
                        EventClock::of(process, 0, is_copy),
                        &mut words,
                    );
                }
                readable(&words, &mut encoder);
                for (id, channel) in process.opened().take(16) {
                    let _ = (process.name(channel).count(), process.configuration(id));
                }
                let _ = process.configuration(ChannelId::MAX);
            }
        }
    }
    if let Some((_, record)) = ring.last_loss() {
        readable(&record, &mut encoder);
    }
    ring.unmap();
    // SAFETY: what it gave out is used no more.
    unsafe { part.unmap() };
});
