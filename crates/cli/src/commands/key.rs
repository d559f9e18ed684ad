//! `namecast key`: a key's certificate, for those who are to trust it.

use super::key_store;
use crate::arguments::Key;
use crate::certificate_file;

/// Prints the certificate.
pub(super) fn run(arguments: Key) -> anyhow::Result<()> {
    let identity = key_store(arguments.keys.keys)?.identity(&arguments.name)?;
    print!("{}", certificate_file::text(&identity.certificate));
    Ok(())
}
