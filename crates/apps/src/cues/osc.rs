//! Open Sound Control 1.0 and 1.1: presses that arrive as OSC, and cues that leave as OSC.
//!
//! ```text
//!  QLab's addresses    /go   /go "12.5"   /cue/12.5/start   /cue/12.5/load   /cue/12.5/undo   /stop   /panic   /take
//! ```
//!
//! `rosc` decodes bundles by recursion and drops nested arrays by recursion, so both depths are counted before it sees a packet.

use rosc::{OscMessage, OscPacket, OscType};
use serde_json::Value;

use super::cue::{Action, Cue};
use super::press::{Press, PressError, shown};

/// Bundles in each other, and arrays in each other.
pub const MAX_NESTING: usize = 8;
/// Messages and bundles of a packet.
const MAX_ELEMENTS: usize = 64;
/// Longest packet: the largest datagram.
pub const MAX_PACKET: usize = 65_507;
/// Longest packet over TCP, in octets.
const MAX_FRAME: usize = 8_192;
/// First octets of a bundle; its time follows.
const BUNDLE: &[u8] = b"#bundle\0";
/// Octets of a bundle's beginning, with its time.
const BUNDLE_HEAD: usize = 16;
/// Field of a cue's values with the OSC address to send, and the field with its arguments.
const ADDRESS: &str = "osc";
const ARGUMENTS: &str = "args";
/// Octets of SLIP (RFC 1055).
const END: u8 = 0xc0;
const ESC: u8 = 0xdb;
const ESC_END: u8 = 0xdc;
const ESC_ESC: u8 = 0xdd;

/// Why OSC was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OscError {
    /// Bundles or arrays are nested too deeply.
    #[error("bundles or arrays are nested more than {MAX_NESTING} deep")]
    TooDeep,
    /// It has too many messages.
    #[error("more than {MAX_ELEMENTS} messages in a packet")]
    TooMany,
    /// An element's length does not fit the packet, or is no multiple of four.
    #[error("octet {0}: a length that does not fit")]
    Length(usize),
    /// It is no OSC packet.
    #[error("no OSC packet: {0}")]
    Malformed(String),
    /// No command has this address.
    #[error(
        "'{0}' is no address of a desk: send /go, /cue/NUMBER/start, /cue/NUMBER/load or /stop"
    )]
    Address(String),
    /// It is no press.
    #[error(transparent)]
    Press(#[from] PressError),
    /// A packet over TCP is too long.
    #[error("more than {MAX_FRAME} octets in a packet over TCP")]
    TooLong,
    /// SLIP has an escape that is none.
    #[error("SLIP escape 0x{0:02x}: expected 0xdc or 0xdd")]
    Escape(u8),
    /// A cue cannot be written as OSC.
    #[error("{field}: {problem}")]
    Field {
        /// The field.
        field: &'static str,
        /// The problem.
        problem: &'static str,
    },
}

/// Reads a packet: its presses in their order.
///
/// # Errors
/// The first problem; no press of the packet counts then.
pub fn decode(packet: &[u8]) -> Result<Vec<Press>, OscError> {
    check_depth(packet)?;
    let (rest, packet) =
        rosc::decoder::decode_udp(packet).map_err(|error| malformed(&format!("{error:?}")))?;
    if matches!(packet, OscPacket::Bundle(_)) && !rest.is_empty() {
        return Err(malformed("a bundle with an element that is none"));
    }
    let mut presses = Vec::new();
    collect(packet, &mut presses)?;
    Ok(presses)
}

fn malformed(problem: &str) -> OscError {
    OscError::Malformed(shown(problem))
}

/// Counts bundles in each other, and arrays, without recursion.
fn check_depth(packet: &[u8]) -> Result<(), OscError> {
    if packet.len() > MAX_PACKET || !packet.len().is_multiple_of(4) {
        return Err(OscError::Length(packet.len()));
    }
    let mut elements = 0;
    let mut waiting = vec![(0, packet.len(), 1)];
    while let Some((mut at, end, depth)) = waiting.pop() {
        elements += 1;
        if elements > MAX_ELEMENTS {
            return Err(OscError::TooMany);
        }
        let element = &packet[at..end];
        if !element.starts_with(BUNDLE) {
            check_arrays(element)?;
            continue;
        }
        if depth > MAX_NESTING {
            return Err(OscError::TooDeep);
        }
        at += BUNDLE_HEAD;
        while at < end {
            let length = packet[..end].get(at..).and_then(<[u8]>::first_chunk);
            let length = length.map(|length| u32::from_be_bytes(*length) as usize);
            // All in multiples of four, so that padding lies where this and `rosc` look for it.
            let fits = |length: &usize| length.is_multiple_of(4) && *length <= end - at - 4;
            let length = length.filter(fits).ok_or(OscError::Length(at))?;
            if waiting.len() >= MAX_ELEMENTS {
                return Err(OscError::TooMany);
            }
            at += 4;
            waiting.push((at, at + length, depth + 1));
            at += length;
        }
    }
    Ok(())
}

/// Counts arrays in each other, in the type tags of a message.
fn check_arrays(message: &[u8]) -> Result<(), OscError> {
    let Some(address) = message.iter().position(|octet| *octet == 0) else {
        return Err(malformed("an address without an end"));
    };
    let tags = message.get((address / 4 + 1) * 4..).unwrap_or_default();
    let mut depth = 0_usize;
    for tag in tags.iter().take_while(|octet| **octet != 0) {
        match tag {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err(OscError::TooDeep);
        }
    }
    Ok(())
}

/// Recursion is bounded: depths were counted.
fn collect(packet: OscPacket, presses: &mut Vec<Press>) -> Result<(), OscError> {
    match packet {
        OscPacket::Message(message) => presses.push(press(&message)?),
        OscPacket::Bundle(bundle) => {
            for element in bundle.content {
                collect(element, presses)?;
            }
        }
    }
    Ok(())
}

fn press(message: &OscMessage) -> Result<Press, OscError> {
    let unknown = || OscError::Address(shown(&message.addr));
    let mut path = message.addr.strip_prefix('/').ok_or_else(unknown)?;
    // QLab's workspaces: a desk has one.
    if let Some(rest) = path.strip_prefix("workspace/") {
        path = rest.split_once('/').ok_or_else(unknown)?.1;
    }
    let number = match message.args.first() {
        Some(OscType::String(number)) => Some(number.clone()),
        Some(OscType::Int(number)) => Some(number.to_string()),
        Some(OscType::Float(number)) => Some(number.to_string()),
        _ => None,
    };
    let cue = path
        .strip_prefix("cue/")
        .and_then(|rest| rest.rsplit_once('/'));
    Ok(match (path, cue) {
        ("go" | "standby" | "undo", _) => Press::new(path, number.as_deref())?,
        // A controller's button may send its state along.
        ("stop" | "panic", _) => Press::Stop,
        ("take", _) => Press::Take,
        (_, Some((number, "start" | "go"))) => Press::new("go", Some(number))?,
        (_, Some((number, "load" | "standby"))) => Press::new("standby", Some(number))?,
        (_, Some((number, "undo"))) => Press::new("undo", Some(number))?,
        (_, Some((_, "stop" | "panic"))) => Press::Stop,
        _ => return Err(unknown()),
    })
}

/// Writes a press as the message that [`decode`] reads.
///
/// # Errors
/// If the number cannot be part of a message.
pub fn encode_press(press: &Press) -> Result<Vec<u8>, OscError> {
    let (address, number) = match press {
        Press::Go(number) => ("/go", number.as_ref()),
        Press::Standby(number) => ("/standby", number.as_ref()),
        Press::Undo(number) => ("/undo", number.as_ref()),
        Press::Stop => ("/stop", None),
        Press::Take => ("/take", None),
    };
    let args = number.map(|number| OscType::String(number.clone()));
    message(address, args.into_iter().collect())
}

/// Writes the answer to a press: `/reply`, with a problem, if there was one.
///
/// # Errors
/// If the problem has an octet of zero.
pub fn encode_reply(problem: Option<&str>) -> Result<Vec<u8>, OscError> {
    let (word, text) = problem.map_or(("ok", ""), |problem| ("error", problem));
    let args = [word, text].map(|text| OscType::String(text.to_owned()));
    message("/reply", args.to_vec())
}

/// Reads an answer to a press: the problem, if there was one.
///
/// # Errors
/// If it is no such answer.
pub fn decode_reply(packet: &[u8]) -> Result<Option<String>, OscError> {
    check_depth(packet)?;
    let decoded = rosc::decoder::decode_udp(packet);
    match decoded {
        Ok((_, OscPacket::Message(message))) if message.addr == "/reply" => match &message.args[..]
        {
            [OscType::String(word), ..] if word == "ok" => Ok(None),
            [OscType::String(word), OscType::String(text)] if word == "error" => {
                Ok(Some(text.clone()))
            }
            _ => Err(malformed("a reply without arguments")),
        },
        _ => Err(malformed("expected a reply")),
    }
}

/// Writes a cue: as QLab's `/cue/NUMBER/start`, or with the address and arguments of its values `osc` and `args`.
///
/// # Errors
/// The field that cannot be part of an OSC message.
pub fn encode_cue(cue: &Cue) -> Result<Vec<u8>, OscError> {
    let wrong = |field, problem| OscError::Field { field, problem };
    let verb = match cue.action {
        Action::Go => "start",
        Action::Standby => "load",
        Action::Undo => "undo",
        Action::Stop => return message("/stop", Vec::new()),
        Action::Lead | Action::Check => return Err(wrong("action", "nothing to send")),
    };
    if let (Action::Go, Some(address)) = (cue.action, cue.values.get(ADDRESS)) {
        let address = address.as_str().filter(|address| is_address(address));
        let problem = "expected an OSC address such as /light/level";
        let address = address.ok_or_else(|| wrong(ADDRESS, problem))?;
        let problem = "expected a list of numbers, texts and booleans";
        let values = match cue.values.get(ARGUMENTS) {
            None => &[][..],
            Some(Value::Array(values)) => &values[..],
            Some(_) => return Err(wrong(ARGUMENTS, problem)),
        };
        let args: Option<Vec<_>> = values.iter().map(argument).collect();
        return message(address, args.ok_or_else(|| wrong(ARGUMENTS, problem))?);
    }
    let address = format!("/cue/{}/{verb}", cue.number);
    match is_address(&address) && !cue.number.contains('/') {
        true => message(&address, Vec::new()),
        false => Err(wrong(
            "number",
            "expected letters, digits and points for OSC",
        )),
    }
}

/// Returns whether it is an address without patterns: printable ASCII but the characters that OSC reserves.
fn is_address(address: &str) -> bool {
    let is_plain = |octet: u8| octet.is_ascii_graphic() && !b"#*,?[]{}".contains(&octet);
    address.starts_with('/') && address.len() > 1 && address.bytes().all(is_plain)
}

fn argument(value: &Value) -> Option<OscType> {
    Some(match value {
        Value::Bool(value) => OscType::Bool(*value),
        Value::String(text) if !text.contains('\0') => OscType::String(text.clone()),
        Value::Number(number) => match number.as_i64().and_then(|it| i32::try_from(it).ok()) {
            Some(number) => OscType::Int(number),
            None => OscType::Float(number.as_f64()? as f32),
        },
        _ => return None,
    })
}

fn message(address: &str, args: Vec<OscType>) -> Result<Vec<u8>, OscError> {
    let has_zero = |arg: &OscType| matches!(arg, OscType::String(text) if text.contains('\0'));
    if args.iter().any(has_zero) {
        return Err(malformed("a text with an octet of zero"));
    }
    let packet = OscPacket::Message(OscMessage {
        addr: address.to_owned(),
        args,
    });
    rosc::encoder::encode(&packet).map_err(|error| malformed(&format!("{error:?}")))
}

/// Writes a packet for TCP, as SLIP: OSC 1.1.
pub fn encode_slip(packet: &[u8]) -> Vec<u8> {
    let mut framed = vec![END];
    for octet in packet {
        match *octet {
            END => framed.extend([ESC, ESC_END]),
            ESC => framed.extend([ESC, ESC_ESC]),
            other => framed.push(other),
        }
    }
    framed.push(END);
    framed
}

/// Cuts a TCP stream into packets: SLIP (OSC 1.1), or lengths of four octets (OSC 1.0), as the first octet tells.
#[derive(Debug, Default)]
pub struct Frames {
    framing: Option<Framing>,
    /// The packet so far; with lengths, its length first.
    packet: Vec<u8>,
    is_escaped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Slip,
    Lengths,
}

impl Frames {
    /// Reads octets, and returns the packets that they complete.
    ///
    /// # Errors
    /// If a packet is too long, or SLIP is damaged: the connection cannot be read any further.
    pub fn read(&mut self, octets: &[u8]) -> Result<Vec<Vec<u8>>, OscError> {
        let mut packets = Vec::new();
        for octet in octets {
            // Packets begin with '/' or '#', and those below 16 MiB have a length that begins with zero.
            let framing = *self.framing.get_or_insert(match octet {
                0 => Framing::Lengths,
                _ => Framing::Slip,
            });
            let complete = match framing {
                Framing::Slip => self.read_slip(*octet)?,
                Framing::Lengths => self.read_length(*octet)?,
            };
            packets.extend(complete);
        }
        Ok(packets)
    }

    /// Writes a packet for the sender of this stream, framed as its own are.
    pub fn frame(&self, packet: &[u8]) -> Vec<u8> {
        match (self.framing, u32::try_from(packet.len())) {
            (Some(Framing::Lengths), Ok(length)) => [&length.to_be_bytes(), packet].concat(),
            _ => encode_slip(packet),
        }
    }

    fn read_slip(&mut self, octet: u8) -> Result<Option<Vec<u8>>, OscError> {
        let octet = match (core::mem::take(&mut self.is_escaped), octet) {
            (false, END) => {
                let packet = core::mem::take(&mut self.packet);
                return Ok(Some(packet).filter(|packet| !packet.is_empty()));
            }
            (false, ESC) => {
                self.is_escaped = true;
                return Ok(None);
            }
            (false, octet) => octet,
            (true, ESC_END) => END,
            (true, ESC_ESC) => ESC,
            (true, other) => return Err(OscError::Escape(other)),
        };
        if self.packet.len() == MAX_FRAME {
            return Err(OscError::TooLong);
        }
        self.packet.push(octet);
        Ok(None)
    }

    fn read_length(&mut self, octet: u8) -> Result<Option<Vec<u8>>, OscError> {
        self.packet.push(octet);
        let Some((length, packet)) = self.packet.split_first_chunk() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > MAX_FRAME {
            return Err(OscError::TooLong);
        }
        if packet.len() < length {
            return Ok(None);
        }
        let packet = packet.to_vec();
        self.packet.clear();
        Ok(Some(packet).filter(|packet| !packet.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use namecast_units::Timestamp;
    use serde_json::json;

    use super::super::cue::CueId;
    use super::*;

    /// A message by hand: address, type tags and arguments, each padded to four octets.
    fn by_hand(parts: &[&[u8]]) -> Vec<u8> {
        let mut octets = Vec::new();
        for part in parts {
            octets.extend_from_slice(part);
            octets.resize(octets.len().next_multiple_of(4), 0);
        }
        octets
    }

    fn bundle(elements: &[Vec<u8>]) -> Vec<u8> {
        let mut octets = [BUNDLE, &[0, 0, 0, 0, 0, 0, 0, 1]].concat();
        for element in elements {
            octets.extend_from_slice(&u32::try_from(element.len()).unwrap().to_be_bytes());
            octets.extend_from_slice(element);
        }
        octets
    }

    fn nested(depth: usize) -> Vec<u8> {
        let go = by_hand(&[b"/go\0", b",\0"]);
        (0..depth).fold(go, |inner, _| bundle(&[inner]))
    }

    fn number(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn addresses_of_qlab_are_presses() {
        let read = |address: &[u8]| decode(&by_hand(&[address, b",\0"])).map(|mut it| it.remove(0));
        assert_eq!(read(b"/go\0"), Ok(Press::Go(None)));
        assert_eq!(read(b"/cue/12.5/start\0"), Ok(Press::Go(number("12.5"))));
        assert_eq!(
            read(b"/workspace/ab/cue/7/start\0"),
            Ok(Press::Go(number("7")))
        );
        assert_eq!(read(b"/cue/7/load\0"), Ok(Press::Standby(number("7"))));
        assert_eq!(read(b"/cue/7/undo\0"), Ok(Press::Undo(number("7"))));
        assert_eq!(read(b"/panic\0"), Ok(Press::Stop));
        assert_eq!(
            decode(&by_hand(&[b"/go\0", b",s\0", b"1.5\0"])),
            Ok(vec![Press::Go(number("1.5"))])
        );
        assert_eq!(
            decode(&by_hand(&[b"/go\0", b",i\0", &[0, 0, 0, 9]])),
            Ok(vec![Press::Go(number("9"))])
        );
        // Type tags may be left out.
        assert_eq!(
            decode(&by_hand(&[b"/stop\0", b"\0"])),
            Ok(vec![Press::Stop])
        );
        let unknown = read(b"/cue/7/color\0").unwrap_err().to_string();
        assert!(
            unknown.starts_with("'/cue/7/color' is no address"),
            "{unknown}"
        );
        let both = [
            by_hand(&[b"/cue/1/load\0", b",\0"]),
            by_hand(&[b"/go\0", b",\0"]),
        ];
        assert_eq!(
            decode(&bundle(&both)),
            Ok(vec![Press::Standby(number("1")), Press::Go(None)])
        );
    }

    /// A datagram of 3 270 bundles in each other has 65 408 octets. On a thread with a small stack, in case that anything recurses.
    #[test]
    fn nested_bundles_and_arrays_are_refused_before_they_are_decoded() {
        assert_eq!(decode(&nested(8)), Ok(vec![Press::Go(None)]));
        assert_eq!(decode(&nested(9)), Err(OscError::TooDeep));
        let small = std::thread::Builder::new().stack_size(64 * 1_024);
        let refused = small.spawn(|| {
            let bundles = nested(3_270);
            assert_eq!(bundles.len(), 65_408);
            // Arrays that `rosc` decodes by a loop and drops by recursion.
            let tags = [&b","[..], &b"[".repeat(30_000), &b"]".repeat(30_000), b"\0"].concat();
            let arrays = by_hand(&[b"/go\0", &tags]);
            let many = bundle(&vec![nested(0); 65]);
            // An element that is not aligned, in which `rosc` looks for padding elsewhere.
            let odd = [&bundle(&[]), &[0, 0, 0, 5][..], b"#bund\0\0\0"].concat();
            [bundles, arrays, many, odd].map(|packet| decode(&packet).unwrap_err())
        });
        let refused = refused.unwrap().join().unwrap();
        assert_eq!(
            refused[..3],
            [OscError::TooDeep, OscError::TooDeep, OscError::TooMany]
        );
        assert_eq!(refused[3], OscError::Length(16));
    }

    #[test]
    fn presses_and_answers_are_read_as_they_were_written() {
        for press in [
            Press::Go(None),
            Press::Go(number("1 2")),
            Press::Standby(number("3")),
            Press::Undo(None),
            Press::Stop,
            Press::Take,
        ] {
            assert_eq!(decode(&encode_press(&press).unwrap()), Ok(vec![press]));
        }
        assert_eq!(decode_reply(&encode_reply(None).unwrap()), Ok(None));
        let problem = encode_reply(Some("backup leads")).unwrap();
        assert_eq!(decode_reply(&problem), Ok(Some("backup leads".to_owned())));
        assert!(decode_reply(&encode_press(&Press::Stop).unwrap()).is_err());
    }

    fn cue(text: &str, values: Value) -> Cue {
        Cue {
            id: CueId([0; 16]),
            number: text.to_owned(),
            action: Action::Go,
            term: 0,
            at: Timestamp::default(),
            targets: Vec::new(),
            values: values.as_object().unwrap().clone(),
            rehearsal: false,
        }
    }

    #[test]
    fn cues_leave_as_qlab_or_as_their_values_say() {
        let plain = encode_cue(&cue("12.5", json!({}))).unwrap();
        assert_eq!(plain, by_hand(&[b"/cue/12.5/start\0", b",\0"]));
        let values = json!({ "osc": "/level", "args": [1, 0.5, "a", true] });
        let own = encode_cue(&cue("1", values)).unwrap();
        let half = 0.5_f32.to_be_bytes();
        assert_eq!(
            own,
            by_hand(&[b"/level\0", b",ifsT\0", &[0, 0, 0, 1], &half, b"a\0"])
        );
        let refused =
            |number: &str, values| encode_cue(&cue(number, values)).unwrap_err().to_string();
        assert!(refused("a/b", json!({})).starts_with("number: "));
        assert!(refused("*", json!({})).starts_with("number: "));
        assert!(refused("1", json!({ "osc": "level" })).starts_with("osc: "));
        assert!(refused("1", json!({ "osc": "/l", "args": [[1]] })).starts_with("args: "));
    }

    /// Both framings, whole and octet by octet.
    #[test]
    fn tcp_is_cut_into_packets() {
        let packet = [b'/', END, ESC, b'x'];
        let slip = [encode_slip(&packet), encode_slip(b"/go")].concat();
        let lengths = [&[0, 0, 0, 4][..], &packet, &[0, 0, 0, 3], b"/go"].concat();
        for (stream, step) in [(&slip, 1), (&slip, 100), (&lengths, 1), (&lengths, 100)] {
            let mut frames = Frames::default();
            let chunks = stream.chunks(step);
            let read: Vec<_> = chunks
                .flat_map(|chunk| frames.read(chunk).unwrap())
                .collect();
            assert_eq!(read, [packet.to_vec(), b"/go".to_vec()]);
        }
        for (stream, answer) in [(&slip, &slip[..9]), (&lengths, &lengths[..8])] {
            let mut frames = Frames::default();
            frames.read(stream).unwrap();
            assert!(frames.frame(&packet).starts_with(&answer[..8]));
        }
        assert_eq!(
            Frames::default().read(&vec![b'/'; 8_193]),
            Err(OscError::TooLong)
        );
        assert_eq!(
            Frames::default().read(&[0, 0, 0x20, 0x01]),
            Err(OscError::TooLong)
        );
        assert_eq!(
            Frames::default().read(&[END, ESC, 7]),
            Err(OscError::Escape(7))
        );
    }
}
