//! Faces of applications that live in the node's process.

use std::sync::Arc;

use bytes::Bytes;
use namecast_forward::{FaceId, Keep};
use tokio::sync::mpsc;

use crate::link::LinkReceiver;
use crate::node::LinkEnd;
use crate::node::{Command, NewFace, Node, NodeError, Plane};

/// An application's face: frames in, frames out, no socket between. Local scope. It ends when it is dropped.
///
/// Frames are what the forwarder takes and gives: bare Interests and Data, or LpPackets.
#[derive(Debug)]
pub struct ApplicationFace {
    sender: ApplicationSender,
    receiver: ApplicationReceiver,
}

/// The half of an [`ApplicationFace`] that sends.
#[derive(Clone, Debug)]
pub struct ApplicationSender {
    face: FaceId,
    plane: Arc<Plane>,
}

/// The half of an [`ApplicationFace`] that receives. The face ends when this half is dropped.
#[derive(Debug)]
pub struct ApplicationReceiver {
    face: FaceId,
    queue: LinkReceiver,
    commands: mpsc::Sender<Command>,
}

impl Node {
    /// Adds a face for an application in this process.
    ///
    /// # Errors
    /// If the node has stopped or has too many faces.
    pub async fn application_face(&self) -> Result<ApplicationFace, NodeError> {
        self.internal_face(NewFace::application("application"))
            .await
    }

    /// Adds a face for an application in this process that is told which face each packet came in on
    /// (`LpPacket::incoming_face`), and may choose or avoid faces.
    ///
    /// # Errors
    /// If the node has stopped or has too many faces.
    pub async fn application_face_with_local_fields(&self) -> Result<ApplicationFace, NodeError> {
        self.internal_face(NewFace::application("application").with_local_fields())
            .await
    }

    pub(crate) async fn internal_face(&self, new: NewFace) -> Result<ApplicationFace, NodeError> {
        let link = self.add_face(new).await?;
        Ok(ApplicationFace::new(link, self.commands()))
    }
}

impl ApplicationFace {
    pub(crate) fn new(link: LinkEnd, commands: mpsc::Sender<Command>) -> Self {
        Self {
            sender: ApplicationSender {
                face: link.face,
                plane: link.plane,
            },
            receiver: ApplicationReceiver {
                face: link.face,
                queue: link.queue,
                commands,
            },
        }
    }

    /// The face's number.
    pub const fn id(&self) -> FaceId {
        self.sender.face
    }

    /// Hands the node a frame.
    ///
    /// # Errors
    /// If the face has ended, or the node has stopped.
    pub async fn send(&self, frame: Bytes) -> Result<(), NodeError> {
        self.sender.send(frame).await
    }

    /// The next frame from the node; `None` once the node has stopped or the face was removed.
    pub async fn recv(&mut self) -> Option<Bytes> {
        self.receiver.recv().await
    }

    /// The next frame from the node if there is one already.
    pub fn try_recv(&mut self) -> Option<Bytes> {
        self.receiver.try_recv()
    }

    /// The face as two halves, for tasks that send and receive independently.
    pub fn split(self) -> (ApplicationSender, ApplicationReceiver) {
        (self.sender, self.receiver)
    }
}

impl ApplicationSender {
    /// The face's number.
    pub const fn id(&self) -> FaceId {
        self.face
    }

    /// Hands the node a frame.
    ///
    /// # Errors
    /// If the face has ended, or the node has stopped.
    pub async fn send(&self, frame: Bytes) -> Result<(), NodeError> {
        self.send_batch(vec![frame]).await
    }

    /// Hands the node several frames at once.
    ///
    /// # Errors
    /// If the face has ended, or the node has stopped.
    pub async fn send_batch(&self, frames: Vec<Bytes>) -> Result<(), NodeError> {
        self.plane.deliver(self.face, frames.iter().map(owned))?;
        // The forwarder did its work on this task, which lets others have their turn now and then.
        tokio::task::coop::consume_budget().await;
        Ok(())
    }
}

/// A large frame in memory of its own: what an application sends may be a piece of a buffer, which the node's tables must not
/// keep alive. They copy small ones themselves.
fn owned(frame: &Bytes) -> Bytes {
    match frame.len() > Keep::SMALL {
        true => Bytes::copy_from_slice(frame),
        false => frame.clone(),
    }
}

impl ApplicationReceiver {
    /// The next frame from the node; `None` once the node has stopped or the face was removed.
    pub async fn recv(&mut self) -> Option<Bytes> {
        self.queue.recv().await
    }

    /// The next frame from the node if there is one already.
    pub fn try_recv(&mut self) -> Option<Bytes> {
        self.queue.try_recv()
    }

    /// Waits for frames and appends at most `limit` to `batch`. False once the face has ended.
    pub async fn recv_many(&mut self, batch: &mut Vec<Bytes>, limit: usize) -> bool {
        self.queue.recv_many(batch, limit).await
    }
}

impl Drop for ApplicationReceiver {
    fn drop(&mut self) {
        // If there is no room for the command, the event loop notices by itself that nobody reads.
        let _ = self.commands.try_send(Command::RemoveFace(self.face));
    }
}
