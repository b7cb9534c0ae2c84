// SPDX-License-Identifier: Apache-2.0
//! OTLP over gRPC and HTTP/1.1 or HTTP/2, on any of the sockets.

mod body;
mod export;
mod grpc;
mod plain;
mod refusal;

pub use body::{Held, LARGEST};
pub use export::{Counts, Exporter, Format};
pub use refusal::Refusal;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

const MOST_CONNECTIONS: usize = 1_024;
const SLOWEST_HEADER: Duration = Duration::from_secs(10);
/// Exporters of tracers send a batch every 5 s (OTEL_BSP_SCHEDULE_DELAY).
const LONGEST_IDLE: Duration = Duration::from_secs(30);
const KEEP_ALIVE: Duration = Duration::from_secs(20);
const LONGEST_HEADERS: u32 = 16 << 10;
const STREAMS: u32 = 64;
const AFTER_AN_ERROR: Duration = Duration::from_millis(100);

type Body = BoxBody<Bytes, Infallible>;

/// Accepts connections, as many at a time as `MOST_CONNECTIONS`; others wait to be accepted.
pub async fn accept(listener: TcpListener, exporter: Arc<Exporter>, until: Arc<GracefulShutdown>) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let permit = room.clone().acquire_owned().await.expect("it is never closed");
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = serve(stream, exporter.clone(), &until);
                tokio::spawn(async move {
                    connection.await;
                    drop(permit);
                });
            }
            // No descriptor is free, or the client has already gone.
            Err(_) => tokio::time::sleep(AFTER_AN_ERROR).await,
        }
    }
}

fn serve(
    stream: TcpStream,
    exporter: Arc<Exporter>,
    until: &GracefulShutdown,
) -> impl Future<Output = ()> + use<> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(SLOWEST_HEADER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE)
        .max_header_list_size(LONGEST_HEADERS)
        .max_concurrent_streams(STREAMS);
    let requests = Arc::new(Requests::default());
    let seen = requests.clone();
    let service = service_fn(move |request| {
        let (exporter, begun) = (exporter.clone(), seen.begin());
        async move {
            let answer = answer(request, &exporter).await;
            drop(begun);
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    let watched = until.watch(connection);
    async move {
        // A connection that breaks is the client's affair: it sends its request again.
        tokio::select! {
            _ = watched => {}
            () = requests.idle() => {}
        }
    }
}

/// The requests of one connection.
#[derive(Default)]
struct Requests {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// A request, until its answer is ready.
struct Begun(Arc<Requests>);

impl Requests {
    fn begin(self: &Arc<Self>) -> Begun {
        self.begun.fetch_add(1, Relaxed);
        Begun(self.clone())
    }

    /// Ends when no request was under way, and none has begun, for `LONGEST_IDLE`. Otherwise
    /// clients that connect and say nothing would take all connections for ever.
    async fn idle(&self) {
        loop {
            let before = self.begun.load(Relaxed);
            tokio::time::sleep(LONGEST_IDLE).await;
            if self.begun.load(Relaxed) == before && self.ended.load(Relaxed) == before {
                return;
            }
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Relaxed);
    }
}

async fn answer(request: Request<Incoming>, exporter: &Exporter) -> Response<Body> {
    if grpc::is_meant(&request) {
        grpc::answer(request, exporter).await
    } else {
        plain::answer(request, exporter).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{Instant, sleep};

    /// When a connection counts as idle whose only request takes from one time to another, in s.
    fn idle_after(request: Option<(u64, u64)>) -> u64 {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (requests, begin) = (Arc::new(Requests::default()), Instant::now());
            if let Some((from, until)) = request {
                let requests = requests.clone();
                tokio::spawn(async move {
                    sleep(Duration::from_secs(from)).await;
                    let _begun = requests.begin();
                    sleep(Duration::from_secs(until - from)).await;
                });
            }
            requests.idle().await;
            begin.elapsed().as_secs()
        })
    }

    #[test]
    fn a_connection_without_requests_is_closed() {
        assert_eq!(idle_after(None), 30);
        assert_eq!(idle_after(Some((10, 11))), 60);
        assert_eq!(idle_after(Some((10, 95))), 120, "a request that takes long");
    }
}
