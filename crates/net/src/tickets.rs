//! Leave for one page of this node to publish one name.
//!
//! ```text
//!  operator: issue(name) ──▶ token, in a link ──▶ a page registers name, showing token and a secret that it made
//!                                                  first time: admitted, the secret is kept
//!                                                  later: admitted with the same secret, from whichever face
//! ```
//!
//! The token works once. Whoever used it goes on with its own secret: after a reconnection, after the page was loaded anew, and after
//! it was closed, until the secret was not shown for a day. Pages derive it from the key that signs what they publish.
//! The route ends with the face, as all routes do, and a ticket with the node. Tokens and secrets are kept and compared as
//! digests, so that how long a comparison takes says nothing of them.

use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use namecast_forward::FaceId;
use namecast_packet::Name;
use namecast_units::{Duration, Instant};
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

/// Time after which the secret of whoever used a token admits nobody any more. A page that is live shows it again and again.
pub const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

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
    /// When it showed its secret last.
    shown_at: Instant,
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
    /// The browser that used the token has not shown its secret for a day.
    #[error("this link was used more than a day ago: ask for a new link")]
    Expired,
    /// Somebody else used the token.
    #[error(
        "this link was used already, and works once: go on in the browser that used it, or ask for a new link"
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
            Self::Expired => "refused_expired",
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
    /// Refused, as whoever had used the token did not for a day.
    pub refused_expired: u64,
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

    /// Admits whoever shows token and secret on `face` at `now` to publish `name`. Returns the face that it was admitted on before, if
    /// that is another one.
    pub(crate) fn admit(
        &self,
        shown: &[u8],
        name: &Name,
        (face, visitor): (FaceId, Option<Visitor>),
        now: Instant,
    ) -> Result<Option<FaceId>, TicketRefusal> {
        let mut state = self.lock();
        let State { tickets, counters } = &mut *state;
        let admitted = try_admit(tickets, shown, name, (face, visitor), now);
        let counter = match &admitted {
            Ok(Admission::First) => &mut counters.admitted,
            Ok(Admission::Again) => return Ok(None),
            Ok(Admission::Moved(_)) => &mut counters.resumed,
            Err(TicketRefusal::Token) => &mut counters.refused_token,
            Err(TicketRefusal::Origin) => &mut counters.refused_origin,
            Err(TicketRefusal::Name(_)) => &mut counters.refused_name,
            Err(TicketRefusal::Expired) => &mut counters.refused_expired,
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
    now: Instant,
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
            ticket.holder = Some(Holder {
                secret,
                face,
                shown_at: now,
            });
            Ok(Admission::First)
        }
        Some(holder) if holder.secret != secret => Err(TicketRefusal::Used),
        Some(holder) if now.since(holder.shown_at) > KEPT => Err(TicketRefusal::Expired),
        Some(holder) => {
            holder.shown_at = now;
            match core::mem::replace(&mut holder.face, face) {
                before if before == face => Ok(Admission::Again),
                before => Ok(Admission::Moved(before)),
            }
        }
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
        show_at(tickets, (token, secret), uri, (on, 0))
    }

    /// Shows it at a time, in seconds since the node began.
    fn show_at(
        tickets: &Tickets,
        (token, secret): (Token, Token),
        uri: &str,
        (on, seconds): (u64, u64),
    ) -> Result<Option<FaceId>, TicketRefusal> {
        let page = (face(on), Some(Visitor::OwnPage));
        let now = Instant::ZERO + Duration::from_secs(seconds);
        tickets.admit(&[token, secret].concat(), &name(uri), page, now)
    }

    /// A day is 86 400 s. While it is live a page shows its secret each minute, so a stream may last longer.
    #[test]
    fn a_link_is_for_its_user_until_it_was_not_used_for_a_day() {
        let tickets = Tickets::default();
        let token = tickets.issue(name("/cam")).unwrap();
        let show = |secret, on, seconds| show_at(&tickets, (token, secret), "/cam", (on, seconds));
        // Nobody used it yet.
        assert_eq!(show(ONE, 300, 200_000), Ok(None));
        assert_eq!(show(ONE, 300, 286_400), Ok(None));
        assert_eq!(show(ONE, 301, 372_800), Ok(Some(face(300))));
        assert_eq!(show(TWO, 302, 372_801), Err(TicketRefusal::Used));
        assert_eq!(show(ONE, 303, 459_201), Err(TicketRefusal::Expired));
        assert_eq!(tickets.counters().unwrap().refused_expired, 1);
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
            let refused = tickets.admit(&shown, &name("/cam"), (face(300), visitor), Instant::ZERO);
            assert_eq!(refused, Err(TicketRefusal::Origin));
        }
        for malformed in [&shown[1..], &[&shown[..], &[0]].concat(), &[]] {
            let page = (face(300), Some(Visitor::Local));
            let refused = tickets.admit(malformed, &name("/cam"), page, Instant::ZERO);
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
