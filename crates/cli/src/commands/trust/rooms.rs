//! Rooms: their anchors, members, revocations, and members who left.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use namecast_apps::trust::schema::{Limits, Schema};
use namecast_apps::trust::template::Template;
use namecast_apps::trust::{EXCHANGE_KEY, MAX_TEXT};
use namecast_command::parse_duration;
use namecast_command::report::{local, print, print_error, print_line, rfc3339};
use namecast_net::{Clock, Identity};
use namecast_packet::{Certificate, Component, Description, KeyLocator, Name, PublicKey, Validity};
use namecast_units::Duration;
use serde_json::json;

use super::TemplateName;
use crate::arguments::Keys;
use crate::certificate_file;
use crate::commands::PastTime;
use crate::commands::key_store;
use crate::hexadecimal::hex;
use crate::known_keys::parse_digest;
use crate::rooms::{Certified, Rooms, identity_of};

/// Issuer in the names of requests.
const REQUEST: &str = "request";

/// Makes a room.
#[derive(Debug, Args)]
pub struct Init {
    /// Root of the room, such as /calls/fox. Its key is the anchor, which is made if there is none.
    pub name: Name,
    /// Template of the rules.
    #[arg(long, value_enum, default_value_t = TemplateName::Call)]
    pub template: TemplateName,
    /// Use this schema, as text, instead of a template.
    #[arg(long, value_name = "FILE", conflicts_with = "template")]
    pub schema: Option<PathBuf>,
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
}

/// Requests a certificate.
#[derive(Debug, Args)]
pub struct Request {
    /// Name of who is to hold the key, such as /calls/fox/ann. The key is made if there is none.
    pub name: Name,
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
}

/// Certifies a key.
#[derive(Debug, Args)]
pub struct Sign {
    /// The request, as `namecast trust request` printed it.
    pub request: PathBuf,
    /// Name to certify the key under, instead of the one in the request.
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<Name>,
    /// How long the certificate is valid.
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = parse_duration)]
    pub valid: Duration,
    /// Role in the roster, for people.
    #[arg(long, default_value = "member", value_parser = parse_text)]
    pub role: String,
    /// Name shown to people.
    #[arg(long, default_value = "", value_parser = parse_text)]
    pub label: String,
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
}

/// Reads a role or a label.
pub(super) fn parse_text(text: &str) -> Result<String, String> {
    match text.len() <= MAX_TEXT && !text.chars().any(char::is_control) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "write up to {MAX_TEXT} bytes without control characters"
        )),
    }
}

pub(super) fn init(arguments: Init) -> anyhow::Result<()> {
    let Init {
        name,
        template,
        schema,
        keys,
    } = arguments;
    let text = match &schema {
        Some(path) => {
            let text = std::fs::read_to_string(path);
            text.with_context(|| format!("cannot read {}", path.display()))?
        }
        None => Template::from(template).rules(&name),
    };
    let compiled = Schema::compile(&text, &Limits::default())?;
    let anchor = key_store(keys.keys)?.anchor(&name)?;
    let certificate = Certificate::decode(anchor.certificate)?;
    let roster = name.builder().keyword("roster").version(1).segment(0);
    ensure!(
        compiled
            .check(&roster.finish(), certificate.name())?
            .is_some(),
        "the schema does not let the key of {name} sign the roster {name}/32=roster: add a rule for it, as `namecast trust template {name}` has"
    );
    Rooms::open()?.create(&name, text)?;
    let digest = hex(&certificate.public_key()?.digest());
    print_line(format_args!("{name}, anchor {digest}"))?;
    print_error(format!(
        "Certify members with `namecast trust sign REQUEST`, and serve schema and roster with `namecast trust serve {name}`"
    ));
    Ok(())
}

pub(super) fn request(arguments: Request) -> anyhow::Result<()> {
    let Request { name, keys } = arguments;
    let store = key_store(keys.keys)?;
    let identity = store.identity(&name)?;
    let own = Certificate::decode(identity.certificate.clone())?;
    let now = Clock::new().wall();
    let exchange = Description {
        key: EXCHANGE_KEY.into(),
        value: store.exchange_secret(&name)?.public().to_vec().into(),
    };
    let request = own.key_name().builder().generic(REQUEST);
    let request = Certificate::issue(
        request.version(now.as_micros() / 1_000).finish(),
        &own.public_key()?,
        own.validity(),
        &[exchange],
        &*identity.signer,
    )?;
    print(certificate_file::text(request.data()))?;
    print_error(format!(
        "Send this to who holds the anchor, who runs `namecast trust sign FILE`; then run `namecast trust install ANSWER`. Key digest {}",
        hex(&own.public_key()?.digest())
    ));
    Ok(())
}

pub(super) fn sign(arguments: Sign) -> anyhow::Result<()> {
    let request = certificate_file::read(&arguments.request)?;
    let key = request.public_key()?;
    let verified = request.data().verify(&key);
    verified.context("the request is not signed with the key that it is for")?;
    let identity = arguments.name.unwrap_or_else(|| request.identity());
    let rooms = Rooms::open()?;
    let root = rooms.root_of(&identity.parent())?;
    ensure_name(&root, &identity)?;
    let schema = rooms.get(&root)?.compiled()?;
    let anchor = key_store(arguments.keys.keys)?.anchor(&root)?;
    let now = Clock::new().wall();
    let validity = Validity {
        not_before: now,
        not_after: now + arguments.valid,
    };
    let issuing = Issuing {
        root: &root,
        schema: &schema,
        anchor: &anchor,
        validity,
    };
    let of = (&key, request.key_id());
    let certificate = issuing.certify(&identity, of, request.descriptions())?;
    let member = Certified {
        certificate: certificate.clone(),
        role: arguments.role,
        label: arguments.label,
    };
    let version = rooms.change(&root, |room| {
        room.add(&member)?;
        Ok(room.roster_version)
    })?;
    print(certificate_file::text(certificate.data()))?;
    print_error(format!(
        "Certified {identity} until {}, roster version {version}; the member runs `namecast trust install FILE`",
        local(validity.not_after)
    ));
    Ok(())
}

/// Issuer of a room's certificates.
pub(super) struct Issuing<'a> {
    pub(super) root: &'a Name,
    pub(super) schema: &'a Schema,
    pub(super) anchor: &'a Identity,
    pub(super) validity: Validity,
}

impl Issuing<'_> {
    /// Certifies `key` as `identity`.
    ///
    /// # Errors
    /// If the schema does not allow it.
    pub(super) fn certify(
        &self,
        identity: &Name,
        (key, key_id): (&PublicKey, Component<'_>),
        said: &[Description],
    ) -> anyhow::Result<Certificate> {
        let issuer = self.root.last().unwrap_or(Component::generic("root"));
        let name = identity.builder().generic("KEY").component(key_id);
        let version = self.validity.not_before.as_micros() / 1_000;
        let name = name.component(issuer).version(version).finish();
        let anchor = self.anchor.certificate.name();
        ensure!(
            self.schema.check(&name, anchor)?.is_some(),
            "the schema of {} does not let the anchor certify {identity}",
            self.root
        );
        let signer = &*self.anchor.signer;
        Ok(Certificate::issue(name, key, self.validity, said, signer)?)
    }
}

/// Checks a member's name: generic components of letters, digits and `-` below the root, and none that begins a key's name.
fn ensure_name(root: &Name, identity: &Name) -> anyhow::Result<()> {
    for component in identity.components().skip(root.len()) {
        let is_plain = |octet: &u8| octet.is_ascii_alphanumeric() || *octet == b'-';
        let is_word = component.kind == Component::GENERIC
            && !component.value.is_empty()
            && component.value.iter().all(is_plain);
        ensure!(
            is_word && component.value != b"KEY",
            "{identity} is no name for a member: below {root} write letters, digits and '-', and not KEY"
        );
    }
    Ok(())
}

pub(super) fn install(file: &Path, keys: Keys) -> anyhow::Result<()> {
    let certificate = certificate_file::read(file)?;
    let info = certificate.data().signature_info();
    let is_own = match &info.key_locator {
        Some(KeyLocator::Name(name)) => certificate.key_name().is_prefix_of(name),
        _ => true,
    };
    ensure!(
        !is_own,
        "{} is a request, or signed with its own key: install the certificate that `namecast trust sign` printed",
        file.display()
    );
    key_store(keys.keys)?.install(&certificate)?;
    print_line(format_args!(
        "{} is certified until {}",
        certificate.identity(),
        local(certificate.validity().not_after)
    ))
}

pub(super) fn revoke(
    who: &str,
    room: Option<&Name>,
    since: Option<PastTime>,
) -> anyhow::Result<()> {
    let rooms = Rooms::open()?;
    let now = Clock::new().wall();
    let since = since.map_or(now, |since| since.resolve(now).min(now));
    let digest = parse_digest(who);
    let (roots, name) = match (digest, who.parse::<Name>()) {
        (Some(_), _) => match room {
            Some(room) => (vec![room.clone()], None),
            None => (rooms.roots()?, None),
        },
        (None, Ok(name)) if who.starts_with('/') => {
            (vec![rooms.root_of(&name.parent())?], Some(name))
        }
        _ => bail!("'{who}' is neither a member's name nor the digest of a key"),
    };
    let mut total = 0;
    for root in roots {
        let revoked = rooms.change(&root, |room| {
            room.revoke(since, |certificate, key| {
                Some(*key) == digest || name.as_ref() == Some(&identity_of(certificate))
            })
        })?;
        for certificate in &revoked {
            print_line(format_args!("revoked {certificate} at {}", rfc3339(since)))?;
        }
        total += revoked.len();
    }
    ensure!(
        total > 0,
        "{who} is no member, or was revoked before: see namecast trust members"
    );
    Ok(())
}

pub(super) fn members(room: Option<Name>, as_json: bool) -> anyhow::Result<()> {
    let rooms = Rooms::open()?;
    let roots = match room {
        Some(room) => vec![room],
        None => rooms.roots()?,
    };
    let mut rows = vec![["NAME", "ROLE", "UNTIL", "KEY"].map(str::to_owned)];
    let mut objects = Vec::new();
    for root in roots {
        let room = rooms.get(&root)?;
        let roster = room.roster()?;
        for member in &roster.members {
            let name = member.identity().to_string();
            let key = hex(&member.key_digest);
            rows.push([
                name.clone(),
                member.role.clone(),
                local(member.until),
                key[..16].to_owned(),
            ]);
            objects.push(json!({
                "name": name, "role": member.role, "label": member.label, "until": rfc3339(member.until),
                "key_digest": key, "certificate": member.certificate.to_string(), "revoked": null,
            }));
        }
        for left in room.left()? {
            let name = left.certificate.identity().to_string();
            let key = hex(&left.key_digest()?);
            rows.push([
                name.clone(),
                "left".to_owned(),
                local(left.at),
                key[..16].to_owned(),
            ]);
            objects.push(json!({
                "name": name, "key_digest": key, "certificate": left.certificate.name().to_string(),
                "left": rfc3339(left.at), "revoked": null,
            }));
        }
        for revocation in &roster.revocations {
            let certificate = &revocation.certificate;
            let name = identity_of(certificate).to_string();
            let key = hex(&revocation.key_digest);
            rows.push([
                name.clone(),
                "revoked".to_owned(),
                local(revocation.since),
                key[..16].to_owned(),
            ]);
            objects.push(json!({
                "name": name, "key_digest": key, "certificate": certificate.to_string(),
                "revoked": rfc3339(revocation.since),
            }));
        }
    }
    match as_json {
        true => print_line(serde_json::to_string_pretty(&objects)?),
        false => print(namecast_command::report::columns(&rows)),
    }
}
