//! Whose keys may work on this machine: a text file that people write.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::known_keys::parse_digest;

/// Largest file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The keys in `path`: their digests, each first on its line.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<[u8; 32]>> {
    let shown = path.display();
    let mut text = String::new();
    let file = File::open(path).with_context(|| {
        format!("cannot open {shown}: write a file with a line for each key, which begins with the digest that namecast remote prints at the client")
    })?;
    file.take(MAX_FILE + 1).read_to_string(&mut text)?;
    ensure!(
        text.len() as u64 <= MAX_FILE,
        "{shown} is larger than {MAX_FILE} bytes"
    );
    let mut keys = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let digest = line.split_ascii_whitespace().next().and_then(parse_digest);
        keys.push(digest.with_context(|| {
            format!("{shown}, line {number}: write the digest of a key, 64 hexadecimal digits, or remove the line")
        })?);
    }
    ensure!(
        !keys.is_empty(),
        "{shown} holds no key: write the digest that namecast remote prints at the client"
    );
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digests_let_somebody_in() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        let read_text = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read(&path)
        };
        let digest = "0f".repeat(32);
        let keys = read_text(&format!("# those who may\n\n{digest} /me at home\n")).unwrap();
        assert_eq!(keys, [[0x0f; 32]]);
        for wrong in [
            "",
            "# nobody\n",
            "*\n",
            &digest[1..],
            &format!("{digest}\nanybody\n"),
        ] {
            let error = read_text(wrong).unwrap_err().to_string();
            assert!(error.contains("write the digest"), "{error}");
        }
        assert!(read(&directory.path().join("absent")).is_err());
    }
}
