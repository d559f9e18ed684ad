//! An NDN node in real time.
//!
//! ```text
//!   UDP · TCP · Unix · WebSocket · WebTransport          applications of this process
//!        │ link tasks, one per connection                     │ ApplicationFace
//!        ▼                                                    ▼
//!   ┌──────────────── event loop: one task, one Forwarder ───────────────┐
//!   │  frames in ─▶ handle_frame ─▶ poll_output ─▶ one bounded queue per face │
//!   └─────────────────────────────────────────────────────────────────────┘
//!        ▲ commands                     ▲ application faces
//!      Node                    management, prefix registration
//! ```
//!
//! The forwarder is a plain value; this crate gives it sockets, time and randomness.

mod application;
mod clock;
mod config;
mod face_uri;
mod key_store;
mod link;
pub mod management;
mod node;
mod registration;

pub use application::{ApplicationFace, ApplicationReceiver, ApplicationSender, SendError};
pub use clock::Clock;
pub use config::{ManagementConfig, NodeConfig, RegistrationConfig};
pub use face_uri::{DEFAULT_PORT, DEFAULT_WEBSOCKET_PORT, FaceUri, ParseFaceUriError};
pub use key_store::{Identity, KeyStore, KeyStoreError};
pub use link::{CongestionMarking, LinkDrop, websocket, webtransport};
pub use node::{
    FaceOptions, FaceStatus, LinkState, ListenError, Listener, ListenerStatus, Node, NodeError,
    NodeStatus, Persistency, RouteStatus, TrafficStatus,
};
pub use registration::{Registration, RegistrationState};

pub use namecast_forward::{AsfConfig, FaceId, Scope, StrategyKind, StrategyNameError};
