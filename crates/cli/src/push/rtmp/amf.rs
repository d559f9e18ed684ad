//! AMF 0, in which RTMP writes commands: <https://rtmp.veriskope.com/pdf/amf0-file-format-specification.pdf>.

use super::session::RtmpError;

const NUMBER: u8 = 0;
const BOOLEAN: u8 = 1;
const STRING: u8 = 2;
const OBJECT: u8 = 3;
const NULL: u8 = 5;
const UNDEFINED: u8 = 6;
const ECMA_ARRAY: u8 = 8;
const OBJECT_END: u8 = 9;
const STRICT_ARRAY: u8 = 10;
const DATE: u8 = 11;
const LONG_STRING: u8 = 12;

/// Objects in objects; commands of encoders have two levels.
const MAX_DEPTH: usize = 4;

/// A value, as far as commands need it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(f64),
    Text(String),
    Object(Vec<(String, Self)>),
    List(Vec<Self>),
    /// What no command needs the content of.
    Null,
}

impl Value {
    /// A property of an object.
    pub(super) fn property(&self, property: &str) -> Option<&Self> {
        let Self::Object(properties) = self else {
            return None;
        };
        let found = properties.iter().find(|(name, _)| name == property);
        found.map(|(_, value)| value)
    }

    /// The text of a property of an object.
    pub(super) fn text(&self, property: &str) -> Option<&str> {
        self.property(property)?.as_text()
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) const fn as_number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }
}

/// Reads the values of a message. Each takes an octet at least, so that they are no more than the message is long.
///
/// # Errors
/// If it is cut off, or has values that no command has.
pub(super) fn read(mut octets: &[u8]) -> Result<Vec<Value>, RtmpError> {
    let mut values = Vec::new();
    while !octets.is_empty() {
        values.push(value(&mut octets, 0)?);
    }
    Ok(values)
}

fn value(octets: &mut &[u8], depth: usize) -> Result<Value, RtmpError> {
    if depth > MAX_DEPTH {
        return Err(RtmpError::Command);
    }
    let [marker] = take(octets)?;
    Ok(match marker {
        NUMBER => Value::Number(f64::from_be_bytes(take(octets)?)),
        BOOLEAN => {
            let [_] = take(octets)?;
            Value::Null
        }
        STRING => Value::Text(text(octets)?),
        LONG_STRING => {
            let len = u32::from_be_bytes(take(octets)?) as usize;
            Value::Text(text_of(octets, len)?)
        }
        OBJECT => Value::Object(properties(octets, depth)?),
        ECMA_ARRAY => {
            let [_, _, _, _] = take(octets)?;
            Value::Object(properties(octets, depth)?)
        }
        STRICT_ARRAY => {
            let count = u32::from_be_bytes(take(octets)?);
            let mut values = Vec::new();
            for _ in 0..count {
                values.push(value(octets, depth + 1)?);
            }
            Value::List(values)
        }
        DATE => {
            let _: [u8; 10] = take(octets)?;
            Value::Null
        }
        NULL | UNDEFINED => Value::Null,
        _ => return Err(RtmpError::Command),
    })
}

fn properties(octets: &mut &[u8], depth: usize) -> Result<Vec<(String, Value)>, RtmpError> {
    let mut properties = Vec::new();
    loop {
        let name = text(octets)?;
        if name.is_empty() && octets.first() == Some(&OBJECT_END) {
            let [_] = take(octets)?;
            return Ok(properties);
        }
        properties.push((name, value(octets, depth + 1)?));
    }
}

fn text(octets: &mut &[u8]) -> Result<String, RtmpError> {
    let len = u16::from_be_bytes(take(octets)?);
    text_of(octets, len.into())
}

fn text_of(octets: &mut &[u8], len: usize) -> Result<String, RtmpError> {
    let (text, rest) = octets.split_at_checked(len).ok_or(RtmpError::Command)?;
    *octets = rest;
    Ok(String::from_utf8_lossy(text).into_owned())
}

fn take<const N: usize>(octets: &mut &[u8]) -> Result<[u8; N], RtmpError> {
    let (taken, rest) = octets.split_first_chunk().ok_or(RtmpError::Command)?;
    *octets = rest;
    Ok(*taken)
}

/// Writes values one after another. Texts are ours, and shorter than 64 KiB.
pub(super) fn write(values: &[Value]) -> Vec<u8> {
    let mut octets = Vec::new();
    values.iter().for_each(|it| put(&mut octets, it));
    octets
}

fn put(octets: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Number(number) => {
            octets.push(NUMBER);
            octets.extend(number.to_be_bytes());
        }
        Value::Text(text) => {
            octets.push(STRING);
            put_text(octets, text);
        }
        Value::Object(properties) => {
            octets.push(OBJECT);
            for (name, value) in properties {
                put_text(octets, name);
                put(octets, value);
            }
            octets.extend([0, 0, OBJECT_END]);
        }
        Value::List(values) => {
            octets.push(STRICT_ARRAY);
            let count = u32::try_from(values.len()).unwrap_or(0);
            octets.extend(count.to_be_bytes());
            values.iter().for_each(|it| put(octets, it));
        }
        Value::Null => octets.push(NULL),
    }
}

fn put_text(octets: &mut Vec<u8>, text: &str) {
    let len = u16::try_from(text.len()).unwrap_or(u16::MAX);
    octets.extend(len.to_be_bytes());
    octets.extend(text.as_bytes().iter().take(len.into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(properties: &[(&str, &str)]) -> Value {
        let property = |&(name, text): &(&str, &str)| (name.to_owned(), Value::Text(text.into()));
        Value::Object(properties.iter().map(property).collect())
    }

    #[test]
    fn what_is_written_is_read() {
        let values = [
            Value::Text("connect".to_owned()),
            Value::Number(1.0),
            object(&[("app", "live"), ("tcUrl", "rtmp://host/live")]),
            Value::Null,
            Value::List(vec![Value::Text("av01".to_owned()), Value::Number(4.0)]),
        ];
        let read = read(&write(&values)).unwrap();
        assert_eq!(read, values);
        assert_eq!(read[2].text("app"), Some("live"));
        assert_eq!(read[2].text("none"), None);
    }

    /// By hand: true; an ECMA array of one; a strict array of null and undefined; a date; a long string.
    #[test]
    fn values_that_no_command_needs_are_passed_over() {
        let mut octets = vec![1, 1];
        octets.extend([8, 0, 0, 0, 1, 0, 1, b'a', 5, 0, 0, 9]);
        octets.extend([10, 0, 0, 0, 2, 5, 6]);
        octets.extend([11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        octets.extend([12, 0, 0, 0, 1, b'x']);
        let array = Value::Object(vec![("a".to_owned(), Value::Null)]);
        let text = Value::Text("x".to_owned());
        let list = Value::List(vec![Value::Null; 2]);
        let expected = [Value::Null, array, list, Value::Null, text];
        assert_eq!(read(&octets).unwrap(), expected);
    }

    /// Cut off anywhere; a string and an array that are longer than the message; objects in objects without end; no such marker.
    #[test]
    fn what_is_broken_is_refused() {
        let whole = write(&[object(&[("app", "live")]), Value::Number(1.0)]);
        let cuts = (1..whole.len()).filter(|&len| read(&whole[..len]).is_ok());
        // After the object, which is whole.
        assert_eq!(cuts.collect::<Vec<_>>(), [whole.len() - 9]);
        let nested: Vec<u8> = [3, 0, 1, b'a'].repeat(5_000);
        for broken in [
            &[12, 255, 255, 255, 255][..],
            &[10, 255, 255, 255, 255, 5],
            &nested,
            &[13],
            &[255],
        ] {
            assert_eq!(read(broken), Err(RtmpError::Command));
        }
    }
}
