//! `namecast face`.

use anyhow::bail;
use namecast_command::report::{self, print, print_line};
use namecast_net::FaceUri;
use namecast_net::management::{
    CONGESTION_MARKING, ClientError, ControlParameters, FaceStatus, LOCAL_FIELDS, LP_RELIABILITY,
};
use namecast_units::{ByteSize, Duration};

use super::arguments::{FaceArguments, FaceWhat, Switch, Target};
use super::connection::{Forwarder, canonical};
use super::{flag_names, print_json};

/// Does what is asked for.
pub(super) async fn run(
    forwarder: &mut Forwarder,
    what: FaceWhat,
    target: &Target,
) -> anyhow::Result<()> {
    match what {
        FaceWhat::List => {
            let faces: Vec<FaceStatus> = forwarder.list("faces/list").await?;
            match target.json {
                true => print_json(&faces)?,
                false => print(table(&faces))?,
            }
        }
        FaceWhat::Show { face } => {
            let face = forwarder.known_face(&face).await?;
            show(&face, target)?;
        }
        FaceWhat::Create {
            uri,
            interface,
            options,
        } => {
            let number = create(forwarder, (&uri, interface.as_ref()), &options).await?;
            tell(forwarder, number, target).await?;
        }
        FaceWhat::Update { face, options } => {
            let face = forwarder.known_face(&face).await?.face;
            let parameters = ControlParameters {
                face: Some(face),
                ..parameters(&options)
            };
            forwarder.command("faces/update", &parameters).await?;
            tell(forwarder, face, target).await?;
        }
        FaceWhat::Destroy { face } => {
            let face = forwarder.known_face(&face).await?;
            let parameters = ControlParameters {
                face: Some(face.face),
                ..ControlParameters::default()
            };
            forwarder.command("faces/destroy", &parameters).await?;
            match target.json {
                true => print_json(&face)?,
                false => print_line(format_args!(
                    "face {} to {} is gone",
                    face.face,
                    report::printable(&face.uri)
                ))?,
            }
        }
    }
    Ok(())
}

/// Makes a face to an address, from one of the forwarder's if that is said, and gives its number.
pub(super) async fn create(
    forwarder: &mut Forwarder,
    (uri, local): (&FaceUri, Option<&FaceUri>),
    options: &FaceArguments,
) -> anyhow::Result<u64> {
    let uri = &canonical(uri).await?;
    let parameters = ControlParameters {
        uri: Some(uri.to_string()),
        local_uri: local.map(ToString::to_string),
        ..parameters(options)
    };
    let done = forwarder
        .client()
        .command("faces/create", &parameters)
        .await;
    match done {
        Ok(done) => Ok(done.face.unwrap_or_default()),
        Err(ClientError::Refused {
            code: 409,
            parameters,
            ..
        }) if parameters.face.is_some() => {
            let face = parameters.face.unwrap_or_default();
            bail!("face {face} leads to {uri} already: namecast face update {face} changes it");
        }
        Err(error) => Err(forwarder.explain("faces/create", error)),
    }
}

/// Shows a face as it is now.
async fn tell(forwarder: &mut Forwarder, face: u64, target: &Target) -> anyhow::Result<()> {
    let choice = super::arguments::FaceChoice::Number(face);
    let face = forwarder.known_face(&choice).await?;
    show(&face, target)
}

fn parameters(options: &FaceArguments) -> ControlParameters {
    let (mut flags, mut mask) = (0, 0);
    for (flag, switch) in [
        (LOCAL_FIELDS, options.local_fields),
        (LP_RELIABILITY, options.reliability),
        (CONGESTION_MARKING, options.congestion_marking),
    ] {
        if let Some(switch) = switch {
            mask |= flag;
            flags |= if switch == Switch::On { flag } else { 0 };
        }
    }
    ControlParameters {
        flags: (mask != 0).then_some(flags),
        mask: (mask != 0).then_some(mask),
        persistency: options
            .persistency
            .map(|persistency| namecast_net::Persistency::from(persistency).number()),
        mtu: options.mtu.map(ByteSize::as_bytes),
        default_congestion_threshold: options.congestion_threshold.map(ByteSize::as_bytes),
        base_congestion_marking_interval: options
            .congestion_interval
            .map(|interval| u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX)),
        ..ControlParameters::default()
    }
}

/// All faces, a line each.
pub(super) fn table(faces: &[FaceStatus]) -> String {
    let head = [
        "FACE",
        "REMOTE",
        "LOCAL",
        "ENDS",
        "OPTIONS",
        "MTU",
        "IN",
        "OUT",
        "OCTETS IN",
        "OCTETS OUT",
    ];
    let rows = faces.iter().map(|face| {
        [
            face.face.to_string(),
            face.uri.clone(),
            face.local_uri.clone(),
            persistency(face).to_owned(),
            options(face),
            face.mtu
                .map_or_else(|| "–".to_owned(), |mtu| mtu.to_string()),
            format!(
                "{} / {} / {}",
                face.in_interests, face.in_data, face.in_nacks
            ),
            format!(
                "{} / {} / {}",
                face.out_interests, face.out_data, face.out_nacks
            ),
            face.in_octets.to_string(),
            face.out_octets.to_string(),
        ]
    });
    report::table(head, rows)
}

fn show(face: &FaceStatus, target: &Target) -> anyhow::Result<()> {
    if target.json {
        return print_json(face);
    }
    let scope = match face.scope {
        0 => "another machine",
        _ => "this machine",
    };
    let link = match face.link_type {
        0 => "point to point",
        1 => "multi-access",
        _ => "ad hoc",
    };
    let none = || "–".to_owned();
    let optional = |number: Option<u64>, unit: &str| {
        number.map_or_else(none, |number| format!("{number}{unit}"))
    };
    let ends = match face.expiration_millis {
        Some(millis) => format!("{}, in {} s of silence", persistency(face), millis / 1_000),
        None => persistency(face).to_owned(),
    };
    let packets = |interests, data, nacks, octets| {
        format!("{interests} Interests, {data} Data, {nacks} Nacks, {octets} octets")
    };
    let rows = [
        ("face", face.face.to_string()),
        ("remote", face.uri.clone()),
        ("local", face.local_uri.clone()),
        ("peer on", scope.to_owned()),
        ("link", link.to_owned()),
        ("ends", ends),
        ("options", options(face)),
        ("MTU", optional(face.mtu, " octets")),
        (
            "marks from",
            optional(face.default_congestion_threshold, " octets queued"),
        ),
        (
            "marks after",
            face.base_congestion_marking_interval
                .map_or_else(none, |nanos| format!("{:?}", Duration::from_nanos(nanos))),
        ),
        (
            "in",
            packets(
                face.in_interests,
                face.in_data,
                face.in_nacks,
                face.in_octets,
            ),
        ),
        (
            "out",
            packets(
                face.out_interests,
                face.out_data,
                face.out_nacks,
                face.out_octets,
            ),
        ),
    ];
    let rows: Vec<_> = rows.map(|(what, text)| [what.to_owned(), text]).into();
    print(report::columns(&rows))?;
    Ok(())
}

const fn persistency(face: &FaceStatus) -> &'static str {
    match face.persistency {
        0 => "persistent",
        1 => "on demand",
        _ => "permanent",
    }
}

fn options(face: &FaceStatus) -> String {
    let named = [
        (LOCAL_FIELDS, "local-fields"),
        (LP_RELIABILITY, "reliability"),
        (CONGESTION_MARKING, "congestion-marking"),
    ];
    flag_names(face.flags, &named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_face_is_told_in_words() {
        let face = FaceStatus {
            face: 264,
            uri: "udp4://192.0.2.1:6363".to_owned(),
            local_uri: "null://".to_owned(),
            flags: 3,
            mtu: Some(1_252),
            persistency: 2,
            in_interests: 5,
            in_data: 6,
            out_nacks: 7,
            in_octets: 80,
            out_octets: 90,
            ..FaceStatus::default()
        };
        let table = table(&[face]);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].starts_with("FACE  REMOTE "), "{table}");
        let cells: Vec<&str> = lines[1]
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect();
        let expected = [
            "264",
            "udp4://192.0.2.1:6363",
            "null://",
            "permanent",
            "local-fields,reliability",
            "1252",
            "5 / 6 / 0",
            "0 / 0 / 7",
            "80",
            "90",
        ];
        assert_eq!(cells, expected);
    }

    /// Only what is said is meant.
    #[test]
    fn options_become_flags_with_their_mask() {
        let options = FaceArguments {
            persistency: None,
            reliability: Some(Switch::On),
            local_fields: Some(Switch::Off),
            congestion_marking: None,
            congestion_threshold: Some(ByteSize::bytes(30_000)),
            congestion_interval: Some(Duration::from_millis(20)),
            mtu: Some(ByteSize::bytes(1_200)),
        };
        let expected = ControlParameters {
            flags: Some(2),
            mask: Some(3),
            mtu: Some(1_200),
            default_congestion_threshold: Some(30_000),
            base_congestion_marking_interval: Some(20_000_000),
            ..ControlParameters::default()
        };
        assert_eq!(parameters(&options), expected);
    }
}
