// SPDX-License-Identifier: Apache-2.0
//! `tare spans receive`.

use crate::arguments::Receive;
use crate::output::Output;
use crate::server::{self, Counts, Exporter};
use hyper_util::server::graceful::GracefulShutdown;
use serde_json::json;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tare_command::{Failure, ResultExt, Signals, say};
use tare_tables::Vacant;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

/// How long requests may take that are under way at the end.
const GRACE: Duration = Duration::from_secs(2);

pub fn run(wanted: &Receive) -> Result<ExitCode, Failure> {
    let signals = Signals::take(&[libc::SIGINT, libc::SIGTERM]).or_failed("signals")?;
    let listeners = [("--grpc", wanted.grpc), ("--http", wanted.http)].map(listen);
    let [grpc, http] = listeners;
    let (grpc, http) = (grpc?, http?);
    let name = wanted.out.display().to_string();
    let file = Vacant::open(&wanted.out).or_input(&name)?;
    let (output, written, failed) = Output::begin(file).or_failed(&name)?;
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_io().enable_time().build().or_failed("tokio")?;
    say(format_args!(
        "receiving OTLP on {} (gRPC) and {} (HTTP), writing {name}; stop with Ctrl-C",
        address(&grpc)?,
        address(&http)?,
    ));
    let exporter = Arc::new(Exporter::new(output));
    runtime.block_on(serve([grpc, http], &exporter, &signals, failed))?;
    drop(runtime);
    let counts = exporter.counts();
    // The last sender: the thread writes what is queued, and ends.
    drop(exporter);
    let rows = written
        .finish()
        .or_failed(format_args!("{name}: the newest spans of {} were not written", counts.spans))?;
    debug_assert_eq!(rows, counts.spans);
    tare_command::print(summary(&counts, &name, wanted.json))?;
    Ok(ExitCode::SUCCESS)
}

fn listen((option, address): (&str, SocketAddr)) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind(address);
    let listener = listener.or_failed(format_args!("{option} {address}: choose another port"))?;
    listener.set_nonblocking(true).or_failed(option)?;
    Ok(listener)
}

fn address(listener: &TcpListener) -> Result<SocketAddr, Failure> {
    listener.local_addr().or_failed("a socket")
}

/// Until a signal, or until nothing can be written any more.
async fn serve(
    listeners: [TcpListener; 2],
    exporter: &Arc<Exporter>,
    signals: &Signals,
    failed: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    let connections = Arc::new(GracefulShutdown::new());
    let mut accepting = Vec::new();
    for listener in listeners {
        let listener = tokio::net::TcpListener::from_std(listener).or_failed("a socket")?;
        let accept = server::accept(listener, exporter.clone(), connections.clone());
        accepting.push(tokio::spawn(accept));
    }
    // SAFETY: the descriptor stays open as long as `signals`, which outlives this function.
    let signals = unsafe { AsyncFd::register_with_interest(signals.as_fd(), Interest::READABLE) };
    let signals = signals.or_failed("signals")?;
    tokio::select! {
        _ = signals.readable() => {}
        _ = failed => {}
    }
    for one in &accepting {
        one.abort();
    }
    for one in accepting {
        let _ = one.await;
    }
    // Requests that have begun are answered.
    if let Ok(connections) = Arc::try_unwrap(connections).map_err(|_| ()) {
        let _ = tokio::time::timeout(GRACE, connections.shutdown()).await;
    }
    Ok(())
}

fn summary(counts: &Counts, name: &str, as_json: bool) -> String {
    let Counts { requests, refused_requests, spans, rejected } = counts;
    if as_json {
        let (bad_ids, bad_times) = (rejected.bad_ids, rejected.bad_times);
        let many = rejected.too_many_names;
        let told = json!({
            "spans": spans, "requests": requests, "refused_requests": refused_requests,
            "rejected": {"bad_ids": bad_ids, "bad_times": bad_times, "too_many_names": many},
        });
        return format!("{told}\n");
    }
    let mut text = format!("{spans} spans of {requests} requests in {name}\n");
    if rejected.total() > 0 {
        text += &format!("rejected spans: {}\n", rejected.reasons());
    }
    if *refused_requests > 0 {
        text += &format!("refused requests: {refused_requests}\n");
    }
    text
}
