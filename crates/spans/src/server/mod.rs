// SPDX-License-Identifier: Apache-2.0
//! OTLP over gRPC and HTTP/1.1 or HTTP/2, on any of the sockets.

mod body;
mod export;
mod grpc;
mod plain;
mod refusal;

pub use export::{Counts, Exporter};

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
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

const MOST_CONNECTIONS: usize = 1_024;
const SLOWEST_HEADER: Duration = Duration::from_secs(10);
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
    let service = service_fn(move |request| {
        let exporter = exporter.clone();
        async move { Ok::<_, Infallible>(answer(request, &exporter).await) }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    let watched = until.watch(connection);
    // A connection that breaks is the client's affair: it sends its request again.
    async move { drop(watched.await) }
}

async fn answer(request: Request<Incoming>, exporter: &Exporter) -> Response<Body> {
    if grpc::is_meant(&request) {
        grpc::answer(request, exporter).await
    } else {
        plain::answer(request, exporter).await
    }
}
