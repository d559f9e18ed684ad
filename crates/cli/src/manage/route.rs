//! `namecast route`.

use std::collections::BTreeMap;

use namecast_command::report::{self, print, print_line};
use namecast_net::management::{
    CAPTURE, CHILD_INHERIT, ControlParameters, FaceStatus, PRECEDE, RibEntry, RibRoute,
};

use super::arguments::{FaceArguments, FaceChoice, Origin, RouteWhat, Target};
use super::connection::Forwarder;
use super::{face, flag_names, print_json};

const AS_MADE: FaceArguments = FaceArguments {
    persistency: None,
    reliability: None,
    local_fields: None,
    congestion_marking: None,
    congestion_threshold: None,
    congestion_interval: None,
    mtu: None,
};

/// Does what is asked for.
pub(super) async fn run(
    forwarder: &mut Forwarder,
    what: RouteWhat,
    target: &Target,
) -> anyhow::Result<()> {
    let done = match what {
        RouteWhat::List => {
            let entries: Vec<RibEntry> = forwarder.list("rib/list").await?;
            if target.json {
                return print_json(&entries);
            }
            let faces: Vec<FaceStatus> = forwarder.list("faces/list").await?;
            return print(table(&entries, &faces));
        }
        RouteWhat::Add {
            prefix,
            face,
            cost,
            origin,
            no_inherit,
            capture,
            expires,
        } => {
            let inherit = if no_inherit { 0 } else { CHILD_INHERIT };
            let capture = if capture { CAPTURE } else { 0 };
            let parameters = ControlParameters {
                name: Some(prefix),
                face: Some(leading(forwarder, &face).await?),
                origin: Some(origin.0),
                cost: Some(cost),
                flags: Some(inherit | capture),
                expiration: expires,
                ..ControlParameters::default()
            };
            forwarder.command("rib/register", &parameters).await?
        }
        RouteWhat::Remove {
            prefix,
            face,
            origin,
        } => {
            let parameters = ControlParameters {
                name: Some(prefix),
                face: Some(forwarder.known_face(&face).await?.face),
                origin: Some(origin.0),
                ..ControlParameters::default()
            };
            forwarder.command("rib/unregister", &parameters).await?
        }
    };
    let route = RibRoute {
        face: done.face.unwrap_or_default(),
        origin: done.origin.unwrap_or_default(),
        cost: done.cost.unwrap_or_default(),
        flags: done.flags.unwrap_or_default(),
        expiration_millis: None,
    };
    let prefix = done.name.unwrap_or_default();
    match (target.json, done.cost) {
        (true, _) => print_json(&RibEntry {
            prefix,
            routes: vec![route],
        })?,
        (false, Some(cost)) => print_line(format_args!(
            "{prefix} goes to face {}, cost {cost}",
            route.face
        ))?,
        (false, None) => print_line(format_args!(
            "{prefix} does not go to face {} any more",
            route.face
        ))?,
    }
    Ok(())
}

/// The number of the face that is meant, which is made if it is an address that no face leads to.
async fn leading(forwarder: &mut Forwarder, choice: &FaceChoice) -> anyhow::Result<u64> {
    match (forwarder.face(choice).await?, choice) {
        (Some(face), _) => Ok(face.face),
        (None, FaceChoice::Uri(uri)) => face::create(forwarder, (uri, None), &AS_MADE).await,
        (None, FaceChoice::Number(_)) => Ok(forwarder.known_face(choice).await?.face),
    }
}

/// All routes, a line each.
pub(super) fn table(entries: &[RibEntry], faces: &[FaceStatus]) -> String {
    let remotes: BTreeMap<u64, &str> = faces
        .iter()
        .map(|face| (face.face, face.uri.as_str()))
        .collect();
    let head = [
        "PREFIX", "FACE", "REMOTE", "COST", "ORIGIN", "FLAGS", "EXPIRES",
    ];
    let rows = entries.iter().flat_map(|entry| {
        entry.routes.iter().map(|route| {
            [
                entry.prefix.to_string(),
                route.face.to_string(),
                remotes.get(&route.face).unwrap_or(&"–").to_string(),
                route.cost.to_string(),
                Origin(route.origin).to_string(),
                flags(route.flags),
                route.expiration_millis.map_or_else(
                    || "never".to_owned(),
                    |millis| format!("{} s", millis / 1_000),
                ),
            ]
        })
    });
    report::table(head, rows)
}

fn flags(flags: u64) -> String {
    let named = [
        (CHILD_INHERIT, "child-inherit"),
        (CAPTURE, "capture"),
        (PRECEDE, "precede"),
    ];
    flag_names(flags, &named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_listed_with_where_they_lead() {
        let route = |face, origin, expiration_millis| RibRoute {
            face,
            origin,
            cost: 9,
            flags: 1,
            expiration_millis,
        };
        let entries = [RibEntry {
            prefix: "/a".parse().unwrap(),
            routes: vec![route(300, 255, None), route(301, 65, Some(2_500))],
        }];
        let faces = [FaceStatus {
            face: 300,
            uri: "fd://3".to_owned(),
            ..FaceStatus::default()
        }];
        let expected = "\
PREFIX  FACE  REMOTE  COST  ORIGIN  FLAGS          EXPIRES
/a      300   fd://3  9     static  child-inherit  never
/a      301   –       9     client  child-inherit  2 s
";
        assert_eq!(table(&entries, &faces), expected);
    }
}
