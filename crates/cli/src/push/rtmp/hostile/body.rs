//! RTMP of any octets: connections, chunks and AMF. Body of a fuzz target (see `fuzz/`), run here on damaged seeds.

use super::amf::{self, Value};
use super::chunks::{self, ChunkReader, MAX_MESSAGE, Message};
use super::session::{RtmpError, Session, SessionEvent};

/// Octets received at once where a connection arrives in parts.
const PART: usize = 7;
/// Kind of the messages that are written, and size of their chunks.
const KIND: u8 = 9;
const CHUNK_SIZE: u32 = 128;

/// The first octet states what the others are.
pub(crate) fn rtmp(octets: &[u8]) {
    let Some((what, rest)) = octets.split_first() else {
        return;
    };
    match what % 4 {
        0 => connection(rest.chunks(rest.len().max(1))),
        1 => connection(rest.chunks(PART)),
        2 => messages(rest),
        _ => values(rest),
    }
}

/// A connection that is admitted as soon as its pusher requests a name. Events hold no more octets than were received.
fn connection<'a>(parts: impl Iterator<Item = &'a [u8]>) {
    let mut session = Session::new();
    let (mut received, mut answered, mut media) = (0, 0, 0);
    let mut is_admitted = false;
    for part in parts {
        received += part.len();
        let outcome = session.receive(part);
        while let Some(event) = session.next_event() {
            match event {
                SessionEvent::Publish { stream, .. } => {
                    assert!(!is_admitted, "a name is requested once");
                    assert!(stream.len() <= 3 * received);
                    is_admitted = true;
                    session.accept();
                }
                SessionEvent::Media { kind, payload, .. } => {
                    assert!(is_admitted && matches!(kind, 8 | 9));
                    media += payload.len();
                }
                SessionEvent::Metadata { .. } => assert!(is_admitted),
                SessionEvent::Over => {}
            }
        }
        answered += session.take_output().len();
        assert!(media <= received);
        // A handshake doubles, and the answer to a command of some octets has half a kilobyte.
        assert!(answered <= 4_096 + 64 * received);
        if let Err(error) = outcome {
            session.refuse(&error.to_string());
            return assert!(!session.take_output().is_empty());
        }
    }
}

/// Chunks read alike whole and in parts, and what was read is read again once written.
fn messages(octets: &[u8]) {
    let whole = read(CHUNK_SIZE, [octets]);
    assert_eq!(whole, read(CHUNK_SIZE, octets.chunks(PART)));
    let (read_first, error) = whole;
    if let Some(error) = error {
        assert!(!error.to_string().is_empty());
    }
    let mut written = Vec::new();
    for message in &read_first {
        assert!(message.payload.len() <= MAX_MESSAGE);
        chunks::put(&mut written, KIND, 1, &message.payload, CHUNK_SIZE as usize);
    }
    let (again, error) = read(CHUNK_SIZE, [&written[..]]);
    assert_eq!(error, None);
    assert_eq!(again.len(), read_first.len());
    for (again, message) in again.iter().zip(&read_first) {
        assert_eq!((again.kind, &again.payload), (KIND, &message.payload));
    }
}

fn read<'a>(
    chunk_size: u32,
    parts: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Message>, Option<RtmpError>) {
    let mut reader = ChunkReader::default();
    reader.set_chunk_size(chunk_size).expect("it is a size");
    let mut messages = Vec::new();
    for part in parts {
        reader.push(part);
        loop {
            match reader.next() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, None)
}

/// What is read says the same once written, but for texts that are longer than ours.
fn values(octets: &[u8]) {
    let Ok(values) = amf::read(octets) else {
        return;
    };
    assert!(values.iter().map(count).sum::<usize>() <= octets.len());
    if octets.len() <= usize::from(u16::MAX) / 3 {
        let again = amf::read(&amf::write(&values));
        // Numbers that are none do not equal themselves.
        assert_eq!(
            format!("{again:?}"),
            format!("{:?}", Ok::<_, RtmpError>(values))
        );
    }
}

/// Values in a value.
fn count(value: &Value) -> usize {
    match value {
        Value::Object(properties) => 1 + properties.iter().map(|it| count(&it.1)).sum::<usize>(),
        Value::List(values) => 1 + values.iter().map(count).sum::<usize>(),
        Value::Number(_) | Value::Text(_) | Value::Null => 1,
    }
}
