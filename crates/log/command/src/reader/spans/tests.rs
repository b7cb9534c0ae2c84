// SPDX-License-Identifier: Apache-2.0
use super::*;
use std::convert::Infallible;
use std::fs;
use tare_log_file::{Channels, Clock, Codecs, Encoder, Header, Kind, OpenedChannel, ProcessInfo};
use tare_log_segment::ChannelId;
use tare_log_segment::record::{loss_record, short_tag, thread_record};

const NAMES: [&str; 5] = ["a>", "a<", "b>", "b<", "c"];

fn note(kind: Kind, content: &[u8]) -> Vec<u8> {
    let header = Header { raw: content.len() as u32, ..Header::of(kind, 7) };
    tare_log_file::block(header, content).unwrap()
}

/// A file with these words of one ring, at one tick a nanosecond.
fn log(name: &str, words: &[u64]) -> Log {
    log_of_blocks(name, &[(0, 6, words)])
}

/// In the place of the thread of a block that does not come into the file.
const MISSING: u32 = u32::MAX;

fn told_of(name: &str, blocks: &[(u32, u32, &[u64])]) -> Vec<String> {
    told(&log_of_blocks(name, blocks))
}

/// One with such blocks, each of a ring and a thread.
fn log_of_blocks(name: &str, blocks: &[(u32, u32, &[u64])]) -> Log {
    let info = serde_json::to_vec(&ProcessInfo { pid: 5, ..ProcessInfo::default() }).unwrap();
    let channels = NAMES.iter().zip(1..).map(|(name, id)| OpenedChannel {
        id,
        name: (*name).to_owned(),
        ..OpenedChannel::default()
    });
    let channels = serde_json::to_vec(&Channels { channels: channels.collect() }).unwrap();
    let mut bytes = [note(Kind::Process, &info), note(Kind::Channels, &channels)].concat();
    for time in [0, 1_000_000] {
        let (ticks, ns) = (time as u64, time);
        let clock = Clock { ticks, monotonic_ns: ns, realtime_ns: ns, ..Clock::default() };
        bytes.extend(note(Kind::Clock, &clock.bytes()));
    }
    let mut ends = HashMap::new();
    for (ring, tid, words) in blocks {
        let packed = Encoder::default().pack(words, &Codecs::default()).unwrap();
        let end = ends.entry(ring).or_insert(0);
        let from = *end;
        *end += words.len() as u64;
        if *tid == MISSING {
            continue;
        }
        let header = Header {
            codec: packed.codec,
            raw: packed.raw as u32,
            ring: *ring,
            tid: *tid,
            from,
            to: *end,
            events: packed.summary.events,
            is_carried: packed.summary.is_carried || is_virtual(*tid),
            first_ticks: packed.summary.first_ticks,
            ..Header::of(Kind::Events, 7)
        };
        bytes.extend(tare_log_file::block(header, &packed.stored).unwrap());
    }
    let path = std::env::temp_dir().join(format!("tare-spans-{}-{name}", std::process::id()));
    fs::write(&path, bytes).unwrap();
    Log::open(&[path]).unwrap()
}

fn events(channels: &[&str]) -> Vec<u64> {
    let ids = channels.iter().map(|name| NAMES.iter().position(|known| known == name).unwrap() + 1);
    let events = ids.enumerate().map(|(index, id)| {
        [10 * (index as u64 + 1), short_tag(id as ChannelId, index as i64).unwrap()]
    });
    events.flatten().collect()
}

/// What happens, in words; spans are named by when they began.
fn told(log: &Log) -> Vec<String> {
    let roles = Roles::of(log, &[]);
    let mut told = Vec::new();
    let visited = for_each_span_event(log, &roles, |row, span_event| {
        let named = |open: &Open| format!("{}{}", roles.names()[open.name], open.id.ticks);
        let within = |id: Option<Id>| id.map_or(String::new(), |id| format!(" in {}", id.ticks));
        let what = match span_event {
            SpanEvent::Begin(open) => format!("begin {}{}", named(open), within(open.parent)),
            SpanEvent::End(open, time) => format!("end {} {}", named(open), time.unwrap()),
            SpanEvent::Cut(open) => format!("cut {}", named(open)),
            SpanEvent::Left(open) => format!("left {} of {}", named(open), row.tid),
            SpanEvent::Event(open) => format!("event{}", within(open.map(|open| open.id))),
            SpanEvent::Unbegun => "unbegun".to_owned(),
            SpanEvent::Loss => "loss".to_owned(),
        };
        told.push(what);
        Ok::<_, Infallible>(())
    });
    assert!(visited.is_ok());
    told
}

#[test]
fn an_end_belongs_to_the_nearest_beginning_of_its_name() {
    let log = log("nested", &events(&["a>", "c", "a>", "b>", "a<", "b<", "a<", "a<", "b>"]));
    let expected = [
        "begin a10",
        "event in 10",
        "begin a30 in 10",
        "begin b40 in 30",
        "cut b40",
        "end a30 20",
        "unbegun",
        "end a10 60",
        "unbegun",
        "begin b90",
        "left b90 of 6",
    ];
    assert_eq!(told(&log), expected);
}

#[test]
fn a_loss_cuts_what_is_open_on_its_thread() {
    let mut words = events(&["a>", "b>"]);
    words.extend(thread_record(25, 9, [0, 0]));
    words.extend(events(&["a>"]));
    words.extend(thread_record(26, 6, [0, 0]));
    words.extend(loss_record(30, 4, 25, 29));
    words.extend(events(&["b<", "a<"]));
    let expected = [
        "begin a10",
        "begin b20 in 10",
        "begin a10",
        "cut b20",
        "cut a10",
        "loss",
        "unbegun",
        "unbegun",
        "left a10 of 9",
    ];
    assert_eq!(told(&log("loss", &words)), expected);
}

const ONE: u32 = 1 << 31;
const OTHER: u32 = ONE + 1;

fn event(ticks: u64, name: &str) -> [u64; 2] {
    let id = NAMES.iter().position(|known| *known == name).unwrap() + 1;
    [ticks, short_tag(id as ChannelId, 0).unwrap()]
}

fn switch(tid: u32) -> [u64; 6] {
    thread_record(0, tid, [0, 0])
}

/// Without the span of an ordinary thread, which ends whatever becomes of theirs.
fn of_virtual(log: &Log) -> Vec<String> {
    let mut told = told(log);
    told.retain(|what| what != "begin b12");
    let end = told.iter().position(|what| what == "end b12 58").unwrap();
    told.remove(end);
    told
}

#[test]
fn spans_of_virtual_threads_go_on_in_other_rings() {
    let first = [&switch(ONE)[..], &event(10, "a>"), &switch(OTHER), &event(20, "a>")].concat();
    let ordinary = [event(12, "b>"), event(70, "b<")].concat();
    let later = [&event(60, "b<")[..], &switch(ONE), &event(80, "a<")].concat();
    let second = [&event(30, "b>")[..], &event(40, "a<"), &switch(OTHER), &event(50, "b>")];
    let second = second.concat();
    let blocks: [(u32, u32, &[u64]); 4] =
        [(1, 5, &first), (3, 6, &ordinary), (1, OTHER, &later), (2, ONE, &second)];
    let expected = [
        "begin a10",
        "begin a20",
        "begin b30 in 10",
        "cut b30",
        "end a10 30",
        "begin b50 in 20",
        "end b50 10",
        "unbegun",
        "left a20 of 2147483649",
    ];
    assert_eq!(of_virtual(&log_of_blocks("carried", &blocks)), expected);
}

#[test]
fn a_loss_of_a_carrier_may_be_of_any_virtual_thread() {
    let first = [&switch(ONE)[..], &event(10, "a>"), &switch(OTHER), &event(20, "b>")].concat();
    let ordinary = [event(12, "b>"), event(70, "b<")].concat();
    let lossy = [&loss_record(60, 4, 30, 60)[..], &event(65, "c")].concat();
    let second = [
        &switch(OTHER)[..],
        &event(25, "b<"),
        &event(26, "b>"),
        &switch(ONE),
        &event(40, "a<"),
        &event(50, "b>"),
        &event(70, "b<"),
        &event(71, "a>"),
        &event(72, "a<"),
    ];
    let blocks: [(u32, u32, &[u64]); 4] =
        [(1, 5, &first), (3, 6, &ordinary), (2, 5, &second.concat()), (1, OTHER, &lossy)];
    let expected = [
        "begin a10",
        "begin b20",
        "end b20 5",
        "begin b26",
        "cut a10",
        "cut b26",
        "unbegun",
        "begin b50",
        "loss",
        "event",
        "cut b50",
        "unbegun",
        "begin a71",
        "end a71 1",
    ];
    assert_eq!(of_virtual(&log_of_blocks("carriers", &blocks)), expected);
}

#[test]
fn a_loss_of_a_carrier_counts_from_the_first_wherever_it_is_told() {
    // What was overwritten is told behind what follows it; the ring was another thread's.
    let begun = [&switch(ONE)[..], &event(10, "a>"), &event(20, "a>")].concat();
    let before = event(5, "c");
    let ended = event(50, "a<");
    let told = [&switch(7)[..], &switch(OTHER), &event(100, "c"), &loss_record(201, 1, 30, 30)];
    let told = [&told.concat()[..], &event(201, "c")].concat();
    let blocks: [(u32, u32, &[u64]); 4] =
        [(1, 5, &begun), (2, 6, &before), (1, ONE, &ended), (2, 6, &told)];
    let expected =
        ["event", "begin a10", "begin a20 in 10", "cut a20", "cut a10", "unbegun", "loss"];
    assert_eq!(told_of("overwritten", &blocks)[..7], expected);
}

#[test]
fn a_loss_of_an_ordinary_thread_is_none_of_a_virtual_one() {
    let begun = [&switch(ONE)[..], &event(10, "a>")].concat();
    let lossy = [&loss_record(59, 4, 30, 59)[..], &event(65, "b>"), &event(70, "b<")].concat();
    let ended = event(80, "a<");
    let blocks: [(u32, u32, &[u64]); 3] = [(1, 5, &begun), (3, 6, &lossy), (1, ONE, &ended)];
    let expected = ["begin a10", "loss", "begin b65", "end b65 5", "end a10 70"];
    assert_eq!(told_of("ordinary", &blocks), expected);
}

#[test]
fn words_that_are_missing_cut_what_is_open_on_their_thread() {
    let blocks: [(u32, u32, &[u64]); 3] = [
        (1, 6, &[event(10, "a>"), event(20, "b>")].concat()),
        (1, MISSING, &[event(30, "a<"), event(40, "c")].concat()),
        (1, 6, &[event(50, "a<"), event(60, "b>"), event(70, "b<")].concat()),
    ];
    let expected = [
        "begin a10",
        "begin b20 in 10",
        "cut b20",
        "cut a10",
        "unbegun",
        "begin b60",
        "end b60 10",
    ];
    assert_eq!(told_of("missing", &blocks), expected);
}

#[test]
fn spans_that_begin_at_one_tick_are_told_apart() {
    let mut words = events(&["a>"]);
    words.extend(words.clone());
    let log = log("tick", &words);
    let mut ids = Vec::new();
    let visited = for_each_span_event(&log, &Roles::of(&log, &[]), |_, span_event| {
        if let SpanEvent::Begin(open) = span_event {
            ids.push((open.id.ticks, open.id.nth));
        }
        Ok::<_, Infallible>(())
    });
    assert!(visited.is_ok());
    assert_eq!(ids, [(10, 0), (10, 1)]);
}

#[test]
fn beginnings_without_ends_take_no_memory_without_end() {
    let many = vec!["a>"; DEEPEST + 1];
    let told = told(&log("deep", &events(&many)));
    let count = |what: &str| told.iter().filter(|line| line.starts_with(what)).count();
    assert_eq!((count("begin"), count("cut"), count("left")), (DEEPEST + 1, DEEPEST, 1));
}

#[test]
fn beginnings_of_many_threads_take_no_memory_without_end() {
    let words = events(&["a>"; 10]);
    let threads = |count: u32| (0..count).map(|tid| (0, tid, &words[..])).collect::<Vec<_>>();
    let log = log_of_blocks("wide", &threads(100));
    let roles = Roles::of(&log, &[]);
    let room = 55 * (size_of::<Open>() + size_of::<Stack>());
    let (mut begun, mut cut, mut left) = (0, 0, Vec::new());
    let visited = for_each_within(room, &log, &roles, |row, span_event| {
        match span_event {
            SpanEvent::Begin(_) => begun += 1,
            SpanEvent::Cut(_) => cut += 1,
            SpanEvent::Left(_) => left.push(row.tid),
            _ => panic!("{span_event:?}"),
        }
        Ok::<_, Infallible>(())
    });
    assert!(visited.is_ok());
    assert_eq!((begun, cut, left.len()), (1_000, 945, 55));
    left.dedup();
    assert_eq!(left, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn spans_that_ended_leave_room_for_others() {
    let each = events(&["a>", "b>", "b<", "a<"]);
    let words = each.repeat(50);
    let log = log("room", &words);
    let roles = Roles::of(&log, &[]);
    let mut ended = 0;
    let visited =
        for_each_within(2 * (size_of::<Open>() + size_of::<Stack>()), &log, &roles, |_, what| {
            ended += usize::from(matches!(what, SpanEvent::End(..)));
            Ok::<_, Infallible>(())
        });
    assert!(visited.is_ok());
    assert_eq!(ended, 100);
}
