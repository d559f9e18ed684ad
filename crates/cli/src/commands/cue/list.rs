//! The cue list: a TOML file.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use namecast_apps::cues::{Action, Cue, CueId};
use namecast_units::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;

/// Longest name of a device, in octets.
const MAX_ID: usize = 64;
/// Octets that a list may have.
const MAX_LIST: u64 = 1 << 20;

/// Cues in their order, and the devices whose reports the desk hears.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// Names of devices.
    #[serde(default)]
    pub(super) devices: Vec<String>,
    /// Cues.
    #[serde(default, rename = "cue")]
    pub(super) cues: Vec<Entry>,
}

/// One cue of a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// Its number: `12.5`.
    number: Spanned<String>,
    /// Its text for people.
    #[serde(default)]
    pub(super) text: String,
    /// Devices that it is for; empty: all.
    #[serde(default)]
    pub(super) targets: Vec<String>,
    /// Values for whatever executes it.
    #[serde(default)]
    pub(super) values: Map<String, Value>,
}

impl List {
    /// Reads the file at `path`, if there is one, and adds `devices`.
    pub(super) fn with_devices(path: Option<&Path>, devices: &[String]) -> anyhow::Result<Self> {
        let mut list = path.map_or_else(|| Ok(Self::default()), Self::read)?;
        list.devices.extend(devices.iter().cloned());
        list.devices.sort_unstable();
        list.devices.dedup();
        Ok(list)
    }

    /// Reads the file at `path`.
    fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let size = std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
        ensure!(
            size.len() <= MAX_LIST,
            "{shown}: {} octets, expected at most {MAX_LIST}",
            size.len()
        );
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        let list: Self = toml::from_str(&text).with_context(|| shown.to_string())?;
        list.check(&text).with_context(|| shown.to_string())?;
        Ok(list)
    }

    fn check(&self, text: &str) -> anyhow::Result<()> {
        let mut lines = BTreeMap::new();
        for entry in &self.cues {
            let before = &text[..entry.number.span().start.min(text.len())];
            let line = before.matches('\n').count() + 1;
            if let Some(first) = lines.insert(entry.number(), line) {
                let number = entry.number();
                bail!(
                    "line {line}: number '{number}' is that of line {first}: give each cue its own"
                );
            }
            let tried = entry.cue(Action::Go, CueId([0; 16]), Timestamp::default());
            tried
                .encode()
                .with_context(|| format!("cue of line {line}"))?;
        }
        let ids = self.devices.iter();
        if let Some(wrong) = ids.clone().find(|id| id.is_empty() || id.len() > MAX_ID) {
            bail!("devices: '{wrong}': expected 1 to {MAX_ID} octets");
        }
        Ok(())
    }

    /// Returns the place of the cue of this number.
    pub(super) fn find(&self, number: &str) -> Option<usize> {
        self.cues.iter().position(|entry| entry.number() == number)
    }
}

impl Entry {
    /// An entry of a number that no list has.
    pub(super) fn unlisted(number: &str) -> Self {
        Self {
            number: Spanned::new(0..0, number.to_owned()),
            text: String::new(),
            targets: Vec::new(),
            values: Map::new(),
        }
    }

    /// Returns its number.
    pub(super) fn number(&self) -> &str {
        self.number.get_ref()
    }

    /// The cue of this entry.
    pub(super) fn cue(&self, action: Action, id: CueId, at: Timestamp) -> Cue {
        Cue {
            id,
            number: self.number().to_owned(),
            action,
            term: 0,
            at,
            targets: self.targets.clone(),
            values: self.values.clone(),
            rehearsal: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<List> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        List::read(file.path())
    }

    #[test]
    fn a_list_has_cues_in_their_order_with_values() {
        let text = "devices = ['light-1']\n[[cue]]\nnumber = '1'\ntargets = ['light-1']\nvalues = { level = 80 }\n[[cue]]\nnumber = '1.5'\ntext = 'Curtain'\n";
        let list = read(text).unwrap();
        assert_eq!(list.devices, ["light-1"]);
        assert_eq!((list.find("1.5"), list.find("2")), (Some(1), None));
        let cue = list.cues[0].cue(Action::Go, CueId([0; 16]), Timestamp::default());
        assert_eq!(cue.values["level"], 80);
    }

    #[test]
    fn a_problem_is_named_with_its_place() {
        let refused = |text: &str| format!("{:#}", read(text).unwrap_err());
        let twice = refused("[[cue]]\nnumber = '1'\n[[cue]]\nnumber = '1'\n");
        assert!(
            twice.ends_with("line 4: number '1' is that of line 2: give each cue its own"),
            "{twice}"
        );
        assert!(refused("[[cue]]\nnumber = ''\n").contains("cue of line 2: number: expected"));
        let follow = refused("[[cue]]\nnumber = '1'\nfollow = '1'\n");
        assert!(
            follow.contains("line 3") && follow.contains("follow"),
            "{follow}"
        );
        let nested = format!(
            "[[cue]]\nnumber = '1'\nvalues = {{ a = {}{} }}\n",
            "[".repeat(9_000),
            "]".repeat(9_000)
        );
        assert!(refused(&nested).contains("line 3"));
        assert!(refused("devices = ['']\n").contains("devices: ''"));
        let unknown = refused("[[cue]]\nnumber = '1'\ntargetz = []\n");
        assert!(
            unknown.contains("line 3") && unknown.contains("targetz"),
            "{unknown}"
        );
    }
}
