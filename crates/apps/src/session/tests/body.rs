//! Messages of sessions and of exchanges, of any octets. Body of a fuzz target (see `fuzz/`), run here on damaged seeds.

use bytes::Bytes;

use super::exchange::{CHUNK_SIZE, Exchange, Offer, Said};
use super::message::Message;

/// The first octet states what the others are: a message of a session, or messages of an exchange, each behind its length.
pub(crate) fn session(octets: &[u8]) {
    match octets.split_first() {
        None => {}
        Some((what, rest)) if what % 2 == 0 => message(rest),
        Some((_, rest)) => exchange(rest),
    }
}

/// What is read says the same once written.
fn message(octets: &[u8]) {
    let Some(message) = Message::decode(octets) else {
        return;
    };
    assert!(octets.ends_with(message.body));
    let written = message.encode();
    let again = Message::decode(&written).expect("what is written reads");
    // Times beyond the range of 32 bits become the largest.
    assert_eq!(again, message);
}

/// One side with a file and one without: bounds hold, and offers are names of files.
fn exchange(mut octets: &[u8]) {
    let own = Offer {
        name: "a".to_owned(),
        size: 3_500,
        digest: [7; 32],
    };
    let mut ends = [Exchange::new(Some(own)), Exchange::new(None)];
    while let &[length, ref rest @ ..] = octets {
        let (message, after) = rest.split_at(usize::from(length).min(rest.len()));
        octets = after;
        let message = Bytes::copy_from_slice(message);
        for end in &mut ends {
            if let Ok(said) = end.handle_message(&message) {
                answer(end, said);
            }
            assert!(end.sent() <= 3_500 + CHUNK_SIZE as u64);
            while end.poll_message().is_some() {}
            let _ = end.is_done();
        }
    }
}

fn answer(end: &mut Exchange, said: Said) {
    match said {
        Said::Offers(offer) => {
            let name = offer.name.as_str();
            assert!(!name.is_empty() && !name.starts_with('.') && name.len() <= 255);
            assert!(!name.contains(['/', '\\', '\0']));
            assert_eq!(end.offered(), Some(&offer));
            end.want(offer.size / 2);
        }
        Said::Chunk(chunk) => {
            assert!(!chunk.is_empty());
            assert!(Some(end.received()) <= end.offered().map(|it| it.size));
            end.finish(true);
        }
        Said::Wants(offset) => {
            assert!(offset <= 3_500);
            let unsent = end.unsent().expect("it has a file");
            assert_eq!(unsent, 3_500 - offset);
            let count = unsent.min(CHUNK_SIZE as u64) as usize;
            end.chunk(&[1; CHUNK_SIZE][..count]);
        }
        Said::Nothing | Said::Result(_) => {}
    }
}
