//! Leave for one page of this node to publish one name.
//!
//! ```text
//!  operator: issue(name) ──▶ token, in a link ──▶ a page registers name, showing token and a secret that it made
//!                                                  first time: admitted, the secret is kept
//!                                                  later: admitted with the same secret, from whichever face
//! ```
//!
//! The token works once. Whoever used it goes on with its own secret: after a reconnection, and after the page was loaded anew.
//! The route ends with the face, as all routes do, and a ticket with the node. Tokens and secrets are kept and compared as
//! digests, so that how long a comparison takes says nothing of them.

use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use namecast_forward::FaceId;
use namecast_packet::Name;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::key_store;
use crate::web::Visitor;

/// Octets of a token, and of the secret of whoever uses it: 128 bits, which nobody guesses.
pub const TOKEN_SIZE: usize = 16;
/// Octets that a command shows: the token and the secret.
const SHOWN_SIZE: usize = 2 * TOKEN_SIZE;
/// Tickets of a node.
pub const MAX_TICKETS: usize = 64;

/// What a page shows to publish for the first time.
pub type Token = [u8; TOKEN_SIZE];

/// The tickets of a node. Clones are the same tickets.
#[derive(Clone, Default)]
pub struct Tickets(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    tickets: Vec<Ticket>,
    counters: TicketCounters,
}

struct Ticket {
    name: Name,
    token: [u8; 32],
    holder: Option<Holder>,
}

/// Whoever used a token.
struct Holder {
    secret: [u8; 32],
    face: FaceId,
}

/// There are as many tickets as a node may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a node lets {MAX_TICKETS} names be published by link at most")]
pub struct TicketsFull;

/// Why a ticket was refused. The texts are for the page, and say what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TicketRefusal {
    /// No ticket has this token.
    #[error(
        "this link is not one of this node's, or from before it was started again: open the link that it printed last"
    )]
    Token,
    /// The face is no page's of this node.
    #[error(
        "this link works only in the page of this node: open it as it was printed, at the same address"
    )]
    Origin,
    /// The token is for another name.
    #[error("this link is for {0} alone: open it as it was printed")]
    Name(Name),
    /// Somebody else used the token.
    #[error(
        "this link was used already, and works once: go on in the tab that used it, or ask for a new link"
    )]
    Used,
}

impl TicketRefusal {
    /// Returns the name of the reason, as [`TicketCounters`] spells it.
    pub(crate) const fn reason(&self) -> &'static str {
        match self {
            Self::Token => "refused_token",
            Self::Origin => "refused_origin",
            Self::Name(_) => "refused_name",
            Self::Used => "refused_used",
        }
    }
}

/// What became of tickets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TicketCounters {
    /// Issued.
    pub issued: u64,
    /// Used for the first time.
    pub admitted: u64,
    /// Of those who had used one, shown again from another face.
    pub resumed: u64,
    /// Refused, as the token is none.
    pub refused_token: u64,
    /// Refused, as they came from elsewhere than a page of this node.
    pub refused_origin: u64,
    /// Refused, as they are for another name.
    pub refused_name: u64,
    /// Refused, as somebody else had used the token.
    pub refused_used: u64,
}

impl Tickets {
    /// A ticket for `name`. Returns its token, which is kept nowhere else.
    ///
    /// # Errors
    /// If there are too many.
    pub fn issue(&self, name: Name) -> Result<Token, TicketsFull> {
        let mut state = self.lock();
        if state.tickets.len() == MAX_TICKETS {
            return Err(TicketsFull);
        }
        let token = key_store::random();
        state.counters.issued += 1;
        state.tickets.push(Ticket {
            name,
            token: Sha256::digest(token).into(),
            holder: None,
        });
        Ok(token)
    }

    /// What became of tickets; `None` if none were issued.
    pub fn counters(&self) -> Option<TicketCounters> {
        let counters = self.lock().counters;
        (counters.issued > 0).then_some(counters)
    }

    /// Whether none was issued.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().tickets.is_empty()
    }

    /// Admits whoever shows token and secret on `face` to publish `name`. Returns the face that it was admitted on before, if
    /// that is another one.
    pub(crate) fn admit(
        &self,
        shown: &[u8],
        name: &Name,
        (face, visitor): (FaceId, Option<Visitor>),
    ) -> Result<Option<FaceId>, TicketRefusal> {
        let mut state = self.lock();
        let State { tickets, counters } = &mut *state;
        let admitted = try_admit(tickets, shown, name, (face, visitor));
        let counter = match &admitted {
            Ok(Admission::First) => &mut counters.admitted,
            Ok(Admission::Again) => return Ok(None),
            Ok(Admission::Moved(_)) => &mut counters.resumed,
            Err(TicketRefusal::Token) => &mut counters.refused_token,
            Err(TicketRefusal::Origin) => &mut counters.refused_origin,
            Err(TicketRefusal::Name(_)) => &mut counters.refused_name,
            Err(TicketRefusal::Used) => &mut counters.refused_used,
        };
        *counter += 1;
        admitted.map(|admission| match admission {
            Admission::Moved(from) => Some(from),
            Admission::First | Admission::Again => None,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets")
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

enum Admission {
    First,
    Again,
    Moved(FaceId),
}

fn try_admit(
    tickets: &mut [Ticket],
    shown: &[u8],
    name: &Name,
    (face, visitor): (FaceId, Option<Visitor>),
) -> Result<Admission, TicketRefusal> {
    let (token, secret) = match shown.split_at_checked(TOKEN_SIZE) {
        Some(parts) if shown.len() == SHOWN_SIZE => parts,
        _ => return Err(TicketRefusal::Token),
    };
    let [token, secret]: [[u8; 32]; 2] = [token, secret].map(|part| Sha256::digest(part).into());
    let mut tickets = tickets.iter_mut();
    let ticket = tickets.find(|ticket| ticket.token == token);
    let ticket = ticket.ok_or(TicketRefusal::Token)?;
    if !matches!(visitor, Some(Visitor::OwnPage | Visitor::Local)) {
        return Err(TicketRefusal::Origin);
    }
    if ticket.name != *name {
        return Err(TicketRefusal::Name(ticket.name.clone()));
    }
    match &mut ticket.holder {
        None => {
            ticket.holder = Some(Holder { secret, face });
            Ok(Admission::First)
        }
        Some(holder) if holder.secret != secret => Err(TicketRefusal::Used),
        Some(holder) if holder.face == face => Ok(Admission::Again),
        Some(holder) => Ok(Admission::Moved(core::mem::replace(&mut holder.face, face))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: [u8; TOKEN_SIZE] = [1; TOKEN_SIZE];
    const TWO: [u8; TOKEN_SIZE] = [2; TOKEN_SIZE];

    fn face(number: u64) -> FaceId {
        FaceId::from_number(number)
    }

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    /// Shows a token with a secret on a face of a page of this node.
    fn show(
        tickets: &Tickets,
        (token, secret): (Token, Token),
        uri: &str,
        on: u64,
    ) -> Result<Option<FaceId>, TicketRefusal> {
        let page = (face(on), Some(Visitor::OwnPage));
        tickets.admit(&[token, secret].concat(), &name(uri), page)
    }

    #[test]
    fn a_token_works_once_and_its_user_goes_on_by_its_secret() {
        let tickets = Tickets::default();
        let token = tickets.issue(name("/cam")).unwrap();
        assert_eq!(show(&tickets, (token, ONE), "/cam", 300), Ok(None));
        assert_eq!(show(&tickets, (token, ONE), "/cam", 300), Ok(None));
        let other = show(&tickets, (token, TWO), "/cam", 301);
        assert_eq!(other, Err(TicketRefusal::Used));
        let reloaded = show(&tickets, (token, ONE), "/cam", 302);
        assert_eq!(reloaded, Ok(Some(face(300))));
        let expected = TicketCounters {
            issued: 1,
            admitted: 1,
            resumed: 1,
            refused_used: 1,
            ..TicketCounters::default()
        };
        assert_eq!(tickets.counters(), Some(expected));
    }

    /// None of what is refused uses the token up.
    #[test]
    fn another_token_name_or_origin_is_refused_and_counted() {
        let tickets = Tickets::default();
        let token = tickets.issue(name("/cam")).unwrap();
        let wrong = show(&tickets, (TWO, ONE), "/cam", 300);
        assert_eq!(wrong, Err(TicketRefusal::Token));
        for uri in ["/other", "/cam/below", "/"] {
            let refused = show(&tickets, (token, ONE), uri, 300);
            assert_eq!(refused, Err(TicketRefusal::Name(name("/cam"))), "{uri}");
        }
        let shown = [token, ONE].concat();
        for visitor in [None, Some(Visitor::Stranger)] {
            let refused = tickets.admit(&shown, &name("/cam"), (face(300), visitor));
            assert_eq!(refused, Err(TicketRefusal::Origin));
        }
        for malformed in [&shown[1..], &[&shown[..], &[0]].concat(), &[]] {
            let page = (face(300), Some(Visitor::Local));
            let refused = tickets.admit(malformed, &name("/cam"), page);
            assert_eq!(refused, Err(TicketRefusal::Token));
        }
        let expected = TicketCounters {
            issued: 1,
            refused_token: 4,
            refused_name: 3,
            refused_origin: 2,
            ..TicketCounters::default()
        };
        assert_eq!(tickets.counters(), Some(expected));
        assert_eq!(show(&tickets, (token, ONE), "/cam", 300), Ok(None));
    }

    #[test]
    fn tickets_are_bounded_and_not_printed() {
        let tickets = Tickets::default();
        let tokens: Vec<_> = (0..MAX_TICKETS)
            .map(|_| tickets.issue(name("/cam")).unwrap())
            .collect();
        assert_eq!(tickets.issue(name("/cam")), Err(TicketsFull));
        assert!(tokens.windows(2).all(|two| two[0] != two[1]));
        assert!(!format!("{tickets:?}").contains("/cam"));
    }
}
