//! Certificates as files: the packet itself, or base64 of it, as `ndnsec cert-dump` writes.

use std::path::Path;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use namecast_packet::{Certificate, Data, MAX_PACKET_SIZE};

/// Characters in a line of base64.
const LINE: usize = 64;

/// Reads a certificate.
pub(crate) fn read(path: &Path) -> anyhow::Result<Certificate> {
    let shown = path.display();
    let octets = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    if octets.len() > 2 * MAX_PACKET_SIZE {
        bail!("{shown} is too long for a certificate");
    }
    let packet = match core::str::from_utf8(&octets) {
        Ok(text) => {
            let text: String = text.split_whitespace().collect();
            let decoded = STANDARD.decode(text);
            decoded.with_context(|| format!("{shown} is no certificate: it is not base64"))?
        }
        Err(_) => octets,
    };
    let data = Data::decode(packet.into());
    let certificate = data.and_then(Certificate::decode);
    let certificate = certificate.with_context(|| format!("{shown} is no certificate"))?;
    let key = certificate.public_key();
    key.with_context(|| format!("the key in {shown} cannot be used"))?;
    Ok(certificate)
}

/// A certificate as text.
pub(crate) fn text(certificate: &Data) -> String {
    let text = STANDARD.encode(certificate.wire());
    let lines = text.as_bytes().chunks(LINE);
    lines
        .map(|line| format!("{}\n", String::from_utf8_lossy(line)))
        .collect()
}
