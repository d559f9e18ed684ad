//! An NDN node in real time.
//!
//! ```text
//!   UDP · TCP · Unix · Ethernet · WebSocket · WebTransport  applications of this process
//!        │ link tasks, one per connection                     │ ApplicationFace
//!        ▼                                                    ▼
//!   ┌─────────── Plane: whoever has frames takes them through ───────────┐
//!   │  frames in ─▶ lock ─▶ handle_frame ─▶ poll_output ─▶ unlock ─▶ sent  │
//!   │                     what the link has no room for: a bounded queue │
//!   └────────────────────────────────────────────────────────────────────┘
//!        ▲ faces, listeners, routes: one task, the event loop
//!      Node ◀── management, prefix registration, your code
//! ```
//!
//! The forwarder is a plain value, of which a node may have several; this crate gives it sockets, time and randomness.

pub mod admission;
mod application;
mod clock;
mod config;
mod deny;
mod drive;
mod face_uri;
mod freshness;
mod hops;
mod host;
mod interface;
mod key_store;
mod link;
pub mod log_limit;
mod mac_address;
pub mod management;
mod node;
mod private;
mod registration;
pub mod rights;
mod start;
pub mod supervision;
pub mod tickets;
mod timer;
mod transport;
pub mod web;

pub use application::{ApplicationFace, ApplicationReceiver, ApplicationSender};
pub use clock::Clock;
pub use config::{ManagementConfig, NodeConfig, ReadvertiseConfig, StrangersConfig, UdpConfig};
pub use deny::{DenyList, Network, ParseNetworkError};
pub use drive::{Driven, Handle, WeakHandle, drive};
pub use face_uri::{DEFAULT_WEBSOCKET_PORT, FaceUri, ParseFaceUriError};
pub use hops::Hops;
pub use host::{DEFAULT_PORT, Host};
pub use interface::InterfaceWatch;
pub use key_store::{Identity, KeyStore, KeyStoreError, random};
pub use link::LinkDrop;
pub use mac_address::{MacAddress, ParseMacAddressError};
pub use node::{
    FaceOptions, FaceStatus, FeedbackStatus, LinkState, ListenError, Listener, ListenerStatus,
    Node, NodeError, NodeStatus, Persistency, RouteStatus, SourceStatus, Trace, TracedFrame,
    TrafficStatus,
};
pub use private::{data_directory, environment, home, make_private_directory};
pub use registration::Registration;
pub use timer::Timer;
pub use transport::{
    EthernetConfig, EthernetPort, UdpMulticast, UnixAccess, websocket, webtransport,
};

pub use namecast_apps::registration::{
    Announcer, Announcing, Claim, Credential, GuardEvent, Member, NameGuard, RegistrationConfig,
    RegistrationState, Rival, Wanted,
};

pub use namecast_forward::{
    AsfConfig, CongestionLaw, CongestionMarking, ExtensionFields, FaceId, Scope, StrategyKind,
    StrategyNameError,
};
