//! Who wants which name: one table for all Data and Nacks that arrive.

use std::collections::{BTreeMap, BTreeSet};

use namecast_packet::Name;

use super::want::{Token, Tokens};

/// Names that are kept of the Interests of one client that are over.
const MAX_LATE: usize = 1_024;
/// Tokens that are looked through at a time to find those that want their name no more.
const MIN_PURGED: usize = 64;

/// Tokens by the hash of the name that they want.
///
/// The names themselves are where the tokens' state is, so that no name is kept twice. A token that wants its name no more may stay
/// here until the next [`purge`](Self::purge): whoever looks it up compares names.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    wanted: BTreeSet<(u64, Token)>,
}

impl Names {
    /// Records that `token` wants `name`.
    pub(super) fn insert(&mut self, name: &Name, token: Token) {
        self.wanted.insert((hash(name), token));
    }

    /// Records that `token` does not want `name` any more.
    pub(super) fn remove(&mut self, name: &Name, token: Token) {
        self.wanted.remove(&(hash(name), token));
    }

    /// Returns the tokens that want `name`, or another name of the same hash.
    pub(super) fn of(&self, name: &Name) -> impl Iterator<Item = Token> {
        let hash = hash(name);
        let wanted = self.wanted.range((hash, Token::FIRST)..);
        let wanted = wanted.take_while(move |(other, _)| *other == hash);
        wanted.map(|(_, token)| *token)
    }

    /// Removes the tokens for which `is_wanted` does not hold, once they may be most of all: `live` are wanted.
    pub(super) fn purge(&mut self, live: usize, is_wanted: impl Fn(Token) -> bool) {
        if self.wanted.len() > 2 * live + MIN_PURGED {
            self.wanted.retain(|(_, token)| is_wanted(*token));
        }
    }
}

/// Names of Interests that expired or came back, of tokens that nobody withdrew: their Data may still come.
#[derive(Clone, Debug, Default)]
pub(super) struct Late {
    names: BTreeMap<Token, Name>,
}

impl Late {
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn get(&self, token: Token) -> Option<&Name> {
        self.names.get(&token)
    }

    /// Adds a token. Of a client that has too many, the first makes room.
    pub(super) fn insert(&mut self, token: Token, name: Name) {
        self.names.insert(token, name);
        let of_client = self.names.range(token.client.tokens());
        if self.names.len() > MAX_LATE && of_client.clone().nth(MAX_LATE).is_some() {
            let first = of_client.map(|(token, _)| *token).next();
            first.map(|token| self.names.remove(&token));
        }
    }

    pub(super) fn remove(&mut self, token: Token) -> Option<Name> {
        self.names.remove(&token)
    }

    /// Removes and returns those of `tokens`.
    pub(super) fn take(&mut self, tokens: &Tokens) -> Vec<(Token, Name)> {
        let taken = self.names.extract_if(tokens.clone(), |_, _| true);
        taken.collect()
    }
}

/// Returns the hash by which tokens are found: FxHash of the name, eight octets at a time. It need not resist those who choose names:
/// one publisher's names are all that would meet.
fn hash(name: &Name) -> u64 {
    name.value().chunks(8).fold(0, |hash: u64, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (hash.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x517c_c1b7_2722_0a95)
    })
}
