// SPDX-License-Identifier: Apache-2.0
//! Bodies of requests, within limits of size, time, and memory for all requests together.

use super::refusal::Refusal;
use flate2::read::MultiGzDecoder;
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes};
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub const LARGEST: usize = 16 << 20;
const SLOWEST: Duration = Duration::from_secs(10);
/// Of all requests together, in KiB.
const MEMORY: usize = 256 << 10;
/// How much of a body that is refused is received.
const DISCARDED: usize = 64 << 20;
const KIBIBYTE: usize = 1 << 10;
const PART: usize = 64 << 10;

/// Memory for bodies.
pub struct Budget(Arc<Semaphore>);

/// Bytes, for which memory is reserved.
pub struct Held {
    pub bytes: Vec<u8>,
    reserved: Option<OwnedSemaphorePermit>,
}

impl From<Vec<u8>> for Held {
    /// Bytes outside the budget.
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, reserved: None }
    }
}

impl Budget {
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(MEMORY)))
    }

    /// Reads a whole body.
    pub async fn read<B>(&self, body: B) -> Result<Held, Refusal>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: std::fmt::Display,
    {
        tokio::time::timeout(SLOWEST, self.read_parts(body)).await.unwrap_or(Err(Refusal::Slow))
    }

    async fn read_parts<B>(&self, mut body: B) -> Result<Held, Refusal>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: std::fmt::Display,
    {
        let mut held = Held { bytes: Vec::new(), reserved: None };
        let mut found = Ok(());
        let mut length = 0;
        if body.size_hint().lower() > LARGEST as u64 {
            found = Err(Refusal::TooLarge);
        }
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Refusal::Malformed(error.to_string()))?;
            let Some(part) = frame.data_ref() else { continue };
            length += part.len();
            if found.is_ok() {
                found = self.append(&mut held, part);
            }
            // A client that is still sending would not read the answer.
            if found.is_err() {
                held = Held { bytes: Vec::new(), reserved: None };
                if length > DISCARDED {
                    break;
                }
            }
        }
        found.map(|()| held)
    }

    /// Unpacks gzip.
    pub fn unpack(&self, packed: &Held) -> Result<Held, Refusal> {
        let mut decoder = MultiGzDecoder::new(&packed.bytes[..]);
        let mut held = Held { bytes: Vec::new(), reserved: None };
        let mut part = vec![0; PART];
        loop {
            match decoder.read(&mut part) {
                Ok(0) => return Ok(held),
                Ok(length) => self.append(&mut held, &part[..length])?,
                Err(error) => return Err(Refusal::Malformed(format!("gzip: {error}"))),
            }
        }
    }

    fn append(&self, held: &mut Held, part: &[u8]) -> Result<(), Refusal> {
        if held.bytes.len() + part.len() > LARGEST {
            return Err(Refusal::TooLarge);
        }
        // A vector that grows has up to twice the memory that it needs.
        let wanted = (2 * (held.bytes.len() + part.len())).div_ceil(KIBIBYTE);
        let more = wanted - held.reserved.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let permit = self.0.clone().try_acquire_many_owned(more as u32);
        let permit = permit.map_err(|_| Refusal::Busy)?;
        match &mut held.reserved {
            Some(reserved) => reserved.merge(permit),
            None => held.reserved = Some(permit),
        }
        held.bytes.extend_from_slice(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use http_body_util::Full;
    use std::io::Write;

    fn packed(bytes: &[u8]) -> Held {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        Held { bytes: encoder.finish().unwrap(), reserved: None }
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(future)
    }

    #[test]
    fn a_body_is_read_and_unpacked() {
        let budget = Budget::new();
        let body = packed(&[7; 100_000]);
        let held = block_on(budget.read(Full::new(Bytes::from(body.bytes)))).unwrap();
        assert_eq!(budget.unpack(&held).unwrap().bytes, [7; 100_000]);
        drop(held);
        assert_eq!(budget.0.available_permits(), MEMORY);
    }

    #[test]
    fn a_bomb_is_refused() {
        let bomb = packed(&vec![0; LARGEST + 1]);
        assert!(bomb.bytes.len() < 100_000);
        assert_eq!(Budget::new().unpack(&bomb).err(), Some(Refusal::TooLarge));
    }

    #[test]
    fn garbage_is_no_gzip() {
        let held = Held { bytes: b"garbage".to_vec(), reserved: None };
        assert!(matches!(Budget::new().unpack(&held).err(), Some(Refusal::Malformed(_))));
    }

    #[test]
    fn a_large_body_is_refused_before_it_arrives() {
        let body = Full::new(Bytes::from(vec![0; LARGEST + 1]));
        assert_eq!(block_on(Budget::new().read(body)).err(), Some(Refusal::TooLarge));
    }

    #[test]
    fn memory_of_all_bodies_is_limited() {
        let budget = Budget::new();
        let mut held = Vec::new();
        let refused = loop {
            let body = Full::new(Bytes::from(vec![0; LARGEST]));
            match block_on(budget.read(body)) {
                Ok(bytes) => held.push(bytes),
                Err(refusal) => break refusal,
            }
        };
        assert_eq!((held.len(), refused), (8, Refusal::Busy));
        held.pop();
        assert!(block_on(budget.read(Full::new(Bytes::from(vec![0; LARGEST])))).is_ok());
    }

    struct Silent;

    impl Body for Silent {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
            std::task::Poll::Pending
        }
    }

    #[test]
    fn a_sender_that_stops_is_refused() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        let read = runtime.block_on(async { Budget::new().read(Silent).await });
        assert_eq!(read.err(), Some(Refusal::Slow));
    }
}
