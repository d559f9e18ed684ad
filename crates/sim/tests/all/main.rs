//! A network in virtual time, as a user of the crate has it. One binary: its tests run side by side, and are linked once.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod archive;
mod bad_input;
mod cues;
mod events;
mod feedback;
mod link_reliability;
mod live_world;
mod livelock;
mod loss;
mod network;
mod ns3;
mod outcome;
mod scenarios;
mod stream_challenge;
mod stream_failover;
mod stream_in_time;
mod stream_inter_frame_fec;
mod stream_live;
mod stream_reliable_links;
mod stream_rungs;
mod stream_scenarios;
mod stream_synchroniser;
mod stream_trouble;
mod topologies;
mod traces;
mod tracks;
