//! The log itself.

use crate::{
    app::{App, Caller},
    error::ApiError,
    params::Params,
    reader::unexpected,
};
use axum::{
    body::{Body, Bytes},
    extract::State,
    http::header,
    response::IntoResponse,
};
use muster_bus::BusError;
use muster_schemas::{
    Sequence, codec,
    command::{FaultKind, Query, QueryAnswer, RefusalCode},
    event::Commit,
    views::{ErrorBody, ErrorCode, VerifyProgress},
};
use serde::Deserialize;
use std::convert::Infallible;
use tokio::sync::OwnedSemaphorePermit;
use utoipa::IntoParams;

/// Bytes of records in a page if the caller does not say how many.
const DEFAULT_PAGE_BYTES: u32 = 4 << 20;
/// Records that are verified before progress is reported.
const VERIFY_RECORDS: u64 = 20_000;

/// Which records are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RecordsParams {
    /// The first wanted; the first of all if left out.
    from: Option<Sequence>,
    /// About this many bytes in all, but at least one record; the ledger has its own limit.
    max_bytes: Option<u32>,
}

/// Read records of the log
///
/// The answer is in muster's own encoding, with everything that jobs were submitted with: for operators.
#[utoipa::path(get, path = "/v1/records", tag = "log", params(RecordsParams),
    responses((status = 200, content_type = "application/octet-stream", body = Vec<u8>),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn records(
    State(app): State<App>,
    Caller(caller): Caller,
    Params(params): Params<RecordsParams>,
) -> Result<impl IntoResponse, ApiError> {
    if !app.is_operator(&caller) {
        return Err(ApiError::new(ErrorCode::PermissionDenied, "only operators may read the records of the log"));
    }
    app.reader.catch_up(None).await?;
    let from = params.from.unwrap_or_default().max(Sequence(1));
    let records = app.reader.replay(from, params.max_bytes.unwrap_or(DEFAULT_PAGE_BYTES)).await?;
    let bytes = codec::encode(&Commit { records }).map_err(|error| ApiError::unavailable(error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes))
}

/// From where to verify.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct VerifyParams {
    /// The first record to verify; the first of all that are not archived if left out.
    from: Option<Sequence>,
}

/// A verification under way.
struct Verification {
    app: App,
    next: Sequence,
    head: Sequence,
    checkpoints: u64,
    ended: bool,
    _turn: OwnedSemaphorePermit,
}

/// Verify the log: chain, signatures and digests
///
/// Each line of the answer shows the progress; the last is complete or has a fault.
#[utoipa::path(get, path = "/v1/audit/verify", tag = "log", params(VerifyParams),
    responses((status = 200, content_type = "application/x-ndjson", body = VerifyProgress),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn verify(
    State(app): State<App>,
    Params(params): Params<VerifyParams>,
) -> Result<impl IntoResponse, ApiError> {
    let busy = |_| ApiError::unavailable("the log is being verified for somebody else");
    let turn = app.verifications.clone().try_acquire_owned().map_err(busy)?;
    let (head, first) = match app.ledger.query(&Query::Head).await? {
        QueryAnswer::Head { last, first, .. } => (last, first),
        other => return Err(unexpected(&other)),
    };
    let next = params.from.unwrap_or(first);
    let verification = Verification { app, next, head, checkpoints: 0, ended: false, _turn: turn };
    let lines = futures::stream::unfold(verification, |mut verification| async move {
        let line = verification.next_line().await?;
        Some((Ok::<_, Infallible>(line), verification))
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)))
}

impl Verification {
    async fn next_line(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let progress = self.step().await;
        self.ended = progress.complete || progress.fault.is_some();
        let mut line = serde_json::to_vec(&progress).unwrap_or_default();
        line.push(b'\n');
        Some(line.into())
    }

    async fn step(&mut self) -> VerifyProgress {
        let query = Query::Verify { from: self.next, max_records: VERIFY_RECORDS };
        let (to, head, checkpoints) = (self.next, self.head, self.checkpoints);
        let unable = |fault: String| VerifyProgress {
            to,
            head,
            complete: false,
            checkpoints,
            unsigned_records: 0,
            unsigned_since: None,
            fault: Some(fault),
            fault_kind: None,
        };
        let mut progress = match self.app.ledger.query(&query).await {
            Ok(QueryAnswer::Verified {
                to,
                complete,
                checkpoints,
                unsigned_records,
                unsigned_since,
                fault,
                fault_kind,
            }) => {
                let (head, checkpoints) = (self.head.max(to), self.checkpoints + checkpoints);
                VerifyProgress { to, head, complete, checkpoints, unsigned_records, unsigned_since, fault, fault_kind }
            }
            Err(BusError::Refused(refusal)) if refusal.code == RefusalCode::StorageFailed => VerifyProgress {
                fault_kind: Some(FaultKind::Damaged),
                ..unable(format!("it cannot be read: {refusal}"))
            },
            Ok(other) => unable(unexpected(&other).0.message),
            Err(error) => unable(format!("it could not be verified: {error}")),
        };
        if !progress.complete && progress.fault.is_none() && progress.to < self.next {
            progress.fault = Some("the ledger does not come forward".to_owned());
        }
        self.next = progress.to.next();
        self.checkpoints = progress.checkpoints;
        progress
    }
}
