// SPDX-License-Identifier: Apache-2.0
//! OTLP's JSON: IDs in hexadecimal, numbers of 64 bits as numbers or texts, enumerations as numbers
//! or (of some senders) as names.

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serializer};
use serde_json::Value;

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText<'text> {
    Number(u64),
    Text(#[serde(borrow)] std::borrow::Cow<'text, str>),
}

pub fn hexadecimal<'text, D: Deserializer<'text>>(input: D) -> Result<Vec<u8>, D::Error> {
    let text = std::borrow::Cow::<str>::deserialize(input)?;
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    match digits {
        Some(digits) if digits.len().is_multiple_of(2) => {
            Ok(digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
        }
        _ => Err(Error::invalid_value(Unexpected::Str(&text), &"an ID in hexadecimal")),
    }
}

pub fn unsigned<'text, D: Deserializer<'text>>(input: D) -> Result<u64, D::Error> {
    match NumberOrText::deserialize(input)? {
        NumberOrText::Number(number) => Ok(number),
        NumberOrText::Text(text) => {
            text.parse().map_err(|_| Error::invalid_value(Unexpected::Str(&text), &"a time in ns"))
        }
    }
}

/// None unless it is an integer, as a number or as a text.
pub fn integer<'text, D: Deserializer<'text>>(input: D) -> Result<Option<i64>, D::Error> {
    Ok(match Value::deserialize(input)? {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    })
}

/// None unless it is a number; those that JSON does not have are texts.
pub fn double<'text, D: Deserializer<'text>>(input: D) -> Result<Option<f64>, D::Error> {
    Ok(match Value::deserialize(input)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    })
}

pub fn span_kind<'text, D: Deserializer<'text>>(input: D) -> Result<i32, D::Error> {
    let names = ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"];
    enumeration(input, "SPAN_KIND_", &names)
}

pub fn status_code<'text, D: Deserializer<'text>>(input: D) -> Result<i32, D::Error> {
    enumeration(input, "STATUS_CODE_", &["UNSET", "OK", "ERROR"])
}

fn enumeration<'text, D: Deserializer<'text>>(
    input: D,
    prefix: &str,
    names: &[&str],
) -> Result<i32, D::Error> {
    Ok(match NumberOrText::deserialize(input)? {
        NumberOrText::Number(number) => i32::try_from(number).unwrap_or(0),
        // As in protobuf, a value that is not known yet is 0.
        NumberOrText::Text(text) => text
            .strip_prefix(prefix)
            .and_then(|name| names.iter().position(|known| *known == name))
            .map_or(0, |place| place as i32),
    })
}

pub fn integer_as_text<S: Serializer>(number: &i64, output: S) -> Result<S::Ok, S::Error> {
    output.collect_str(number)
}

#[cfg(test)]
mod tests {
    use crate::otlp::message::ExportRequest;
    use crate::otlp::{ExportResponse, PartialSuccess};

    #[test]
    fn numbers_and_names_of_senders_are_read() {
        let text = r#"{"resourceSpans": [{"resource": {"attributes": [
            {"key": "service.name", "value": {"stringValue": "shop"}},
            {"key": "host.cpus", "value": {"intValue": "2"}}]},
            "scopeSpans": [{"scope": {"name": "x"}, "spans": [
            {"traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "eee19b7ec3c1b174",
             "parentSpanId": "", "name": "a\"b", "kind": 2, "startTimeUnixNano": "17",
             "endTimeUnixNano": 18, "status": {"code": "STATUS_CODE_ERROR"}, "attributes": []},
            {"kind": "SPAN_KIND_CLIENT", "status": {}}, {"kind": "SPAN_KIND_NEW"}]}]}]}"#;
        let request: ExportRequest = serde_json::from_str(text).unwrap();
        let of = &request.resource_spans[0];
        let attributes = &of.resource.as_ref().unwrap().attributes;
        assert_eq!(attributes[0].value.as_ref().unwrap().string_value.as_deref(), Some("shop"));
        assert_eq!(attributes[1].value.as_ref().unwrap().string_value, None);
        let spans = &of.scope_spans[0].spans;
        assert_eq!(spans[0].trace_id[..2], [0x5b, 0x8e]);
        assert_eq!((spans[0].span_id.len(), spans[0].parent_span_id.len()), (8, 0));
        assert_eq!((spans[0].name.as_str(), spans[0].kind), ("a\"b", 2));
        assert_eq!((spans[0].start_time_unix_nano, spans[0].end_time_unix_nano), (17, 18));
        assert_eq!(spans[0].status.as_ref().unwrap().code, 2);
        assert_eq!(spans.iter().map(|span| span.kind).collect::<Vec<_>>(), [2, 3, 0]);
    }

    #[test]
    fn what_is_no_id_and_no_time_is_refused() {
        for (field, value) in [
            ("traceId", r#""abc""#),
            ("spanId", r#""xy""#),
            ("traceId", "5"),
            ("startTimeUnixNano", r#""-5""#),
            ("endTimeUnixNano", "1.5"),
        ] {
            let span = format!(r#"{{"{field}": {value}}}"#);
            let text = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{span}]}}]}}]}}"#);
            assert!(serde_json::from_str::<ExportRequest>(&text).is_err(), "{span}");
        }
    }

    #[test]
    fn an_answer_has_64_bits_as_text() {
        let all = ExportResponse { partial_success: None };
        assert_eq!(serde_json::to_string(&all).unwrap(), "{}");
        let some = PartialSuccess { rejected_spans: 3, error_message: "no end".to_owned() };
        assert_eq!(
            serde_json::to_string(&ExportResponse { partial_success: Some(some) }).unwrap(),
            r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"no end"}}"#
        );
    }
}
