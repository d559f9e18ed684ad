//! Rooms: roots of which this machine's user holds the anchor's key, with their schemas, members and revocations.
//!
//! One file for each, as JSON, in `namecast/rooms` in the user's data directory. Whoever changes it holds a lock, reads it again, and puts a
//! whole new file in its place.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use namecast_apps::room::{InvitationSecret, Join};
use namecast_apps::trust::schema::{Limits, Schema};
use namecast_apps::trust::{EXCHANGE_KEY, Member, Revocation, Roster};
use namecast_archive::sync_directory;
use namecast_net::make_private_directory;
use namecast_packet::{Certificate, Data, Name, hex_decode};
use namecast_units::{Duration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::hexadecimal::hex;
use crate::places;

/// What the files say they are.
const FORMAT: &str = "namecast room, version 1";
/// Largest file that is read, in bytes: a member takes some 800.
const MAX_FILE_SIZE: u64 = 16 << 20;
/// Members, and revocations, that a room may have.
const MAX_MEMBERS: usize = 10_000;
/// Invitations, and newcomers to whom somebody said yes, that a room may have.
const MAX_INVITATIONS: usize = 256;

/// A root with its schema, members and revocations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Room {
    format: String,
    root: String,
    /// The schema, as text.
    pub schema: String,
    /// Its version.
    pub schema_version: u64,
    /// Version of members and revocations.
    pub roster_version: u64,
    members: Vec<MemberEntry>,
    revocations: Vec<RevocationEntry>,
    /// Members who left: their names stay theirs.
    #[serde(default)]
    left: Vec<LeftEntry>,
    #[serde(default)]
    invitations: Vec<InvitationEntry>,
    /// Beginnings of the digests of newcomers' keys, to whom somebody said yes.
    #[serde(default)]
    admitted: Vec<String>,
}

/// An invitation.
#[derive(Clone, Debug)]
pub(crate) struct Invitation {
    /// Digest of the token.
    pub secret: InvitationSecret,
    /// Role of those who join.
    pub role: String,
    /// How many may join; `None`: any number.
    pub uses: Option<u32>,
    /// When it ends.
    pub until: Timestamp,
    /// How long certificates are valid.
    pub valid: Duration,
}

/// An invitation, as the file has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct InvitationEntry {
    /// SHA-256 digest of the token, in hexadecimal.
    secret: String,
    role: String,
    /// Left; `None`: any number.
    uses: Option<u32>,
    /// Microseconds since 1970.
    until: u64,
    /// Seconds for which certificates are valid.
    valid: u64,
    /// When the link was made, in microseconds since 1970. Members who left later do not come back by it: somebody may have captured their requests.
    #[serde(default)]
    made_at: u64,
}

/// Outcome of a request to join.
#[derive(Clone, Debug)]
pub(crate) enum Joined {
    /// The newcomer has this certificate; `is_new`: since now.
    Member {
        /// The certificate.
        certificate: Box<Certificate>,
        /// Whether it was issued for this request.
        is_new: bool,
    },
    /// The newcomer is refused, for this reason.
    Refused(&'static str),
}

/// A member, as the file has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct MemberEntry {
    /// The certificate, in hexadecimal.
    certificate: String,
    role: String,
    #[serde(default)]
    label: String,
}

/// A revocation, as the file has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RevocationEntry {
    certificate: String,
    key_digest: String,
    /// Microseconds since 1970.
    since: u64,
}

/// A member who left, as the file has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LeftEntry {
    /// The certificate, in hexadecimal.
    certificate: String,
    /// Microseconds since 1970.
    at: u64,
}

/// A member who left.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    pub certificate: Certificate,
    pub at: Timestamp,
}

impl Left {
    pub(crate) fn key_digest(&self) -> anyhow::Result<[u8; 32]> {
        Ok(self.certificate.public_key()?.digest())
    }
}

/// A member with the certificate.
#[derive(Clone, Debug)]
pub(crate) struct Certified {
    pub certificate: Certificate,
    pub role: String,
    pub label: String,
}

impl Certified {
    /// Returns the entry of the roster.
    pub(crate) fn member(&self) -> anyhow::Result<Member> {
        let said = self.certificate.descriptions().iter();
        let mut keys = said.filter(|it| it.key == EXCHANGE_KEY.as_bytes());
        let exchange_key = keys.next().and_then(|it| (*it.value).try_into().ok());
        Ok(Member {
            certificate: self.certificate.name().clone(),
            key_digest: self.certificate.public_key()?.digest(),
            until: self.certificate.validity().not_after,
            role: self.role.clone(),
            exchange_key,
            label: self.label.clone(),
        })
    }
}

impl Room {
    /// A room under `root` without members.
    pub(crate) fn new(root: &Name, schema: String) -> Self {
        Self {
            format: FORMAT.to_owned(),
            root: root.to_string(),
            schema,
            schema_version: 1,
            roster_version: 1,
            members: Vec::new(),
            revocations: Vec::new(),
            left: Vec::new(),
            invitations: Vec::new(),
            admitted: Vec::new(),
        }
    }

    /// Returns the compiled schema.
    pub(crate) fn compiled(&self) -> anyhow::Result<Schema> {
        let schema = Schema::compile(&self.schema, &Limits::default());
        schema.with_context(|| format!("the schema of {} is damaged", self.root))
    }

    /// Returns members with their certificates.
    pub(crate) fn members(&self) -> anyhow::Result<Vec<Certified>> {
        let members = self.members.iter().map(|entry| {
            Ok(Certified {
                certificate: certificate_in(&entry.certificate)?,
                role: entry.role.clone(),
                label: entry.label.clone(),
            })
        });
        let members: anyhow::Result<Vec<_>> = members.collect();
        members.with_context(|| format!("a certificate in the room {} is damaged", self.root))
    }

    /// Returns members who left, with their certificates.
    pub(crate) fn left(&self) -> anyhow::Result<Vec<Left>> {
        let left = self.left.iter().map(|entry| {
            Ok(Left {
                certificate: certificate_in(&entry.certificate)?,
                at: Timestamp::from_micros(entry.at),
            })
        });
        let left: anyhow::Result<Vec<_>> = left.collect();
        left.with_context(|| format!("a certificate in the room {} is damaged", self.root))
    }

    fn revocations(&self) -> anyhow::Result<Vec<Revocation>> {
        let revocations = self.revocations.iter().map(|entry| {
            let digest = hex_decode(&entry.key_digest).and_then(|it| it.try_into().ok());
            Ok(Revocation {
                key_digest: digest.context("a digest has 64 hexadecimal digits")?,
                since: Timestamp::from_micros(entry.since),
                certificate: entry.certificate.parse()?,
            })
        });
        let revocations: anyhow::Result<Vec<_>> = revocations.collect();
        revocations.with_context(|| format!("a revocation in the room {} is damaged", self.root))
    }

    /// Returns the roster.
    pub(crate) fn roster(&self) -> anyhow::Result<Roster> {
        let members = self.members()?;
        let members: anyhow::Result<Vec<_>> = members.iter().map(Certified::member).collect();
        Ok(Roster {
            members: members?,
            revocations: self.revocations()?,
        })
    }

    /// Adds a member, in place of one with that key under that name, and makes a new version of the roster.
    ///
    /// # Errors
    /// If another key has or had the name, or there is no room.
    pub(crate) fn add(&mut self, new: &Certified) -> anyhow::Result<()> {
        let member = new.member()?;
        let identity = member.identity();
        let roster = self.roster()?;
        let others = roster
            .members
            .iter()
            .map(|it| (it.identity(), it.key_digest));
        let gone = roster.revocations.iter();
        let gone = gone.map(|it| (identity_of(&it.certificate), it.key_digest));
        let mut left = Vec::new();
        for known in self.left()? {
            left.push((known.certificate.identity(), known.key_digest()?));
        }
        let stay_away: Vec<_> = left.iter().map(|(known, _)| *known != identity).collect();
        for (known, digest) in others.chain(gone).chain(left) {
            ensure!(
                known != identity || digest == member.key_digest,
                "{identity} is the name of another key, {}…: choose another name with --as",
                &hex(&digest)[..16]
            );
        }
        ensure!(
            self.members.len() < MAX_MEMBERS,
            "{} has {MAX_MEMBERS} members, and takes no more",
            self.root
        );
        let is_renewed = |it: &Member| it.identity() == identity;
        let mut keeps = roster.members.iter().map(|it| !is_renewed(it));
        self.members.retain(|_| keeps.next().unwrap_or(true));
        let mut stay_away = stay_away.into_iter();
        self.left.retain(|_| stay_away.next().unwrap_or(true));
        self.members.push(MemberEntry {
            certificate: hex(new.certificate.data().wire()),
            role: new.role.clone(),
            label: new.label.clone(),
        });
        self.roster_version += 1;
        Ok(())
    }

    /// Adds an invitation. Those that ended before `now` are removed.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn invite(&mut self, now: Timestamp, invitation: &Invitation) -> anyhow::Result<()> {
        self.invitations.retain(|it| it.until > now.as_micros());
        ensure!(
            self.invitations.len() < MAX_INVITATIONS,
            "{} has {MAX_INVITATIONS} links that work, and takes no more",
            self.root
        );
        self.invitations.push(InvitationEntry {
            secret: hex(invitation.secret.octets()),
            role: invitation.role.clone(),
            uses: invitation.uses,
            until: invitation.until.as_micros(),
            valid: invitation.valid.as_secs(),
            made_at: now.as_micros(),
        });
        Ok(())
    }

    /// Returns the secrets of all invitations. Used ones are among them, so that members may request their certificates again.
    pub(crate) fn secrets(&self) -> Vec<InvitationSecret> {
        let secrets = self.invitations.iter().filter_map(InvitationEntry::secret);
        secrets.collect()
    }

    /// Lets the newcomer in whose key has a digest that begins so.
    ///
    /// # Errors
    /// If too many are admitted who did not join.
    pub(crate) fn admit(&mut self, digest: &str) -> anyhow::Result<()> {
        ensure!(
            self.admitted.len() < MAX_INVITATIONS,
            "{MAX_INVITATIONS} newcomers to {} were admitted and did not join",
            self.root
        );
        self.admitted.push(digest.to_ascii_lowercase());
        Ok(())
    }

    /// Returns whether somebody said yes to the newcomer with this key.
    pub(crate) fn has_admitted(&self, digest: &[u8; 32]) -> bool {
        let digest = hex(digest);
        self.admitted.iter().any(|it| digest.starts_with(it))
    }

    /// Returns whether the key with this digest is a member's.
    pub(crate) fn has_member(&self, digest: &[u8; 32]) -> anyhow::Result<bool> {
        let roster = self.roster()?;
        Ok(roster.members.iter().any(|it| it.key_digest == *digest))
    }

    /// Makes a member of a newcomer whose request is verified, by a certificate that `issue` makes for a name, a role's terms and now. Who is a
    /// member already has the same certificate again.
    ///
    /// # Errors
    /// If the certificate cannot be issued, or there is no room.
    pub(crate) fn join(
        &mut self,
        now: Timestamp,
        join: &Join,
        issue: impl FnOnce(&Self, &Name, Duration) -> anyhow::Result<Certificate>,
    ) -> anyhow::Result<Joined> {
        let digest = join.key.digest();
        let roster = self.roster()?;
        if roster.revoked().contains_key(&digest) {
            return Ok(Joined::Refused("its key was revoked"));
        }
        let mut known = roster.members.iter();
        if let Some(at) = known.position(|it| it.key_digest == digest && it.until > now) {
            let certificate = Box::new(self.members()?.swap_remove(at).certificate);
            return Ok(Joined::Member {
                certificate,
                is_new: false,
            });
        }
        let mut invitations = self.invitations.iter();
        let is_meant =
            |it: &InvitationEntry| it.secret().is_some_and(|it| it.id() == join.invitation);
        let Some(at) = invitations.position(is_meant) else {
            return Ok(Joined::Refused("there is no such link"));
        };
        let terms = self.invitations[at].clone();
        if terms.until <= now.as_micros() {
            return Ok(Joined::Refused("the link has ended"));
        }
        if terms.uses == Some(0) {
            return Ok(Joined::Refused("the link was used"));
        }
        let root: Name = self.root.parse()?;
        let left = self.left()?;
        let own = left.iter().find(|it| it.key_digest().ok() == Some(digest));
        if own.is_some_and(|own| terms.made_at <= own.at.as_micros()) {
            return Ok(Joined::Refused(
                "it left the room after the link was made: make another link",
            ));
        }
        let identity = match own {
            Some(own) => own.certificate.identity().detached(),
            None => {
                let id = free_id(&roster, &left, (&root, &join.label));
                root.builder().generic(&id).finish()
            }
        };
        let certificate = issue(self, &identity, Duration::from_secs(terms.valid))?;
        self.add(&Certified {
            certificate: certificate.clone(),
            role: terms.role,
            label: join.label.clone(),
        })?;
        let uses = &mut self.invitations[at].uses;
        *uses = uses.map(|left| left - 1);
        let digest = hex(&digest);
        self.admitted.retain(|it| !digest.starts_with(it));
        Ok(Joined::Member {
            certificate: Box::new(certificate),
            is_new: true,
        })
    }

    /// Takes the member with this certificate off the roster, and makes a new version of it. Its key is not revoked. Returns whether there was one.
    ///
    /// # Errors
    /// If too many left.
    pub(crate) fn leave(&mut self, now: Timestamp, certificate: &Name) -> anyhow::Result<bool> {
        let mut members = self.members()?.into_iter();
        let Some(at) = members.position(|it| it.certificate.name() == certificate) else {
            return Ok(false);
        };
        ensure!(
            self.left.len() < MAX_MEMBERS,
            "{MAX_MEMBERS} members left {}, and it keeps no more of their names",
            self.root
        );
        let member = self.members.remove(at);
        self.left.push(LeftEntry {
            certificate: member.certificate,
            at: now.as_micros(),
        });
        self.roster_version += 1;
        Ok(true)
    }

    /// Revokes the keys that `is_meant` returns true for, by certificate and digest, `since` a time, and makes a new version of the roster. Keys
    /// that were revoked later are revoked since then. Returns their certificates' names.
    pub(crate) fn revoke(
        &mut self,
        since: Timestamp,
        is_meant: impl Fn(&Name, &[u8; 32]) -> bool,
    ) -> anyhow::Result<Vec<Name>> {
        ensure!(
            self.revocations.len() < MAX_MEMBERS,
            "{} has {MAX_MEMBERS} revocations, and takes no more",
            self.root
        );
        let Roster {
            members,
            revocations,
        } = self.roster()?;
        let is_member = |it: &Member| is_meant(&it.certificate, &it.key_digest);
        let meant: Vec<_> = members.iter().map(is_member).collect();
        let mut revoked = Vec::new();
        for (entry, known) in self.revocations.iter_mut().zip(&revocations) {
            if is_meant(&known.certificate, &known.key_digest) && since < known.since {
                entry.since = since.as_micros();
                revoked.push(known.certificate.clone());
            }
        }
        for member in members.iter().filter(|it| is_member(it)) {
            self.revocations.push(RevocationEntry {
                certificate: member.certificate.to_string(),
                key_digest: hex(&member.key_digest),
                since: since.as_micros(),
            });
            revoked.push(member.certificate.clone());
        }
        let mut keeps = meant.iter().map(|is_meant| !is_meant);
        self.members.retain(|_| keeps.next().unwrap_or(true));
        for known in self.left()? {
            let (name, digest) = (known.certificate.name(), known.key_digest()?);
            if is_meant(name, &digest) {
                self.revocations.push(RevocationEntry {
                    certificate: name.to_string(),
                    key_digest: hex(&digest),
                    since: since.as_micros(),
                });
                let wire = hex(known.certificate.data().wire());
                self.left.retain(|it| it.certificate != wire);
                revoked.push(name.clone());
            }
        }
        if !revoked.is_empty() {
            self.roster_version += 1;
        }
        Ok(revoked)
    }
}

/// Reads a certificate in hexadecimal.
fn certificate_in(text: &str) -> anyhow::Result<Certificate> {
    let octets = hex_decode(text).context("it is not hexadecimal")?;
    let data = Data::decode(Bytes::from(octets))?;
    Ok(Certificate::decode(data)?)
}

impl InvitationEntry {
    fn secret(&self) -> Option<InvitationSecret> {
        let octets = hex_decode(&self.secret)?;
        octets.try_into().ok().map(InvitationSecret::from_octets)
    }
}

/// Returns who has the certificate of this name: what stands before `KEY`.
pub(crate) fn identity_of(certificate: &Name) -> Name {
    certificate.prefix(certificate.len().saturating_sub(4))
}

/// Longest part of a label in a member's name.
const MAX_ID: usize = 24;

/// A name below `root` for a newcomer with this label that no key has or had: letters, digits and `-`, and never `KEY`.
fn free_id(roster: &Roster, left: &[Left], (root, label): (&Name, &str)) -> String {
    let words = label.split(|it: char| !it.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|it| !it.is_empty()).collect();
    let mut id = words.join("-").to_ascii_lowercase();
    id.truncate(MAX_ID);
    let id = id.trim_end_matches('-');
    let base = match id {
        "" => "member",
        id => id,
    };
    let members = roster.members.iter().map(Member::identity);
    let gone = roster.revocations.iter();
    let gone = gone.map(|it| identity_of(&it.certificate));
    let left = left.iter().map(|it| it.certificate.identity());
    let taken = members.chain(gone).chain(left);
    let taken: BTreeSet<Name> = taken.map(|it| it.detached()).collect();
    let ids = core::iter::once(base.to_owned()).chain((2..).map(|n: u64| format!("{base}-{n}")));
    let mut free = ids.filter(|id| !taken.contains(&root.builder().generic(id).finish()));
    free.next().expect("there are more numbers than members")
}

/// The rooms of this machine's user.
#[derive(Clone, Debug)]
pub(crate) struct Rooms {
    directory: PathBuf,
}

impl Rooms {
    /// Opens the user's directory of rooms, which is made if there is none.
    pub(crate) fn open() -> anyhow::Result<Self> {
        let directory = places::data_directory()?.join("rooms");
        make_private_directory(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        Ok(Self { directory })
    }

    fn path_of(&self, root: &Name) -> PathBuf {
        let digest = Sha256::digest(root.value());
        self.directory.join(format!("{}.json", hex(&digest[..16])))
    }

    /// Makes a room.
    ///
    /// # Errors
    /// If there is one of that name, or its file cannot be written.
    pub(crate) fn create(&self, root: &Name, schema: String) -> anyhow::Result<()> {
        let path = self.path_of(root);
        let _lock = lock(&path)?;
        ensure!(
            !path.exists(),
            "there is a room {root} already: see namecast trust members {root}"
        );
        write(&path, &Room::new(root, schema))
    }

    /// Returns the room `root`.
    ///
    /// # Errors
    /// If there is none, or its file is damaged.
    pub(crate) fn get(&self, root: &Name) -> anyhow::Result<Room> {
        match read(&self.path_of(root), root)? {
            Some(room) => Ok(room),
            None => bail!("there is no room {root} here: make it with namecast trust init {root}"),
        }
    }

    /// Returns when the file of `root` was written last.
    pub(crate) fn written_at(&self, root: &Name) -> Option<SystemTime> {
        fs::metadata(self.path_of(root)).ok()?.modified().ok()
    }

    /// Returns the root of the room that `name` belongs to.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn root_of(&self, name: &Name) -> anyhow::Result<Name> {
        let mut roots = (0..=name.len()).rev().map(|length| name.prefix(length));
        let root = roots.find(|root| self.path_of(root).exists());
        root.with_context(|| {
            format!("{name} belongs to no room here: make one with namecast trust init NAME")
        })
    }

    /// Returns the roots of all rooms, sorted.
    pub(crate) fn roots(&self) -> anyhow::Result<Vec<Name>> {
        let mut roots = Vec::new();
        for file in fs::read_dir(&self.directory)? {
            let path = file?.path();
            if path.extension().is_some_and(|it| it == "json")
                && let Some(room) = parse(&path)?
            {
                roots.push(room.root.parse()?);
            }
        }
        roots.sort_unstable();
        Ok(roots)
    }

    /// Reads, changes and writes a room while no other process does.
    pub(crate) fn change<T>(
        &self,
        root: &Name,
        change: impl FnOnce(&mut Room) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let path = self.path_of(root);
        let _lock = lock(&path)?;
        let mut room = self.get(root)?;
        let result = change(&mut room)?;
        write(&path, &room)?;
        Ok(result)
    }
}

/// Waits for a lock on `path` that ends when the file is dropped. It is on a file of its own, since the other one is replaced.
fn lock(path: &Path) -> anyhow::Result<File> {
    let path = path.with_extension("lock");
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).open(&path);
    let file = file.with_context(|| format!("cannot lock {}", path.display()))?;
    file.lock()?;
    Ok(file)
}

fn read(path: &Path, root: &Name) -> anyhow::Result<Option<Room>> {
    let room = parse(path)?;
    if let Some(room) = &room {
        ensure!(
            room.root == root.to_string(),
            "{} is of {}, not of {root}",
            path.display(),
            room.root
        );
    }
    Ok(room)
}

fn parse(path: &Path) -> anyhow::Result<Option<Room>> {
    let shown = path.display();
    let mut text = String::new();
    match File::open(path) {
        Ok(file) => file
            .take(MAX_FILE_SIZE)
            .read_to_string(&mut text)
            .with_context(|| format!("cannot read {shown}"))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
    };
    let room: Room = serde_json::from_str(&text)
        .with_context(|| format!("the room {shown} is damaged: restore it from a copy"))?;
    ensure!(
        room.format == FORMAT,
        "the format of {shown} is {:?}, not {FORMAT:?}",
        room.format
    );
    Ok(Some(room))
}

fn write(path: &Path, room: &Room) -> anyhow::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut draft = tempfile::NamedTempFile::new_in(directory)?;
    draft.write_all(serde_json::to_string_pretty(room)?.as_bytes())?;
    draft.as_file().sync_all()?;
    draft.persist(path)?;
    sync_directory(directory)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use namecast_apps::trust::Revocation;

    use super::*;

    /// Names of newcomers are made of letters and digits, and belong to one key for ever.
    #[test]
    fn newcomers_get_names_that_nobody_had() {
        let root: Name = "/calls/fox".parse().unwrap();
        let certificate = |id: &str| format!("/calls/fox/{id}/KEY/1/fox/v=1").parse().unwrap();
        let member = |id: &str| Member {
            certificate: certificate(id),
            key_digest: [1; 32],
            until: Timestamp::default(),
            role: "member".to_owned(),
            exchange_key: None,
            label: String::new(),
        };
        let roster = Roster {
            members: vec![member("ann"), member("member")],
            revocations: vec![Revocation {
                key_digest: [2; 32],
                since: Timestamp::default(),
                certificate: certificate("ann-2"),
            }],
        };
        for (label, id) in [
            ("Bob", "bob"),
            ("Ann", "ann-3"),
            ("  Dr. Zo\u{eb} O'Neil ", "dr-zo-o-neil"),
            ("\u{1F98A}", "member-2"),
            ("KEY", "key"),
            (
                "a very long name that goes on and on",
                "a-very-long-name-that-go",
            ),
        ] {
            assert_eq!(free_id(&roster, &[], (&root, label)), id, "{label}");
        }
    }
}
