// SPDX-License-Identifier: Apache-2.0
//! The wire format of protocol buffers, as far as traces need it.

/// A message that is being written.
#[derive(Default)]
pub struct Message(Vec<u8>);

const VARINT: u64 = 0;
const LENGTH: u64 = 2;

impl Message {
    pub fn number(&mut self, field: u64, value: u64) -> &mut Self {
        self.varint(field << 3 | VARINT);
        self.varint(value);
        self
    }

    /// A field of type int64.
    pub fn signed(&mut self, field: u64, value: i64) -> &mut Self {
        self.number(field, value as u64)
    }

    pub fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.varint(field << 3 | LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    pub fn text(&mut self, field: u64, text: &str) -> &mut Self {
        self.bytes(field, text.as_bytes())
    }

    pub fn message(&mut self, field: u64, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes(field, &inner.0)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of protobuf.dev/programming-guides/encoding.
    #[test]
    fn bytes_are_those_of_the_specification() {
        let mut message = Message::default();
        message.number(1, 150).text(2, "testing").message(3, |inner| {
            inner.number(1, 150);
        });
        let expected = b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01";
        assert_eq!(message.as_bytes(), expected);
        let mut negative = Message::default();
        negative.signed(1, -2);
        assert_eq!(negative.as_bytes(), b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    }
}
