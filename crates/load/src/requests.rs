// SPDX-License-Identifier: Apache-2.0

/// Bytes that are sent by one call at most, unless a single request has more.
const MOST: usize = 64 * 1024;

/// The bytes of a request, as often in a row as a connection may send it by one call.
#[derive(Debug, Clone)]
pub struct Requests {
    bytes: Vec<u8>,
    length: usize,
}

impl Requests {
    /// `pipeline` is the most requests that a connection has under way.
    pub fn new(request: &[u8], pipeline: usize) -> Self {
        let length = request.len();
        let most = (MOST / length.max(1)).max(1);
        Self { bytes: request.repeat(pipeline.min(most)), length }
    }

    /// What can be sent next of so many requests, of the first of which `sent` bytes are gone.
    #[inline]
    pub fn next(&self, requests: usize, sent: usize) -> &[u8] {
        let end = requests.saturating_mul(self.length).min(self.bytes.len());
        self.bytes.get(sent..end).unwrap_or_default()
    }

    /// The requests that are completed by so many bytes, and the bytes of the next one.
    #[inline]
    pub fn split(&self, bytes: usize) -> (usize, usize) {
        match bytes < self.length {
            true => (0, bytes),
            false => (bytes / self.length, bytes % self.length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_sent_together_up_to_what_one_call_takes() {
        let requests = Requests::new(b"abc", 4);
        assert_eq!(requests.next(0, 0), b"");
        assert_eq!(requests.next(1, 0), b"abc");
        assert_eq!(requests.next(3, 2), b"cabcabc");
        assert_eq!(requests.next(9, 0), b"abcabcabcabc");
        let large = Requests::new(&[b'x'; MOST + 1], 4);
        assert_eq!(large.next(4, 1).len(), MOST);
    }

    #[test]
    fn bytes_are_split_into_requests_and_a_rest() {
        let requests = Requests::new(b"abc", 4);
        let split = [0, 2, 3, 7].map(|bytes| requests.split(bytes));
        assert_eq!(split, [(0, 0), (0, 2), (1, 0), (2, 1)]);
    }
}
