//! TLV-TYPE numbers of NFD management that several messages share (ndn-cxx, encoding/tlv-nfd.hpp).
//!
//! Numbers from 128 on mean something else in each dataset; those are with the dataset.

pub(super) const CONTROL_RESPONSE: u32 = 101;
pub(super) const STATUS_CODE: u32 = 102;
pub(super) const STATUS_TEXT: u32 = 103;
pub(super) const CONTROL_PARAMETERS: u32 = 104;
pub(super) const FACE_ID: u32 = 105;
pub(super) const COST: u32 = 106;
pub(super) const STRATEGY: u32 = 107;
pub(super) const FLAGS: u32 = 108;
pub(super) const EXPIRATION_PERIOD: u32 = 109;
pub(super) const ORIGIN: u32 = 111;
pub(super) const MASK: u32 = 112;
pub(super) const URI: u32 = 114;
pub(super) const LOCAL_URI: u32 = 129;
pub(super) const CAPACITY: u32 = 131;
pub(super) const COUNT: u32 = 132;
pub(super) const FACE_SCOPE: u32 = 132;
pub(super) const FACE_PERSISTENCY: u32 = 133;
pub(super) const LINK_TYPE: u32 = 134;
pub(super) const BASE_CONGESTION_MARKING_INTERVAL: u32 = 135;
pub(super) const DEFAULT_CONGESTION_THRESHOLD: u32 = 136;
pub(super) const MTU: u32 = 137;
