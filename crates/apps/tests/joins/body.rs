//! Requests to join, their answers, and links of any octets: what is read says the same when written again, and nobody else's request is taken.

use bytes::Bytes;
use namecast_apps::room::{InvitationSecret, Join, Link, TOKEN_SIZE, Welcome};

/// Kinds of inputs, by their first octet: a request to join; an answer; a link.
pub(crate) const KINDS: u8 = 3;

/// Root of the room.
pub(crate) const ROOT: &str = "/calls/fox";
/// Digest of the anchor's key.
pub(crate) const ANCHOR: [u8; 32] = [5; 32];

/// The secret of the invitation.
pub(crate) fn secret() -> InvitationSecret {
    InvitationSecret::of_token(&[9; TOKEN_SIZE])
}

/// Reads `octets` by their kind. Returns whether they hold what their kind says; of a request, whether it was made with the invitation.
pub(crate) fn join(octets: &[u8]) -> bool {
    let Some((kind, rest)) = octets.split_first() else {
        return false;
    };
    let rest = Bytes::copy_from_slice(rest);
    let root = ROOT.parse().expect("a name");
    match kind % KINDS {
        0 => Join::decode(&rest).is_ok_and(|join| {
            assert_eq!(Join::decode(&join.encode()), Ok(join.clone()));
            join.is_by((&root, &ANCHOR), &secret())
        }),
        1 => Welcome::decode(&rest).is_ok_and(|welcome| {
            assert_eq!(Welcome::decode(&welcome.encode()), Ok(welcome));
            true
        }),
        _ => {
            let link = core::str::from_utf8(&rest).ok().map(str::parse::<Link>);
            link.is_some_and(|link| {
                link.is_ok_and(|link| {
                    assert_eq!(link.to_string().parse(), Ok(link));
                    true
                })
            })
        }
    }
}
