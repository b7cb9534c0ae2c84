// SPDX-License-Identifier: Apache-2.0
//! calls tare|tracing|fastrace [FOLDER]: a timed loop. For each line "N" on
//! stdin it logs N events and prints the nanoseconds that took.

use fastrace::collector::{Config, Reporter, SpanRecord};
use fastrace::prelude::{LocalSpan, Span, SpanContext};
use std::env::args;
use std::fs::File;
use std::io::{BufWriter, Write, stdin};
use std::time::Instant;
use tare_log::Channel;

/// Of a trace: those who measure fastrace take 100 to 1000.
const SPANS: usize = 1000;

fn turns(mut log: impl FnMut(u64)) {
    for line in stdin().lines().map_while(Result::ok) {
        let Ok(wanted) = line.trim().parse() else { return };
        let begin = Instant::now();
        log(wanted);
        println!("{}", begin.elapsed().as_nanos());
    }
}

/// Writes a line a span, as a reporter of somebody's own would.
struct Lines(BufWriter<File>);

impl Reporter for Lines {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        for span in spans {
            let _ =
                writeln!(self.0, "{} {} {}", span.name, span.begin_time_unix_ns, span.duration_ns);
        }
        let _ = self.0.flush();
    }
}

fn main() {
    let [kind, folder] = [1, 2].map(|place| args().nth(place).unwrap_or_default());
    match kind.as_str() {
        "tare" => {
            let channel = Channel::open("calls");
            turns(|wanted| (0..wanted).for_each(|number| channel.log(number as i64)));
        }
        "tracing" => {
            let file = tracing_appender::rolling::never(folder, "tracing.log");
            let (writer, _guard) = tracing_appender::non_blocking(file);
            tracing_subscriber::fmt().with_ansi(false).with_writer(writer).init();
            turns(|wanted| (0..wanted).for_each(|number| tracing::info!(number)));
        }
        "fastrace" => {
            let file = File::create(format!("{folder}/fastrace.log")).expect("a file in FOLDER");
            fastrace::set_reporter(Lines(BufWriter::new(file)), Config::default());
            turns(|wanted| {
                for first in (0..wanted).step_by(SPANS) {
                    let root = Span::root("turn", SpanContext::random());
                    let _parent = root.set_local_parent();
                    let spans = SPANS.min((wanted - first) as usize);
                    (0..spans).for_each(|_| drop(LocalSpan::enter_with_local_parent("call")));
                }
            });
            fastrace::flush();
        }
        _ => std::process::exit(2),
    }
}
