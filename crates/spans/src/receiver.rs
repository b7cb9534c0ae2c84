// SPDX-License-Identifier: Apache-2.0
//! A receiver on two sockets, from its start to the last row in its file.

use crate::attributes::Keys;
use crate::output::{Output, Written};
use crate::server::{self, Counts, Exporter};
use hyper_util::server::graceful::GracefulShutdown;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tare_command::{Failure, ResultExt, Signals, open_in_place};
use tare_tables::Vacant;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

/// How long requests may take that are under way at the end.
const GRACE: Duration = Duration::from_secs(2);
const TURN: Duration = Duration::from_secs(1);

pub struct Receiver {
    runtime: Runtime,
    listeners: Vec<TcpListener>,
    exporter: Arc<Exporter>,
    written: Written,
    failed: oneshot::Receiver<()>,
    name: String,
}

impl Receiver {
    /// `sockets` have the option that named them.
    pub fn new(
        sockets: &[(&str, SocketAddr)],
        out: &Path,
        attributes: Keys,
    ) -> Result<Self, Failure> {
        let listeners = sockets.iter().map(listen).collect::<Result<_, _>>()?;
        let name = out.display().to_string();
        let file = open_in_place(out).and_then(Vacant::of).or_input(&name)?;
        let (output, written, failed) = Output::begin(file, &attributes).or_failed(&name)?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        Ok(Self {
            runtime: runtime.or_failed("tokio")?,
            listeners,
            exporter: Arc::new(Exporter::new(output, attributes)),
            written,
            failed,
            name,
        })
    }

    /// The address of each socket.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        self.listeners.iter().map(|listener| listener.local_addr().or_failed("a socket")).collect()
    }

    /// Receives until `is_done`, which is asked after each signal, or until nothing can be written
    /// any more; calls `turn` every second. Returns what was received, all of it in the file.
    pub fn receive(
        self,
        signals: &Signals,
        mut is_done: impl FnMut() -> Result<bool, Failure>,
        mut turn: impl FnMut(&Counts),
    ) -> Result<Counts, Failure> {
        let Self { runtime, listeners, exporter, written, failed, name } = self;
        runtime.block_on(async {
            let connections = Arc::new(GracefulShutdown::new());
            let mut accepting = Vec::new();
            for listener in listeners {
                let listener = tokio::net::TcpListener::from_std(listener).or_failed("a socket")?;
                let accept = server::accept(listener, exporter.clone(), connections.clone());
                accepting.push(tokio::spawn(accept));
            }
            until(signals, failed, &mut is_done, || turn(&exporter.counts())).await?;
            for task in &accepting {
                task.abort();
            }
            for task in accepting {
                let _ = task.await;
            }
            // Requests that have begun are answered.
            if let Some(connections) = Arc::into_inner(connections) {
                let _ = tokio::time::timeout(GRACE, connections.shutdown()).await;
            }
            Ok(())
        })?;
        drop(runtime);
        let counts = exporter.counts();
        // The last sender: the thread writes what is queued, and ends.
        drop(exporter);
        written.finish().or_failed(format_args!(
            "{name}: the newest of {} spans were not written",
            counts.spans
        ))?;
        Ok(counts)
    }
}

async fn until(
    signals: &Signals,
    mut failed: oneshot::Receiver<()>,
    is_done: &mut impl FnMut() -> Result<bool, Failure>,
    mut turn: impl FnMut(),
) -> Result<(), Failure> {
    // SAFETY: the descriptor stays open as long as `signals`, which outlives this function.
    let arriving = unsafe { AsyncFd::register_with_interest(signals.as_fd(), Interest::READABLE) };
    let arriving = arriving.or_failed("signals")?;
    let mut clock = tokio::time::interval(TURN);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            ready = arriving.readable() => {
                if is_done()? {
                    return Ok(());
                }
                ready.or_failed("signals")?.clear_ready();
            }
            _ = &mut failed => return Ok(()),
            _ = clock.tick() => turn(),
        }
    }
}

fn listen((option, address): &(&str, SocketAddr)) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind(address);
    let listener = listener.or_failed(format_args!("{option} {address}: choose another port"))?;
    listener.set_nonblocking(true).or_failed(option)?;
    Ok(listener)
}
