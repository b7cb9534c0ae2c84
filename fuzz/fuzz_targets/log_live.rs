// SPDX-License-Identifier: Apache-2.0
//! A program that logs and its collector, each with its own mapping of one segment, while a third
//! changes anything in it, between their steps and during them: neither crashes or goes on for ever,
//! and what the collector has written can be read. Each input is one seed of `ROUNDS` mutations, and
//! of others at moments that no seed decides.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fs::{self, File};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};
use tare_log_file::{Codec, Events, How, Kind, Reader};
use tare_log_producer::Payload;
use tare_log_segment::layout::{KIND, Process, RingHead, SMALLEST_RING, VERSION, ring_at};
use tare_log_segment::{ChannelId, Configuration, Handler, Policy, Writer};
use tare_shm::{Access, Segment};

#[path = "../concurrent_mutation.rs"]
mod concurrent_mutation;
#[path = "../mutator.rs"]
mod mutator;

#[allow(dead_code, reason = "it is the collector's")]
#[path = "../../crates/log/command/src"]
mod command {
    pub mod collector {
        pub mod compressor;
        pub mod event_counts;
        pub mod producer;
        pub mod quotas;
        pub mod rules;
    }
    pub mod argument_values;
    pub mod epoll;
    pub mod log_file;
    pub mod procfs;
}

// As they call one another.
use command::{argument_values, collector, epoll, log_file, procfs};

use collector::compressor::Compressor;
use collector::producer::Producer;
use collector::quotas::name_quota::NameQuota;
use collector::rules::rules_file::RulesFile;
use concurrent_mutation::ConcurrentMutation;
use log_file::LogFile;
use mutator::Mutator;

const ROUNDS: usize = 100;
const WORDS: usize = SMALLEST_RING / 8;
const SLICE: Duration = Duration::from_millis(20);

/// The program of this process.
struct Program {
    fd: i32,
    memory: &'static [AtomicU64],
    channels: Vec<ChannelId>,
}

static PROGRAM: LazyLock<Program> = LazyLock::new(|| {
    // SAFETY: there is no other thread yet.
    unsafe { std::env::set_var("TARE_LOG_RING", "64K") };
    let policies = [Policy::Drop, Policy::Wait, Policy::Overwrite].into_iter().cycle();
    let handlers = Handler::ALL.iter().cycle().take(3 * Handler::ALL.len());
    let channels = handlers.zip(policies).enumerate().map(|(place, ((name, handler), policy))| {
        let asked = Configuration { handler: *handler, policy, ..Configuration::default() };
        tare_log_producer::open(format!("{name} {place}").as_bytes(), Some(asked))
    });
    let channels = channels.collect();
    let links = fs::read_dir("/proc/self/fd").expect("/proc is there").flatten();
    let path = links.map(|entry| entry.path()).find(|path| {
        fs::read_link(path).is_ok_and(|link| link == Path::new("/memfd:tare-log (deleted)"))
    });
    let name = path.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
    let fd = name.and_then(|name| name.parse().ok()).expect("the segment is there");
    let segment = Segment::open_begun(fd, KIND, VERSION, Access::ReadWrite, ring_at(1, WORDS));
    let segment = segment.expect("it is one");
    let memory = segment.words(0, ring_at(1, WORDS) / 8).expect("it was mapped");
    Program { fd, memory, channels }
});

/// A word that something is kept in, as its place in the segment.
fn place(mutator: &mut Mutator) -> usize {
    macro_rules! from {
        ($field:ident, $words:expr) => {
            (std::mem::offset_of!(Process, $field) / 8, $words)
        };
    }
    let channel = size_of::<tare_log_segment::Channel>() / 8;
    let places = [
        (0, 64),
        (0, 16),
        from!(modes, 8),
        from!(channels, 40 * channel),
        from!(names, 64),
        from!(rule_settings, 16),
        from!(rule_of_channel, 8),
        from!(threaded, 8),
        from!(tables, 8),
        from!(states, 8192),
        (ring_at(0, WORDS) / 8, size_of::<RingHead>() / 8),
        (ring_at(0, WORDS) / 8, 82),
        (ring_at(0, WORDS) / 8, 82),
        ((ring_at(0, WORDS) + size_of::<RingHead>()) / 8, WORDS),
    ];
    let (begin, words) = places[mutator.below(places.len())];
    begin + mutator.below(words)
}

fn log(program: &Program, mutator: &mut Mutator, writer: &mut Option<&'static Writer>) {
    let id = match mutator.below(32) {
        0 => mutator.next() as ChannelId,
        place => program.channels[place % program.channels.len()],
    };
    let number = mutator.next() as i64;
    for _ in 0..1 + mutator.below(64) {
        let payload = match number % 3 {
            0 => Payload::Number(number % 1024),
            1 => Payload::Number(number),
            _ => Payload::Bytes(&[7; 5000][..number.unsigned_abs() as usize % 5000]),
        };
        let is_written = writer.is_some_and(|writer| writer.log(id, number % 1024, || 7));
        if !is_written {
            *writer = tare_log_producer::log(*writer, id, payload);
        }
    }
    match mutator.below(32) {
        0 => tare_log_producer::close(id),
        1 => drop(tare_log_producer::open(b"buffered 1", None)),
        _ => {}
    }
}

fn adopt(program: &Program) -> Option<Producer> {
    // SAFETY: the program keeps it open.
    let fd = unsafe { BorrowedFd::borrow_raw(program.fd) }.try_clone_to_owned().ok()?;
    let mut producer =
        Producer::adopt(fd, std::process::id(), 0, None, 7, Codec::default()).ok()?;
    producer.silence();
    Some(producer)
}

/// A turn of the collector.
fn turn(
    producer: &mut Producer,
    log_file: &mut LogFile,
    compressor: &mut Compressor,
    book: &RulesFile,
    all: bool,
) {
    let until = Instant::now() + SLICE;
    let rings = producer.new_rings();
    producer.allow_rings(rings);
    producer.rule(book, until);
    producer
        .write_metadata(log_file, Some(until), &mut NameQuota::unlimited())
        .expect("the file has room");
    producer.count(log_file, compressor).expect("the file has room");
    for _ in 0..producer.served_rings() {
        producer.copy(compressor, all).expect("there is memory");
        while let Some(compressed) = compressor.first(true).expect("there is memory") {
            producer.write(log_file, compressed).expect("the file has room");
            compressor.take();
        }
    }
    assert!((0.0..=1.0).contains(&producer.fullness()));
    let _ = (producer.event_counts(), producer.due(), producer.has_batch(), producer.is_empty());
}

fn check(path: &Path) {
    let mut reader = Reader::new(File::open(path).expect("it was written"));
    for block in reader.by_ref() {
        let block = block.expect("it was written");
        if block.header.kind == Kind::Events {
            let events = Events::of(&block).expect("a writer has made it");
            events.items().expect("a writer has made it");
        }
    }
    assert_eq!(reader.damaged, 0);
}

fuzz_target!(|data: &[u8]| {
    let program = &*PROGRAM;
    let path = PathBuf::from(format!("/dev/shm/tare-fuzz-{}", std::process::id()));
    let mut mutator = Mutator::of(data);
    ConcurrentMutation::run(program.memory, place, WORDS, &mut mutator, |mutation, mutator| {
        log_and_collect(program, &path, mutation, mutator);
    });
    check(&path);
    fs::remove_file(&path).expect("it was written");
});

fn log_and_collect(
    program: &Program,
    path: &Path,
    mutation: &ConcurrentMutation<'_>,
    mutator: &mut Mutator,
) {
    let mut log_file = LogFile::open("file", path, Codec::default()).expect("/dev/shm is there");
    let mut compressor = Compressor::new(0).expect("there is memory");
    let book = RulesFile::open(None).expect("without a file");
    let mut writer = None;
    let mut producer = adopt(program);
    for _ in 0..ROUNDS {
        mutation.change(mutator);
        log(program, mutator, &mut writer);
        let step = mutator.below(64);
        if step == 0 || producer.is_none() {
            if let Some(producer) = &mut producer {
                producer
                    .end(&mut log_file, &mut compressor, None, &mut NameQuota::unlimited())
                    .expect("the file has room");
            }
            producer = adopt(program);
        } else if step < 32
            && let Some(producer) = &mut producer
        {
            turn(producer, &mut log_file, &mut compressor, &book, mutator.below(8) == 0);
        }
    }
    if let Some(producer) = &mut producer {
        producer
            .end(&mut log_file, &mut compressor, Some(How::Left), &mut NameQuota::unlimited())
            .expect("the file has room");
    }
}
