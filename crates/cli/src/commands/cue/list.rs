//! The cue list: a TOML file.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use namecast_apps::cues::{Action, Cue, CueId};
use namecast_units::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

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
    pub(super) number: String,
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
    /// Reads the file at `path`.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let size = std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
        ensure!(
            size.len() <= MAX_LIST,
            "{shown}: {} octets, expected at most {MAX_LIST}",
            size.len()
        );
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        let list: Self = toml::from_str(&text).with_context(|| shown.to_string())?;
        list.check().with_context(|| shown.to_string())?;
        Ok(list)
    }

    fn check(&self) -> anyhow::Result<()> {
        let mut places = BTreeMap::new();
        for (place, entry) in self.cues.iter().enumerate() {
            let place = place + 1;
            if let Some(before) = places.insert(&entry.number, place) {
                let number = &entry.number;
                bail!("cue {place}: number '{number}' is that of cue {before}: give each its own");
            }
            let tried = entry.cue(Action::Go, CueId([0; 16]), Timestamp::default());
            tried.encode().with_context(|| format!("cue {place}"))?;
        }
        Ok(())
    }

    /// Returns the place of the cue of this number.
    pub(super) fn find(&self, number: &str) -> Option<usize> {
        self.cues.iter().position(|entry| entry.number == number)
    }
}

impl Entry {
    /// An entry of a number that no list has.
    pub(super) fn unlisted(number: &str) -> Self {
        Self {
            number: number.to_owned(),
            text: String::new(),
            targets: Vec::new(),
            values: Map::new(),
        }
    }

    /// The cue of this entry.
    pub(super) fn cue(&self, action: Action, id: CueId, at: Timestamp) -> Cue {
        Cue {
            id,
            number: self.number.clone(),
            action,
            term: 0,
            at,
            targets: self.targets.clone(),
            values: self.values.clone(),
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
        let refused = |text| format!("{:#}", read(text).unwrap_err());
        let twice = refused("[[cue]]\nnumber = '1'\n[[cue]]\nnumber = '1'\n");
        assert!(
            twice.ends_with("cue 2: number '1' is that of cue 1: give each its own"),
            "{twice}"
        );
        assert!(refused("[[cue]]\nnumber = ''\n").contains("cue 1: number: expected"));
        let unknown = refused("[[cue]]\nnumber = '1'\ntargetz = []\n");
        assert!(
            unknown.contains("line 3") && unknown.contains("targetz"),
            "{unknown}"
        );
    }
}
