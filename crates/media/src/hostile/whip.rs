//! Offers and datagrams of pushers by WebRTC, of any octets.

use std::net::SocketAddr;
use std::time::Instant;

use crate::script::Script;
use crate::whip::{Credentials, Offer, OfferError, Output, Session, user_fragment};

/// Datagrams that a session takes, and what it may answer to each.
const MAX_DATAGRAMS: usize = 16;
const MAX_ANSWERS: usize = 64;

/// The first octet states what the others are: an offer, an offer with datagrams behind it, or a datagram.
pub fn whip(octets: &[u8]) {
    let mut script = Script(octets);
    match script.octet().map(|it| it % 3) {
        None => {}
        Some(0) => drop(accepted(script.0)),
        Some(1) => {
            let length = script.number(2) as usize;
            if let Some(session) = accepted(script.take(length)) {
                datagrams(session, script);
            }
        }
        Some(_) => {
            if let Some(fragment) = user_fragment(script.0) {
                assert!(fragment.len() <= script.0.len());
            }
        }
    }
}

/// Accepts an offer. An answer sends nothing and refuses nothing; a refusal has a sentence.
fn accepted(text: &[u8]) -> Option<Session> {
    let text = core::str::from_utf8(text).ok()?;
    let said = |error: &OfferError| assert!(!error.to_string().is_empty());
    let offer = Offer::parse(text).inspect_err(said).ok()?;
    let credentials = Credentials {
        user_fragment: "ours".to_owned(),
        password: "password of twenty-four letters".to_owned(),
    };
    let accepted = Session::accept(offer, &credentials, &[here()], Instant::now());
    let (session, answer) = accepted.inspect_err(said).ok()?;
    assert!(!answer.contains("a=sendrecv"));
    assert!(answer.len() <= 4 * text.len() + 8_192);
    Some(session)
}

fn here() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 9))
}

fn datagrams(mut session: Session, mut script: Script<'_>) {
    for _ in 0..MAX_DATAGRAMS {
        let Some(length) = script.octet() else {
            return;
        };
        let datagram = script.take(length.into());
        session.handle_datagram(Instant::now(), here(), here(), datagram);
        let outputs = core::iter::from_fn(|| session.poll_output());
        let outputs: Vec<_> = outputs.collect();
        assert!(outputs.len() <= MAX_ANSWERS);
        let is_media = |it: &Output| matches!(it, Output::Media(_));
        assert!(!outputs.iter().any(is_media), "nothing is authenticated");
    }
}
