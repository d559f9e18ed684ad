//! RSA keys where a browser is around: its own big numbers do the arithmetic, so that nobody downloads another's.

use core::str::FromStr as _;

use bytes::Bytes;
use js_sys::BigInt;
use p256::pkcs8::der::asn1::UintRef;
use p256::pkcs8::der::{Decode as _, Reader as _, SliceReader};
use p256::pkcs8::spki::SubjectPublicKeyInfoRef;
use sha2::{Digest as _, Sha256};

/// Largest modulus in octets, and largest exponent: what the keys of people have, and what bounds a verification's work.
const MAX_MODULUS: usize = 512;
const MAX_EXPONENT: usize = 4;
/// Least octets of padding.
const MIN_PADDING: usize = 8;
/// DER of a DigestInfo for SHA-256 up to the digest: RFC 8017, section 9.2, note 1.
const DIGEST_INFO: [u8; 19] = [
    0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05,
    0x00, 0x04, 0x20,
];

/// A key that checks PKCS#1 v1.5 signatures over SHA-256.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RsaPublicKey {
    /// The SubjectPublicKeyInfo that it came in.
    spki: Bytes,
    modulus: Vec<u8>,
    exponent: Vec<u8>,
}

impl RsaPublicKey {
    /// Reads a SubjectPublicKeyInfo whose algorithm is rsaEncryption; `None` if it is malformed or too large.
    pub(super) fn from_spki(der: &[u8], info: &SubjectPublicKeyInfoRef<'_>) -> Option<Self> {
        let mut reader = SliceReader::new(info.subject_public_key.as_bytes()?).ok()?;
        // RSAPublicKey, RFC 8017, appendix A.1.1.
        let numbers = reader.sequence(|reader| {
            let modulus = UintRef::decode(reader)?.as_bytes().to_vec();
            p256::pkcs8::der::Result::Ok((modulus, UintRef::decode(reader)?.as_bytes().to_vec()))
        });
        let (modulus, exponent) = numbers.ok().filter(|_| reader.is_finished())?;
        let is_sound = modulus.len() <= MAX_MODULUS && exponent.len() <= MAX_EXPONENT;
        let is_odd = |number: &[u8]| number.last().is_some_and(|octet| octet % 2 == 1);
        (is_sound && is_odd(&modulus) && is_odd(&exponent)).then(|| Self {
            spki: Bytes::copy_from_slice(der),
            modulus,
            exponent,
        })
    }

    pub(super) fn to_spki(&self) -> Bytes {
        self.spki.clone()
    }

    /// RSASSA-PKCS1-v1_5: RFC 8017, section 8.2.2.
    pub(super) fn verifies(&self, portion: &[u8], value: &[u8]) -> bool {
        let Some(expected) = encoded(portion, self.modulus.len()) else {
            return false;
        };
        let (modulus, signature) = (number(&self.modulus), number(value));
        value.len() == self.modulus.len()
            && signature < modulus
            && power(&signature, &self.exponent, &modulus) == number(&expected)
    }
}

/// EMSA-PKCS1-v1_5 in `length` octets: RFC 8017, section 9.2.
fn encoded(portion: &[u8], length: usize) -> Option<Vec<u8>> {
    let digest = Sha256::digest(portion);
    let padding = length.checked_sub(3 + DIGEST_INFO.len() + digest.len())?;
    let padding = Some(padding).filter(|it| *it >= MIN_PADDING)?;
    Some(
        [
            &[0, 1][..],
            &vec![0xff; padding],
            &[0],
            &DIGEST_INFO,
            &digest,
        ]
        .concat(),
    )
}

/// Nothing here is secret, so it may take as long as it takes.
fn power(base: &BigInt, exponent: &[u8], modulus: &BigInt) -> BigInt {
    let bits = exponent
        .iter()
        .flat_map(|octet| (0..8).rev().map(move |bit| octet >> bit & 1));
    bits.fold(BigInt::from(1), |power, bit| {
        let square = &(&power * &power) % modulus;
        match bit {
            0 => square,
            _ => &(&square * base) % modulus,
        }
    })
}

fn number(octets: &[u8]) -> BigInt {
    let digits: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    BigInt::from_str(&format!("0x0{digits}")).expect("hexadecimal digits")
}
