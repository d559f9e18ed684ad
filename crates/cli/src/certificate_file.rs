//! Certificates as files: the packet itself, base64 of it, as `ndnsec cert-dump`, python-ndn and NDNts write, or PEM of it, as
//! ndnd writes.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use namecast_packet::{Certificate, Data, MAX_PACKET_SIZE};

/// Characters in a line of base64.
const LINE: usize = 64;
/// Markers around the type in the first and last line of a PEM file (RFC 7468), the format of ndnd's certificates.
const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";
/// Type of a PEM file with an NDN certificate.
const NDN_CERTIFICATE: &str = "NDN CERT";

/// Reads a certificate.
pub(crate) fn read(path: &Path) -> anyhow::Result<Certificate> {
    let shown = path.display();
    let octets = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    ensure!(
        octets.len() <= 2 * MAX_PACKET_SIZE,
        "{shown} is too long for a certificate"
    );
    let packet = match core::str::from_utf8(&octets) {
        Ok(text) => packet_of(text).with_context(|| format!("{shown} is no certificate"))?,
        Err(_) => octets,
    };
    let data = Data::decode(packet.into());
    let certificate = data.and_then(Certificate::decode);
    let certificate = certificate.with_context(|| format!("{shown} is no certificate"))?;
    let key = certificate.public_key();
    key.with_context(|| format!("the key in {shown} cannot be used"))?;
    Ok(certificate)
}

/// Decodes the packet in base64 or PEM text.
fn packet_of(text: &str) -> anyhow::Result<Vec<u8>> {
    let text = match text.trim_start().strip_prefix(BEGIN) {
        Some(pem) => body_of(pem)?,
        None => text,
    };
    let text: String = text.split_whitespace().collect();
    STANDARD.decode(text).context("it is not base64")
}

/// Returns the base64 text of a PEM file without its headers (RFC 1421), which ndnd writes before an empty line.
fn body_of(pem: &str) -> anyhow::Result<&str> {
    let (kind, rest) = pem
        .split_once(DASHES)
        .context("its first line has no end")?;
    match kind {
        NDN_CERTIFICATE => {}
        "CERTIFICATE" => bail!(
            "it is one of X.509, which names no NDN identity: write one with namecast key, ndnsec cert-dump or ndnd sec"
        ),
        _ => bail!("it holds a '{kind}', not the certificate of a key"),
    }
    let end = format!("{DASHES}END {NDN_CERTIFICATE}{DASHES}");
    let (body, _) = rest
        .split_once(&end)
        .with_context(|| format!("it has no line '{end}'"))?;
    let after_headers = ["\n\n", "\r\n\r\n"];
    let mut after_headers = after_headers
        .iter()
        .filter_map(|empty| body.split_once(empty));
    Ok(after_headers.next().map_or(body, |(_, body)| body))
}

/// A certificate as text.
pub(crate) fn text(certificate: &Data) -> String {
    let text = STANDARD.encode(certificate.wire());
    let lines = text.as_bytes().chunks(LINE);
    lines
        .map(|line| format!("{}\n", String::from_utf8_lossy(line)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as ndnd writes it, with the certificate of a key store.
    #[test]
    fn certificates_of_ndnd_are_read_and_other_pem_files_are_said_to_be_what_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let store = namecast_net::KeyStore::open(directory.path()).unwrap();
        let own = store.identity(&"/operator".parse().unwrap()).unwrap();
        let path = directory.path().join("file");
        let read_text = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read(&path)
        };
        let base64 = text(&own.certificate);
        let pem = format!(
            "-----BEGIN NDN CERT-----\nName: {}\nSigType: Ed25519\n\n{base64}-----END NDN CERT-----\n",
            own.certificate.name()
        );
        for text in [&base64, &pem, &pem.replace('\n', "\r\n")] {
            assert_eq!(read_text(text).unwrap().data(), &own.certificate);
        }
        let bare = format!("-----BEGIN NDN CERT-----\n{base64}-----END NDN CERT-----");
        assert_eq!(read_text(&bare).unwrap().data(), &own.certificate);
        for (kind, expected) in [
            ("CERTIFICATE", "one of X.509"),
            ("NDN KEY", "holds a 'NDN KEY'"),
            ("PUBLIC KEY", "holds a 'PUBLIC KEY'"),
        ] {
            let error = read_text(&pem.replace("NDN CERT", kind)).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(expected), "{error}");
        }
        let cut = read_text(&pem[..pem.len() - 9]).unwrap_err();
        assert!(format!("{cut:#}").contains("no line '-----END"), "{cut:#}");
    }
}
