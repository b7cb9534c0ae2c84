// SPDX-License-Identifier: Apache-2.0
//! Reads requests. Protobuf is read span by span: a request of 16 MiB can hold millions of empty
//! messages, which would need a gigabyte if all of them were in memory.

use super::message::{ExportRequest, KeyValue, Resource, Span};
use crate::rows::RowBuilder;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost::{DecodeError, Message};

const RESOURCE_SPANS: u32 = 1;
const RESOURCE: u32 = 1;
const ATTRIBUTES: u32 = 1;
const SCOPE_SPANS: u32 = 2;
const SPANS: u32 = 2;

/// Reads a request in protobuf; an error is the reason.
pub fn protobuf(bytes: &[u8], builder: &mut RowBuilder<'_>) -> Result<(), String> {
    each(bytes, RESOURCE_SPANS, &mut |of| {
        let (mut service, mut host) = (None, None);
        each(of, RESOURCE, &mut |resource| {
            each(resource, ATTRIBUTES, &mut |attribute| {
                use_attribute(KeyValue::decode(attribute).map_err(text)?, &mut service, &mut host);
                Ok(())
            })
        })?;
        builder.resource(service, host);
        each(of, SCOPE_SPANS, &mut |scope| {
            each(scope, SPANS, &mut |span| {
                builder.span(&Span::decode(span).map_err(text)?);
                Ok(())
            })
        })
    })
}

/// Reads a request in JSON.
pub fn json(bytes: &[u8], builder: &mut RowBuilder<'_>) -> Result<(), serde_json::Error> {
    let request: ExportRequest = serde_json::from_slice(bytes)?;
    for of in request.resource_spans {
        let (mut service, mut host) = (None, None);
        for attribute in of.resource.into_iter().flat_map(|resource: Resource| resource.attributes)
        {
            use_attribute(attribute, &mut service, &mut host);
        }
        builder.resource(service, host);
        for span in of.scope_spans.iter().flat_map(|scope| &scope.spans) {
            builder.span(span);
        }
    }
    Ok(())
}

fn use_attribute(attribute: KeyValue, service: &mut Option<String>, host: &mut Option<String>) {
    let place = match attribute.key.as_str() {
        "service.name" => service,
        "host.name" => host,
        _ => return,
    };
    *place = attribute.value.and_then(|value| value.string_value).filter(|text| !text.is_empty());
}

/// Calls `use_it` with each message that a field of a message contains.
fn each(
    mut message: &[u8],
    field: u32,
    use_it: &mut dyn FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), String> {
    while !message.is_empty() {
        let (tag, wire_type) = decode_key(&mut message).map_err(text)?;
        if tag == field && wire_type == WireType::LengthDelimited {
            let length =
                usize::try_from(decode_varint(&mut message).map_err(text)?).unwrap_or(usize::MAX);
            let Some((inner, rest)) = message.split_at_checked(length) else {
                return Err("it ends within a message".to_owned());
            };
            use_it(inner)?;
            message = rest;
        } else {
            skip_field(wire_type, tag, &mut message, DecodeContext::default()).map_err(text)?;
        }
    }
    Ok(())
}

fn text(error: DecodeError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::message::{AnyValue, ResourceSpans, ScopeSpans};
    use crate::rows::{Names, Rejected, Row};
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Result<(Vec<Row>, Rejected), String> {
        let mut names = Names::default();
        let mut builder = RowBuilder::new(&mut names);
        protobuf(bytes, &mut builder)?;
        Ok((builder.rows, builder.rejected))
    }

    fn request(service: &str) -> ExportRequest {
        let text = |text: &str| Some(AnyValue { string_value: Some(text.to_owned()) });
        let attribute = |key: &str, value| KeyValue { key: key.to_owned(), value };
        let span = Span {
            trace_id: vec![1; 16],
            span_id: vec![2; 8],
            parent_span_id: vec![],
            name: "GET /".to_owned(),
            kind: 2,
            start_time_unix_nano: 100,
            end_time_unix_nano: 130,
            status: None,
        };
        let attributes = vec![
            attribute("service.name", text(service)),
            attribute("other", None),
            attribute("host.name", text("one")),
        ];
        ExportRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(Resource { attributes }),
                scope_spans: vec![ScopeSpans { spans: vec![span.clone(), span] }],
            }],
        }
    }

    #[test]
    fn spans_of_a_resource_have_its_names() {
        let mut both = request("shop");
        both.resource_spans.extend(request("bank").resource_spans);
        let (rows, _) = read(&both.encode_to_vec()).unwrap();
        let services: Vec<_> = rows.iter().map(|row| row.service.as_deref().unwrap()).collect();
        assert_eq!(services, ["shop", "shop", "bank", "bank"]);
        assert!(rows.iter().all(|row| row.host.as_deref() == Some("one")));
    }

    #[test]
    fn a_resource_can_follow_its_spans() {
        let of = request("shop").resource_spans.remove(0);
        let mut bytes = ResourceSpans { resource: None, ..of.clone() }.encode_to_vec();
        bytes.extend(ResourceSpans { scope_spans: vec![], ..of }.encode_to_vec());
        let mut whole = vec![0x0a];
        prost::encoding::encode_varint(bytes.len() as u64, &mut whole);
        whole.extend(bytes);
        assert_eq!(read(&whole).unwrap().0[0].service.as_deref(), Some("shop"));
    }

    #[test]
    fn a_request_that_is_cut_is_refused() {
        let whole = request("shop").encode_to_vec();
        for length in 1..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn millions_of_empty_messages_need_no_memory() {
        // 0x12 is the field `spans`, and 0 the length of a span.
        let spans = [0x12_u8, 0].repeat(1 << 20);
        let mut bytes = spans;
        for field in [0x12, 0x0a] {
            let mut outer = vec![field];
            prost::encoding::encode_varint(bytes.len() as u64, &mut outer);
            outer.extend(bytes);
            bytes = outer;
        }
        let (rows, rejected) = read(&bytes).unwrap();
        assert_eq!((rows.capacity(), rejected.bad_ids), (0, 1 << 20));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }

        #[test]
        fn both_ways_to_decode_agree(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut whole = request("shop").encode_to_vec();
            whole.extend(&bytes);
            if let Ok((rows, _)) = read(&whole) && let Ok(decoded) = ExportRequest::decode(&whole[..]) {
                let spans = decoded.resource_spans.iter().flat_map(|of| &of.scope_spans);
                prop_assert!(spans.map(|of| of.spans.len()).sum::<usize>() >= rows.len());
            }
        }
    }
}
