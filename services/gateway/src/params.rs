//! Parameters of addresses.

use crate::error::ApiError;
use axum::{
    extract::{FromRequestParts, Query, rejection::PathRejection},
    http::request::Parts,
};
use muster_schemas::{JobId, Sequence, Timestamp};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use std::{collections::BTreeMap, fmt, str::FromStr};
use utoipa::IntoParams;

/// Of which moment an answer is wanted.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct MomentParams {
    /// Answer as after the last record at or before this time.
    pub(crate) at: Option<Timestamp>,
    /// Answer as after this record.
    pub(crate) at_seq: Option<Sequence>,
    /// Answer only once the gateway knows this record. Not needed to see what this gateway has answered.
    pub(crate) wait_seq: Option<Sequence>,
}

/// No parameters at all.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
pub(crate) struct NoParams {}

/// Parameters of a query about the state: the moment, and others. A parameter that neither knows is refused.
pub(crate) struct At<T>(pub(crate) MomentParams, pub(crate) T);

/// Parameters of a request that is not about a moment.
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned + IntoParams> FromRequestParts<S> for At<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut known = names::<MomentParams>();
        known.extend(names::<T>());
        check_names(parts, &known)?;
        let moment: MomentParams = read(parts)?;
        if moment.at.is_some() && moment.at_seq.is_some() {
            return Err(ApiError::malformed("`at` and `at_seq` cannot both be given"));
        }
        Ok(Self(moment, read(parts)?))
    }
}

impl<S: Sync, T: DeserializeOwned + IntoParams> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        check_names(parts, &names::<T>())?;
        read(parts).map(Self)
    }
}

/// The variable parts of an address.
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read = axum::extract::Path::from_request_parts(parts, state).await;
        let refused = |rejection: PathRejection| ApiError::malformed(format!("the address: {}", rejection.body_text()));
        read.map(|axum::extract::Path(value)| Self(value)).map_err(refused)
    }
}

fn names<T: IntoParams>() -> Vec<String> {
    T::into_params(|| None).into_iter().map(|parameter| parameter.name).collect()
}

fn check_names(parts: &Parts, known: &[String]) -> Result<(), ApiError> {
    if parts.uri.query().is_none_or(str::is_empty) {
        return Ok(());
    }
    let given: Vec<(String, String)> = read(parts)?;
    let mut seen = BTreeMap::new();
    for (name, value) in given {
        if !known.contains(&name) {
            let known = if known.is_empty() { "none".to_owned() } else { format!("`{}`", known.join("`, `")) };
            return Err(ApiError::malformed(format!("unknown parameter `{name}`; known here: {known}")));
        }
        if seen.insert(name.clone(), value).is_some() {
            return Err(ApiError::malformed(format!("parameter `{name}` is given twice")));
        }
    }
    Ok(())
}

fn read<T: DeserializeOwned>(parts: &Parts) -> Result<T, ApiError> {
    Query::try_from_uri(&parts.uri)
        .map(|Query(value)| value)
        .map_err(|rejection| ApiError::malformed(format!("parameters: {}", rejection.body_text())))
}

/// Values separated by commas.
pub(crate) fn list<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.split(',').filter(|item| !item.is_empty()).map(|item| item.parse().map_err(D::Error::custom)).collect()
}

/// Values separated by commas that are one word each.
pub(crate) fn words<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    use serde::de::IntoDeserializer as _;
    let text = String::deserialize(deserializer)?;
    let items = text.split(',').filter(|item| !item.is_empty());
    items
        .map(|item| {
            T::deserialize(item.into_deserializer()).map_err(|error: serde::de::value::Error| D::Error::custom(error))
        })
        .collect()
}

/// The id of a job in an address.
pub(crate) fn job_id(text: &str) -> Result<JobId, ApiError> {
    text.parse().map_err(|error| ApiError::malformed(format!("{error}")))
}
