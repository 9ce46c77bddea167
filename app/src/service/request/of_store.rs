//! What is asked of the store as a whole: sessions, API keys and webhooks.
//!
//! Each request has a type of its own for its answer. All of them share the writer's transaction with what is asked of experiments,
//! as a connection of their own would hold up decisions.

use anyhow::Result;
use tokio::sync::oneshot;

use super::Refusal;
use crate::store::Store;

/// Something asked of the store.
pub trait StoreRequest: Send + 'static {
    /// What it is answered with.
    type Reply: Send + 'static;

    /// Does it, within the writer's transaction; again, if the transaction fails and is begun anew.
    fn serve(&self, store: &mut Store, now: i64) -> Result<Result<Self::Reply, Refusal>>;
}

/// A request of the store and its caller, whatever the type of the answer.
pub(in crate::service) trait StoreTask: Send {
    /// Does it, within a transaction.
    fn serve(&mut self, store: &mut Store, now: i64) -> Result<()>;

    /// Refuses it.
    fn refuse(&mut self, refusal: Refusal);

    /// Whether nobody waits for the answer.
    fn is_given_up(&self) -> bool;

    /// Answers, once what the answer says is durable.
    fn answer(self: Box<Self>);
}

/// A request of the store with the way to its caller.
pub(in crate::service) struct Task<R: StoreRequest> {
    request: R,
    answer: Option<Result<R::Reply, Refusal>>,
    sender: oneshot::Sender<Result<R::Reply, Refusal>>,
}

impl<R: StoreRequest> Task<R> {
    /// Without an answer, and where that will arrive.
    pub fn new(request: R) -> (Self, oneshot::Receiver<Result<R::Reply, Refusal>>) {
        let (sender, receiver) = oneshot::channel();
        let task = Self {
            request,
            answer: None,
            sender,
        };
        (task, receiver)
    }
}

impl<R: StoreRequest> StoreTask for Task<R> {
    fn serve(&mut self, store: &mut Store, now: i64) -> Result<()> {
        self.answer = Some(self.request.serve(store, now)?);
        Ok(())
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.answer = Some(Err(refusal));
    }

    fn is_given_up(&self) -> bool {
        self.sender.is_closed()
    }

    fn answer(self: Box<Self>) {
        // Without one the caller learns that the writer is gone, as after a panic.
        if let Some(answer) = self.answer {
            let _ = self.sender.send(answer);
        }
    }
}
