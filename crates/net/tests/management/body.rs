//! What strangers send to management, and to clients of it: it is read or refused, only those who may command do, and a list has
//! an end. Body of a fuzz target (see `fuzz/`), run here on damaged messages.

use core::fmt::Debug;

use bytes::Bytes;
use namecast_net::ManagementConfig;
use namecast_net::management::{
    Authenticator, ChannelStatus, ControlParameters, ControlResponse, CsInfo,
    FaceEventNotification, FaceQueryFilter, FaceStatus, FibEntry, GeneralStatus, Item, Refusal,
    RibEntry, SegmentReader, StrategyChoice, decode_items,
};
use namecast_packet::signature::{DigestSigner, Ed25519Signer};
use namecast_packet::{
    Certificate, Component, Data, Interest, KeyLocator, Name, Nonce, Packet, Signer, Validity,
};
use namecast_units::{Duration, Timestamp};

const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);
/// Components of `/localhost/nfd/cs/erase`.
const PREFIX: usize = 4;

/// The first octet says who reads the rest.
pub(crate) fn management(octets: &[u8]) {
    let Some((who, rest)) = octets.split_first() else {
        return;
    };
    match who % 4 {
        0 => messages(&Bytes::copy_from_slice(rest)),
        1 => command_as_it_came(rest),
        2 => signed_command(rest),
        _ => segments(rest),
    }
}

/// What is read says the same when it is written and read again.
fn messages(octets: &Bytes) {
    if let Ok(parameters) = ControlParameters::decode(octets) {
        let again = ControlParameters::decode(&parameters.encode());
        assert_eq!(again, Ok(parameters));
    }
    if let Ok(response) = ControlResponse::decode(octets) {
        assert_eq!(ControlResponse::decode(&response.encode()), Ok(response));
    }
    if let Ok(status) = GeneralStatus::decode(octets) {
        assert_eq!(GeneralStatus::decode(&status.encode()), Ok(status));
    }
    let _ = FaceQueryFilter::decode(octets);
    items::<FaceStatus>(octets);
    items::<ChannelStatus>(octets);
    items::<FaceEventNotification>(octets);
    items::<FibEntry>(octets);
    items::<RibEntry>(octets);
    items::<StrategyChoice>(octets);
    items::<CsInfo>(octets);
}

fn items<T: Item + Debug + PartialEq>(octets: &Bytes) {
    if let Ok(items) = decode_items::<T>(octets) {
        let written: Vec<u8> = items.iter().flat_map(Item::encode).collect();
        assert_eq!(decode_items::<T>(&written.into()), Ok(items));
    }
}

fn operator() -> (Ed25519Signer, Certificate) {
    let identity: Name = "/operator".parse().expect("a name");
    let key = identity.builder().generic("KEY").generic("k").finish();
    let signer = Ed25519Signer::from_seed([7; 32], KeyLocator::Name(key));
    let validity = Validity {
        not_before: NOW,
        not_after: NOW + Duration::from_secs(1),
    };
    let certificate = Certificate::self_signed(&identity, b"k", 1, validity, &signer);
    (signer, certificate)
}

fn authenticator() -> Authenticator {
    let config = ManagementConfig {
        keys: vec![operator().1],
        max_nonces: 2,
        ..ManagementConfig::default()
    };
    Authenticator::new(&config, Timestamp::from_micros(0))
}

/// A stranger's command, whatever it is, is not the operator's; and the same one twice is refused.
fn command_as_it_came(wire: &[u8]) {
    let Ok(Packet::Interest(command)) = Packet::decode(Bytes::copy_from_slice(wire)) else {
        return;
    };
    let mut authenticator = authenticator();
    assert!(authenticator.check(NOW, &command, PREFIX, true).is_err());
    let first = authenticator.check(NOW, &command, PREFIX, false);
    let second = authenticator.check(NOW, &command, PREFIX, false);
    assert_eq!(second, first.and(Err(Refusal::Repeated)));
}

/// How a signed command comes about: six octets, and then its parameters.
struct Recipe {
    /// Seconds from now.
    seconds: i64,
    has_time: bool,
    is_operators: bool,
    needs_key: bool,
    nonce: Vec<u8>,
    /// Which octet is damaged, and how.
    damage: Option<(usize, u8)>,
}

impl Recipe {
    fn read(octets: &[u8; 6]) -> Self {
        let [high, low, how, nonce, at, flip] = *octets;
        Self {
            seconds: i64::from(i16::from_be_bytes([high, low])),
            has_time: how & 1 == 0,
            is_operators: how & 2 == 0,
            needs_key: how & 4 == 0,
            nonce: vec![9; usize::from(nonce % 32)],
            damage: (flip != 0).then_some((usize::from(at), flip)),
        }
    }

    fn sign(&self, parameters: &[u8]) -> Interest {
        let operator = operator().0;
        let signer: &dyn Signer = match self.is_operators {
            true => &operator,
            false => &DigestSigner,
        };
        let mut info = signer.info();
        let micros = i64::try_from(NOW.as_micros()).expect("it is") + self.seconds * 1_000_000;
        let time = Duration::from_micros(micros.unsigned_abs());
        info.time = self.has_time.then_some(time);
        info.nonce = (!self.nonce.is_empty()).then(|| self.nonce.clone().into());
        let verb: Name = "/localhost/nfd/cs/erase".parse().expect("a name");
        let name = verb.child(Component {
            kind: Component::GENERIC,
            value: parameters,
        });
        Interest::builder(name).sign(Nonce::from(1), signer, &info)
    }

    /// What has to be said of it if it is not damaged.
    fn expected(&self) -> Result<(), Refusal> {
        let grace = ManagementConfig::default().time_grace;
        let by = Duration::from_secs(self.seconds.unsigned_abs());
        if self.needs_key && !self.is_operators {
            Err(Refusal::Key)
        } else if !self.has_time {
            Err(Refusal::NoTime)
        } else if by > grace {
            let is_ahead = self.seconds > 0;
            Err(Refusal::Clock {
                by,
                is_ahead,
                grace,
            })
        } else if self.nonce.is_empty() {
            Err(Refusal::NoNonce)
        } else {
            Ok(())
        }
    }
}

/// A command signed by us, which is accepted as its recipe says; once damaged, it says the same or is refused.
fn signed_command(octets: &[u8]) {
    let Some((recipe, parameters)) = octets.split_first_chunk() else {
        return;
    };
    let recipe = Recipe::read(recipe);
    let command = recipe.sign(parameters);
    if command.wire().len() > namecast_packet::MAX_PACKET_SIZE {
        return;
    }
    let mut authenticator = authenticator();
    let whole = authenticator.check(NOW, &command, PREFIX, recipe.needs_key);
    assert_eq!(whole, recipe.expected());
    let Some((at, flip)) = recipe.damage else {
        return;
    };
    let mut wire = command.wire().to_vec();
    let at = at % wire.len();
    wire[at] ^= flip;
    let mut authenticator = self::authenticator();
    if let Ok(Packet::Interest(damaged)) = Packet::decode(wire.into())
        && authenticator
            .check(NOW, &damaged, PREFIX, recipe.needs_key)
            .is_ok()
    {
        // Where any key will do, what is signed with a key is not checked, as with NFD's trust anchor "any".
        if recipe.needs_key || !recipe.is_operators {
            assert_eq!(damaged.name(), command.name());
        }
    }
}

/// Data packets one behind another, each after its length in two octets, as the segments of a list.
fn segments(mut octets: &[u8]) {
    let mut reader = SegmentReader::default();
    let mut length = 0;
    while let Some((size, rest)) = octets.split_first_chunk() {
        let size = usize::from(u16::from_be_bytes(*size)).min(rest.len());
        let (wire, rest) = rest.split_at(size);
        octets = rest;
        let Ok(data) = Data::decode(Bytes::copy_from_slice(wire)) else {
            continue;
        };
        length += data.content().map_or(0, |content| content.len());
        match reader.add(&data) {
            Ok(Some(next)) => assert_eq!(next.parent(), data.name().parent()),
            Ok(None) => break,
            Err(_) => return,
        }
    }
    let content = reader.finish();
    assert_eq!(content.len(), length);
    messages(&content);
}
