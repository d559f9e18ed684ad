//! Names of calls, and of what is said in them.

use namecast_packet::{Component, Name, tlv};

/// Before the caller's name.
const CALL: &str = "call";
/// Behind the call: what the caller shows last before it is connected.
const CONFIRM: &str = "confirm";

/// What a call is known by: the beginning of the digest of what the caller signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub [u8; 8]);

/// What a caller requests, but for the digest of its parameters: `/<callee>/call/<caller>`.
pub(super) fn call(callee: &Name, caller: &Name) -> Name {
    callee.builder().generic(CALL).name(caller).finish()
}

/// The caller in the name of a call to `callee`, which ends with the parameters' digest.
pub(super) fn caller(callee: &Name, name: &Name) -> Option<Name> {
    let call = name.len().checked_sub(1)?;
    let is_call = callee.is_prefix_of(name)
        && name.get(callee.len()) == Some(Component::generic(CALL))
        && name.last()?.kind == Component::PARAMETERS_DIGEST;
    let suffix = name.components().take(call).skip(callee.len() + 1);
    let caller = suffix.fold(Name::root().builder(), |it, part| it.component(part));
    let caller = caller.finish();
    (is_call && !caller.is_empty()).then_some(caller)
}

/// What all packets of one side are under: `/<root>/<call>`.
pub(super) fn packets(root: &Name, call: CallId) -> Name {
    let call = Component {
        kind: Component::GENERIC,
        value: &call.0,
    };
    root.child(call)
}

pub(super) fn confirmation(packets: &Name) -> Name {
    packets.child(Component::keyword(CONFIRM))
}

/// What the name of a packet under a root says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suffix {
    /// A numbered packet of a call.
    Packet(CallId, u64),
    /// The confirmation of a call.
    Confirmation(CallId),
}

/// Reads what is behind `root` in `name`; numbers count in their shortest form only.
pub(super) fn suffix(root: &Name, name: &Name) -> Option<Suffix> {
    if name.len() != root.len() + 2 || !root.is_prefix_of(name) {
        return None;
    }
    let call = name.get(root.len())?;
    let call = (call.kind == Component::GENERIC).then_some(call.value)?;
    let call = CallId(call.try_into().ok()?);
    let last = name.last()?;
    if last == Component::keyword(CONFIRM) {
        return Some(Suffix::Confirmation(call));
    }
    let number = last.number_of(Component::SEQUENCE)?;
    let is_shortest = tlv::number_size(number) == last.value.len();
    is_shortest.then_some(Suffix::Packet(call, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    #[test]
    fn the_caller_is_what_stands_between() {
        let callee = name("/bob/talk");
        let call = call(&callee, &name("/alice/talk"));
        assert_eq!(call, name("/bob/talk/call/alice/talk"));
        let digest = Component {
            kind: Component::PARAMETERS_DIGEST,
            value: &[0; 32],
        };
        let found = caller(&callee, &call.child(digest));
        assert_eq!(found, Some(name("/alice/talk")));
        for other in ["/bob/talk/call", "/bob/talk", "/bob/talk/ring/alice/talk"] {
            let other = name(other).child(digest);
            assert_eq!(caller(&callee, &other), None, "{other}");
        }
        assert_eq!(caller(&callee, &call), None, "no parameters");
    }

    #[test]
    fn only_packets_of_calls_are_read() {
        let root = name("/bob/talk");
        let id = CallId(*b"12345678");
        let packets = packets(&root, id);
        let packet = packets.builder().sequence(300).finish();
        assert_eq!(suffix(&root, &packet), Some(Suffix::Packet(id, 300)));
        let confirmation = confirmation(&packets);
        let found = suffix(&root, &confirmation);
        assert_eq!(found, Some(Suffix::Confirmation(id)));
        for other in [
            "/bob/talk/12345678/58=%00%05",
            "/bob/talk/12345678/58=...",
            "/bob/talk/1234567/seq=5",
            "/bob/talk/32=12345678/seq=5",
            "/bob/talk/12345678/seq=5/seq=5",
            "/eve/talk/12345678/seq=5",
            "/bob/talk/12345678",
        ] {
            assert_eq!(suffix(&root, &name(other)), None, "{other}");
        }
    }
}
