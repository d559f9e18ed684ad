//! Names that stay on a host, or go no further than the next.

use namecast_packet::Name;

/// Whether an Interest may pass between faces of the given scopes: `/localhost` stays on the host; `/localhop` goes one
/// hop, so it leaves the host only if it was born there.
pub(crate) fn scope_allows(name: &Name, from_local: bool, to_local: bool) -> bool {
    to_local || !is_localhost(name) && (from_local || !starts_with(name, b"localhop"))
}

/// Whether the name starts with `/localhost`.
pub(crate) fn is_localhost(name: &Name) -> bool {
    starts_with(name, b"localhost")
}

fn starts_with(name: &Name, word: &[u8]) -> bool {
    let [kind, length, rest @ ..] = &name.value()[..] else {
        return false;
    };
    // A generic component's type and the length of either word take one octet each.
    *kind == 8 && usize::from(*length) == word.len() && rest.starts_with(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_hold_names_in() {
        let allows = |uri: &str, from, to| scope_allows(&uri.parse().unwrap(), from, to);
        let (local, remote) = (true, false);
        assert!(allows("/localhost/a", local, local) && !allows("/localhost/a", local, remote));
        assert!(allows("/localhop/a", local, remote) && allows("/localhop/a", remote, local));
        assert!(!allows("/localhop/a", remote, remote));
        assert!(allows("/a", remote, remote) && allows("/localhosts", remote, remote));
        assert!(allows("/32=localhost", remote, remote) && allows("/a/localhost", remote, remote));
    }
}
