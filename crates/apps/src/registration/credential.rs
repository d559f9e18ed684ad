//! Why a neighbour may let a prefix be registered.

use core::fmt;

use bytes::{Bytes, BytesMut};
use namecast_packet::{Data, Signer};

/// What a command shows to the neighbour.
#[derive(Debug, Default)]
pub enum Credential {
    /// Nothing: the neighbour lets anybody register, or only those on its machine.
    #[default]
    None,
    /// A token that the neighbour's operator passed on: the ApplicationParameters of the command.
    Ticket(Bytes),
    /// A member's key, which signs the command, and its certificates.
    Member(Member),
}

/// Key of a member of a room, with the certificates by which a neighbour judges it.
pub struct Member {
    signer: Box<dyn Signer + Send>,
    certificates: Bytes,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("signer", &self.signer.info().key_locator)
            .finish_non_exhaustive()
    }
}

impl Member {
    /// Returns the key of `signer`. The first of `certificates` is of that key, each one after it of the key that signed the one before; those
    /// that the neighbour has may be left out.
    pub fn new<'a>(
        signer: Box<dyn Signer + Send>,
        certificates: impl IntoIterator<Item = &'a Data>,
    ) -> Self {
        let mut octets = BytesMut::new();
        for certificate in certificates {
            octets.extend_from_slice(certificate.wire());
        }
        Self {
            signer,
            certificates: octets.freeze(),
        }
    }

    pub(super) fn signer(&self) -> &dyn Signer {
        &*self.signer
    }

    /// Returns the packets, one after the other.
    pub(super) const fn certificates(&self) -> &Bytes {
        &self.certificates
    }
}
