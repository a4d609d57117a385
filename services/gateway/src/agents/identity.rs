//! Who an agent is, and what it does wrong.

use crate::{app::App, error::ApiError};
use axum::{extract::FromRequestParts, http::request::Parts};
use muster_schemas::{
    CommandId,
    agent::AGENT_NOTE,
    command::{Command, CommandEnvelope, Reply},
    event::{Actor, TraceContext},
    views::{ErrorCode, RefusalNote},
};
use std::sync::Arc;

/// The agent that sent a request, by the name of its node.
#[derive(Clone, Debug)]
pub(crate) struct Agent(pub(crate) Arc<str>);

impl<S: Sync> FromRequestParts<S> for Agent {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let unknown = || ApiError::new(ErrorCode::Unauthenticated, "the agent is unknown");
        parts.extensions.get::<Self>().cloned().ok_or_else(unknown)
    }
}

impl Agent {
    /// Requires that an agent speaks for its own node.
    pub(crate) async fn require_own(&self, app: &App, host: &str) -> Result<(), ApiError> {
        if *self.0 == *host {
            return Ok(());
        }
        let host: String = host.chars().take(100).collect();
        Err(self.lies(app, format!("it speaks for node `{host}`, and its token is for node `{}`", self.0)).await)
    }

    /// Puts on record that an agent did something wrong, and refuses it.
    pub(crate) async fn lies(&self, app: &App, why: String) -> ApiError {
        tracing::warn!(node = %self.0, why, "an agent is refused");
        self.note(app, &why).await;
        ApiError::new(ErrorCode::PermissionDenied, why)
    }

    /// Puts something on record. Without a record it is in this process's log only.
    pub(crate) async fn note(&self, app: &App, why: &str) {
        let end = why.floor_char_boundary(RefusalNote::MOST_WHY_BYTES);
        let command = Command::NoteRefusal { what: AGENT_NOTE.to_owned(), why: why[..end].to_owned() };
        if let Err(error) = self.command(app, CommandId::new_now(), command).await {
            tracing::warn!(node = %self.0, error = error.0.message, "what an agent did is not on record");
        }
    }

    /// Sends a command as the node. The record, if there is one, is seen by later queries.
    pub(crate) async fn command(&self, app: &App, id: CommandId, command: Command) -> Result<Reply, ApiError> {
        let actor = Actor::Executor(self.0.to_string());
        let envelope = CommandEnvelope { id, actor, trace: TraceContext::default(), command };
        let answer = app.ledger.send(&envelope).await?;
        app.reader.note_answer(answer.sequence);
        Ok(answer.result?)
    }
}
