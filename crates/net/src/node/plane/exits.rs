//! Where each face's packets leave.

use std::collections::BTreeMap;
use std::sync::Arc;

use namecast_forward::FaceId;

use crate::link::LinkSender;

/// Faces with numbers this near to each other are kept together.
const NEAR: u64 = 64;

/// The senders of all faces. A clone that is changed copies what is near the face that changes, so that peers that come and go cost the
/// same however many there are.
#[derive(Clone, Debug, Default)]
pub(super) struct Exits(BTreeMap<u64, Arc<BTreeMap<FaceId, Arc<LinkSender>>>>);

impl Exits {
    pub(super) fn get(&self, face: FaceId) -> Option<&Arc<LinkSender>> {
        self.0.get(&(face.number() / NEAR))?.get(&face)
    }

    pub(super) fn insert(&mut self, face: FaceId, sender: Arc<LinkSender>) {
        let near = self.0.entry(face.number() / NEAR).or_default();
        Arc::make_mut(near).insert(face, sender);
    }

    pub(super) fn remove(&mut self, face: FaceId) {
        let key = face.number() / NEAR;
        let Some(near) = self.0.get_mut(&key).map(Arc::make_mut) else {
            return;
        };
        near.remove(&face);
        if near.is_empty() {
            self.0.remove(&key);
        }
    }

    pub(super) fn senders(&self) -> impl Iterator<Item = &LinkSender> {
        self.0
            .values()
            .flat_map(|near| near.values().map(|it| &**it))
    }
}
