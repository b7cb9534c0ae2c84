// SPDX-License-Identifier: Apache-2.0
//! Reads requests. Protobuf is read span by span: a request of 16 MiB can hold millions of empty
//! messages, which would need a gigabyte if all of them were in memory.

use super::message::{AnyValue, ExportRequest, KeyValue, Resource, Span};
use crate::attributes::Values;
use crate::rows::RowBuilder;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost::{DecodeError, Message};
use serde::Deserialize;

const RESOURCE_SPANS: u32 = 1;
const RESOURCE: u32 = 1;
const ATTRIBUTES: u32 = 1;
const SCOPE_SPANS: u32 = 2;
const SPANS: u32 = 2;
const ATTRIBUTES_OF_SPAN: u32 = 9;

/// Reads a request in protobuf; an error is the reason.
pub fn protobuf(bytes: &[u8], builder: &mut RowBuilder<'_>) -> Result<(), String> {
    each(bytes, RESOURCE_SPANS, &mut |of| {
        let mut about = About::new(builder);
        each(of, RESOURCE, &mut |resource| {
            each(resource, ATTRIBUTES, &mut |attribute| {
                about.take(KeyValue::decode(attribute).map_err(text)?);
                Ok(())
            })
        })?;
        builder.resource(about.service, about.host, about.values);
        each(of, SCOPE_SPANS, &mut |scope| {
            each(scope, SPANS, &mut |span| {
                let mut values = builder.values();
                if !values.are_none() {
                    each(span, ATTRIBUTES_OF_SPAN, &mut |attribute| {
                        keep(&mut values, KeyValue::decode(attribute).map_err(text)?);
                        Ok(())
                    })?;
                }
                builder.span(&Span::decode(span).map_err(text)?, &values);
                Ok(())
            })
        })
    })
}

/// Reads a request in JSON.
pub fn json(bytes: &[u8], builder: &mut RowBuilder<'_>) -> Result<(), serde_json::Error> {
    let request: ExportRequest = serde_json::from_slice(bytes)?;
    // Read again, because few want them.
    let mut attributes = if builder.values().are_none() {
        Vec::new()
    } else {
        serde_json::from_slice::<AttributesOfRequest>(bytes)?.of_spans()
    }
    .into_iter();
    for of in request.resource_spans {
        let mut about = About::new(builder);
        for attribute in of.resource.into_iter().flat_map(|resource: Resource| resource.attributes)
        {
            about.take(attribute);
        }
        builder.resource(about.service, about.host, about.values);
        for span in of.scope_spans.iter().flat_map(|scope| &scope.spans) {
            let mut values = builder.values();
            attributes
                .next()
                .into_iter()
                .flatten()
                .for_each(|attribute| keep(&mut values, attribute));
            builder.span(span, &values);
        }
    }
    Ok(())
}

/// What a resource says about its spans.
struct About<'keys> {
    service: Option<String>,
    host: Option<String>,
    values: Values<'keys>,
}

impl<'keys> About<'keys> {
    fn new(builder: &RowBuilder<'keys>) -> Self {
        Self { service: None, host: None, values: builder.values() }
    }

    fn take(&mut self, attribute: KeyValue) {
        let place = match attribute.key.as_str() {
            "service.name" => &mut self.service,
            "host.name" => &mut self.host,
            _ => return keep(&mut self.values, attribute),
        };
        let own = attribute.value.as_ref().and_then(|value| value.string_value.clone());
        *place = own.filter(|text| !text.is_empty());
        keep(&mut self.values, attribute);
    }
}

fn keep(values: &mut Values<'_>, attribute: KeyValue) {
    values.set(&attribute.key, || attribute.value.and_then(AnyValue::text));
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AttributesOfRequest {
    resource_spans: Vec<AttributesOfResource>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AttributesOfResource {
    scope_spans: Vec<AttributesOfScope>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AttributesOfScope {
    spans: Vec<AttributesOfSpan>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AttributesOfSpan {
    attributes: Vec<KeyValue>,
}

impl AttributesOfRequest {
    /// In the order of all spans.
    fn of_spans(self) -> Vec<Vec<KeyValue>> {
        let scopes = self.resource_spans.into_iter().flat_map(|of| of.scope_spans);
        scopes.flat_map(|scope| scope.spans).map(|span| span.attributes).collect()
    }
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
    use crate::attributes::Keys;
    use crate::otlp::message::{ResourceSpans, ScopeSpans};
    use crate::rows::{Names, Rejected, Row};
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Result<(Vec<Row>, Rejected), String> {
        let (mut names, keys) = (Names::default(), Keys::default());
        let mut builder = RowBuilder::new(&mut names, &keys);
        protobuf(bytes, &mut builder)?;
        Ok((builder.rows, builder.rejected))
    }

    fn request(service: &str) -> ExportRequest {
        let text = |text: &str| {
            Some(AnyValue { string_value: Some(text.to_owned()), ..AnyValue::default() })
        };
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
        let mut whole = Vec::new();
        put(&mut whole, RESOURCE_SPANS, &bytes);
        assert_eq!(read(&whole).unwrap().0[0].service.as_deref(), Some("shop"));
    }

    /// A request with an attribute of each type, in protobuf and in JSON.
    fn with_attributes() -> (Vec<u8>, &'static str) {
        let text = r#"{"resourceSpans": [{"resource": {"attributes": [
            {"key": "zone", "value": {"stringValue": "a"}},
            {"key": "tier", "value": {"stringValue": "silver"}}]},
            "scopeSpans": [{"spans": []}, {"spans": [
            {"traceId": "01010101010101010101010101010101", "spanId": "0202020202020202",
             "name": "GET /", "kind": 2, "startTimeUnixNano": "100", "endTimeUnixNano": "130"},
            {"traceId": "01010101010101010101010101010101", "spanId": "0202020202020202",
             "name": "GET /", "kind": 2, "startTimeUnixNano": "100", "endTimeUnixNano": "130",
             "attributes": [
             {"key": "tier", "value": {"intValue": "5"}}, {"key": "tier", "value": {"intValue": 6}},
             {"key": "flag", "value": {"boolValue": true}}, {"key": "list", "value": {"arrayValue": {}}},
             {"key": "share", "value": {"doubleValue": 0.5}}, {"key": "no", "value": null}]}
            ]}]}]}"#;
        let mut request = request("");
        let of = &mut request.resource_spans[0];
        let pair = |key: &str, value| KeyValue { key: key.to_owned(), value: Some(value) };
        let silver = |text: &str| AnyValue { string_value: Some(text.to_owned()), ..none() };
        of.resource = Some(Resource {
            attributes: vec![pair("zone", silver("a")), pair("tier", silver("silver"))],
        });
        let spans = of.scope_spans[0].spans.iter().map(Span::encode_to_vec).zip([
            vec![],
            vec![
                pair("tier", AnyValue { int_value: Some(5), ..none() }),
                pair("tier", AnyValue { int_value: Some(6), ..none() }),
                pair("flag", AnyValue { bool_value: Some(true), ..none() }),
                pair("list", none()),
                pair("share", AnyValue { double_value: Some(0.5), ..none() }),
            ],
        ]);
        let mut scope = Vec::new();
        for (mut span, attributes) in spans {
            for attribute in attributes {
                put(&mut span, ATTRIBUTES_OF_SPAN, &attribute.encode_to_vec());
            }
            put(&mut scope, SPANS, &span);
        }
        of.scope_spans.clear();
        let mut resource = of.encode_to_vec();
        put(&mut resource, SCOPE_SPANS, &scope);
        let mut whole = Vec::new();
        put(&mut whole, RESOURCE_SPANS, &resource);
        (whole, text)
    }

    fn none() -> AnyValue {
        AnyValue::default()
    }

    /// Appends a field that is a message.
    fn put(to: &mut Vec<u8>, field: u32, message: &[u8]) {
        prost::encoding::encode_key(field, WireType::LengthDelimited, to);
        prost::encoding::encode_varint(message.len() as u64, to);
        to.extend(message);
    }

    #[test]
    fn attributes_that_are_wanted_are_kept() {
        let (bytes, text) = with_attributes();
        let wanted = ["tier", "zone", "flag", "share", "list", "no"];
        let own = r#"{"flag":"true","share":"0.5","tier":"5","zone":"a"}"#;
        for (keys, expected) in [
            (&wanted[..], [Some(r#"{"tier":"silver","zone":"a"}"#), Some(own)]),
            (&["flag"], [None, Some(r#"{"flag":"true"}"#)]),
            (&[], [None, None]),
        ] {
            let keys = Keys::of(keys);
            let (mut names, mut others) = (Names::default(), Names::default());
            let mut binary = RowBuilder::new(&mut names, &keys);
            protobuf(&bytes, &mut binary).unwrap();
            let found: Vec<_> = binary.rows.iter().map(|row| row.attributes.as_deref()).collect();
            assert_eq!(found, expected);
            let mut textual = RowBuilder::new(&mut others, &keys);
            json(text.as_bytes(), &mut textual).unwrap();
            assert_eq!(textual.rows, binary.rows);
        }
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
        for field in [SCOPE_SPANS, RESOURCE_SPANS] {
            let mut outer = Vec::new();
            put(&mut outer, field, &bytes);
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
