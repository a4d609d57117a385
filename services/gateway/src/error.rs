use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use muster_bus::BusError;
use muster_schemas::{
    command::Refusal,
    views::{ErrorBody, ErrorCode},
};

/// Why a request failed, on its way to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError(pub(crate) ErrorBody);

impl ApiError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(ErrorBody { code, message: message.into() })
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Malformed, message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Invalid, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotFound, message)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unavailable, message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let json = serde_json::to_string(&self.0).unwrap_or_default();
        (status, [(header::CONTENT_TYPE, "application/json")], json).into_response()
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self(refusal.into())
    }
}

impl From<BusError> for ApiError {
    fn from(error: BusError) -> Self {
        match error {
            BusError::Refused(refusal) => refusal.into(),
            BusError::TooLarge { bytes, limit } => {
                let message = format!("the request takes {bytes} bytes, the bus carries {limit}: divide it");
                Self::new(ErrorCode::TooLarge, message)
            }
            BusError::NoResponder { .. } => Self::unavailable("the ledger does not answer; nothing was done"),
            BusError::TimedOut { .. } => Self::unavailable("the ledger has not answered in time"),
            other => Self::unavailable(other.to_string()),
        }
    }
}
