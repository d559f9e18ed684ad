//! What a consumer counts. All run from its start.

use derive_more::AddAssign;

/// Counters of one consumer, each dropped packet under the one reason for which it was dropped.
#[derive(AddAssign, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Interests that left.
    pub interests_sent: u64,
    /// Of those, sent again.
    pub interests_retransmitted: u64,
    /// Of those, second Interests for what did not exist yet, in case the first was lost.
    pub interests_hedged: u64,
    /// Interests whose timer ran out.
    pub interests_timed_out: u64,
    /// Interests that came back.
    pub interests_nacked: u64,
    /// Bytes of Data, everything counted.
    pub wire_bytes: u64,
    /// Of those, bytes of parity, of one sample and across samples.
    pub parity_bytes: u64,
    /// Of those, bytes of what was requested in repair.
    pub repair_bytes: u64,
    /// Bytes of complete samples.
    pub payload_bytes: u64,
    /// Samples of which a verified lead came.
    pub leads: u64,
    /// Of those, ones that were not produced in answer to an Interest of ours.
    pub leads_for_others: u64,
    /// Complete samples.
    pub complete: u64,
    /// Of those, ones that were complete only after their time; not counted while catching up.
    pub late: u64,
    /// Samples delivered.
    pub delivered: u64,
    /// Positions between one sample delivered and the next: samples given up, or passed over because one that they
    /// need was. A jump beyond [`Config::max_jump`](super::Config::max_jump) is another numbering, and no loss.
    pub lost: u64,
    /// Times that playback went on at a later key sample.
    pub skips: u64,
    /// Samples completed with parity.
    pub recovered_parity: u64,
    /// Samples completed by retransmission, without parity.
    pub recovered_retransmission: u64,
    /// Leads that came as a copy.
    pub recovered_copy: u64,
    /// Leads rebuilt from inter-frame FEC.
    pub recovered_inter_frame: u64,
    /// Dropped: came when the sample was complete already.
    pub drop_surplus: u64,
    /// Dropped: a lead whose signature is wrong, or a segment that its lead does not vouch for.
    pub drop_verification: u64,
    /// Dropped: a lead that is signed and still makes no sense.
    pub drop_malformed: u64,
    /// Dropped: not requested, or no longer needed.
    pub drop_unwanted: u64,
    /// Dropped: came before its lead, and too many such segments were kept already.
    pub drop_unverified: u64,
    /// Dropped: a sample of a group whose key sample was passed over.
    pub drop_undecodable: u64,
    /// Dropped: a lead whose sample is larger than tables have room for.
    pub drop_no_room: u64,
    /// Dropped: inter-frame FEC that is signed and still gives no leads.
    pub drop_inter_frame: u64,
    /// Sequence numbers that jumped further than bounds allow, and were not followed.
    pub refused_jumps: u64,
    /// Samples given up after the last attempt.
    pub given_up: u64,
}
