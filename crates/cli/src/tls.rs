//! TLS of the web server: by certificate files, or by a certificate made for the occasion.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// Files that a certificate authority, or its client, leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct TlsFiles {
    /// Serve the page over TLS with this certificate, in PEM with those that certify it; the names in it go into host-names of the
    /// configuration file. A forwarder reads it again at SIGHUP.
    #[arg(long = "tls-cert", value_name = "FILE", requires = "key")]
    pub certificate: Option<PathBuf>,
    /// The certificate's private key, in PEM.
    #[arg(long = "tls-key", value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,
}

impl TlsFiles {
    /// Reads them; `None` if there are none.
    ///
    /// # Errors
    /// If a file cannot be read, or the key is not the certificate's.
    pub(crate) fn read(&self) -> anyhow::Result<Option<Arc<ServerConfig>>> {
        let (Some(certificate), Some(key)) = (&self.certificate, &self.key) else {
            return Ok(None);
        };
        let shown = certificate.display();
        let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate)
            .with_context(|| format!("cannot read {shown}"))?
            .collect();
        let chain = chain.with_context(|| format!("{shown} is no certificate in PEM"))?;
        anyhow::ensure!(!chain.is_empty(), "{shown} holds no certificate in PEM");
        let private = PrivateKeyDer::from_pem_file(key);
        let private = private.with_context(|| format!("{} is no key in PEM", key.display()))?;
        let config = server_config(chain, private);
        let config = config.with_context(|| format!("{shown} and {}", key.display()))?;
        Ok(Some(config))
    }
}

/// A configuration with a certificate for `names` that nobody vouches for.
///
/// # Errors
/// If none can be made.
pub(crate) fn self_signed(names: Vec<String>) -> anyhow::Result<Arc<ServerConfig>> {
    let certified = rcgen::generate_simple_self_signed(names)?;
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    server_config(vec![certified.cert.der().clone()], key.into())
}

fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> anyhow::Result<Arc<ServerConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    // WebSocket needs HTTP/1.1.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    /// The PEM form of what `der` holds.
    fn pem(label: &str, der: &[u8]) -> String {
        let text = STANDARD.encode(der);
        format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
    }

    #[test]
    fn files_have_to_fit_together() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: String| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            Some(path)
        };
        let made = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (one, other) = (made(), made());
        let certificate = file("cert.pem", pem("CERTIFICATE", one.cert.der()));
        let key = file(
            "key.pem",
            pem("PRIVATE KEY", &one.signing_key.serialize_der()),
        );
        let other_key = file(
            "other.pem",
            pem("PRIVATE KEY", &other.signing_key.serialize_der()),
        );
        let files = |certificate: &Option<PathBuf>, key: &Option<PathBuf>| TlsFiles {
            certificate: certificate.clone(),
            key: key.clone(),
        };
        assert!(files(&certificate, &key).read().unwrap().is_some());
        assert!(TlsFiles::default().read().unwrap().is_none());
        for (certificate, key, why) in [
            (&certificate, &other_key, "other.pem"),
            (&key, &key, "holds no certificate"),
            (&certificate, &certificate, "is no key"),
        ] {
            let error = files(certificate, key).read().unwrap_err();
            assert!(format!("{error:#}").contains(why), "{error:#}");
        }
    }
}
