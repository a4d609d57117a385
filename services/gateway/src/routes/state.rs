//! Queries about nodes, queues, the cluster and usage.

use crate::{
    app::{App, Caller},
    error::ApiError,
    params::{At, MomentParams, NoParams, Path, words},
    views,
};
use axum::extract::State;
use muster_bus::{BusError, Message};
use muster_schemas::{
    Timestamp,
    cluster::ClusterConfig,
    command::{Query, QueryAnswer},
    event::uuid_bytes::UuidBytes,
    policy::Policy,
    subjects,
    usage::{UsageAnswer, UsageDimension, UsageMoment, UsageQuery},
    views::{DialectsView, ErrorBody, InfoView, NodeView, NodesPage, QueuesPage, RequestDefault, Statistics},
};
use serde::Deserialize;
use std::{collections::BTreeMap, fmt::Write as _, time::Duration};
use utoipa::IntoParams;

/// How long an accounting service may take, counting from the log if need be.
const USAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the ledger may take to report the end of the log.
const HEAD_PATIENCE: Duration = Duration::from_secs(2);

/// List nodes
#[utoipa::path(get, path = "/v1/nodes", tag = "nodes", params(MomentParams),
    responses((status = 200, body = NodesPage), (status = "default", body = ErrorBody)))]
pub(crate) async fn nodes(
    State(app): State<App>,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<NodesPage>, ApiError> {
    app.reader.read(moment, |state| Ok(views::nodes_page(state))).await.map(axum::Json)
}

/// Show a node
#[utoipa::path(get, path = "/v1/nodes/{name}", tag = "nodes",
    params(("name" = String, Path, description = "The node's name."), MomentParams),
    responses((status = 200, body = NodeView), (status = "default", body = ErrorBody)))]
pub(crate) async fn node(
    State(app): State<App>,
    Path(name): Path<String>,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<NodeView>, ApiError> {
    let view = app.reader.read(moment, |state| {
        let node =
            state.node_by_name(&name).ok_or_else(|| ApiError::not_found(format!("there is no node `{name}`")))?;
        Ok(views::node_view(state, node))
    });
    view.await.map(axum::Json)
}

/// List queues and licences
#[utoipa::path(get, path = "/v1/queues", tag = "cluster", params(MomentParams),
    responses((status = 200, body = QueuesPage), (status = "default", body = ErrorBody)))]
pub(crate) async fn queues(
    State(app): State<App>,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<QueuesPage>, ApiError> {
    app.reader.read(moment, |state| Ok(views::queues_page(state))).await.map(axum::Json)
}

/// Show the cluster's configuration
#[utoipa::path(get, path = "/v1/config", tag = "cluster", params(MomentParams),
    responses((status = 200, body = ClusterConfig), (status = "default", body = ErrorBody)))]
pub(crate) async fn config(
    State(app): State<App>,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<ClusterConfig>, ApiError> {
    app.reader.read(moment, |state| Ok(state.configuration())).await.map(axum::Json)
}

/// Show the policy that planners follow
#[utoipa::path(get, path = "/v1/policy", tag = "cluster", params(MomentParams),
    responses((status = 200, body = Policy), (status = "default", body = ErrorBody)))]
pub(crate) async fn policy(
    State(app): State<App>,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<Policy>, ApiError> {
    app.reader.read(moment, |state| Ok(Policy::clone(state.policy()))).await.map(axum::Json)
}

/// Show the settings for the commands of dialects
#[utoipa::path(get, path = "/v1/dialects", tag = "cluster", params(MomentParams),
    responses((status = 200, body = DialectsView), (status = "default", body = ErrorBody)))]
pub(crate) async fn dialects(
    State(app): State<App>,
    Caller(caller): Caller,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<DialectsView>, ApiError> {
    let view = app.reader.read(moment, |state| {
        let settings = state.settings();
        Ok(DialectsView {
            cluster: settings.name.clone(),
            caller: caller.user.clone(),
            dialects: app.config.dialects.clone(),
            default_queue: settings.default_queue.clone(),
            defaults: request_defaults(state),
        })
    });
    view.await.map(axum::Json)
}

/// The name, between that of a dialect and that of a resource, of attributes with a request of jobs that make none of their own.
const REQUEST_DEFAULT: &str = ".resources_default.";

/// The requests of jobs that make none of their own. The walltime of a queue has a field of its own, which the server fills in
/// unless a job asks for something: so it is told where all queues have a default that would win over it.
fn request_defaults(state: &muster_domain::State) -> Vec<RequestDefault> {
    let told = |queue: Option<&str>, (name, value): (&String, &String)| {
        let is_default = name.contains(REQUEST_DEFAULT);
        is_default.then(|| RequestDefault {
            attribute: name.clone(),
            queue: queue.map(str::to_owned),
            value: value.clone(),
        })
    };
    let mut all: Vec<RequestDefault> =
        state.settings().attributes.iter().filter_map(|attribute| told(None, attribute)).collect();
    let of_walltime: Vec<String> = all.iter().map(|default| default.attribute.clone()).collect();
    let of_walltime: Vec<&String> = of_walltime.iter().filter(|name| name.ends_with(".walltime")).collect();
    for queue in state.queues() {
        let name = Some(queue.spec.name.as_str());
        all.extend(queue.spec.attributes.iter().filter_map(|attribute| told(name, attribute)));
        if let Some(seconds) = queue.spec.default_walltime_seconds {
            let seconds = seconds.to_string();
            all.extend(of_walltime.iter().filter_map(|attribute| told(name, (*attribute, &seconds))));
        }
    }
    all
}

/// Show the identity and state of the system
#[utoipa::path(get, path = "/v1/info", tag = "cluster", params(MomentParams),
    responses((status = 200, body = InfoView), (status = "default", body = ErrorBody)))]
pub(crate) async fn info(
    State(app): State<App>,
    Caller(caller): Caller,
    At(moment, NoParams {}): At<NoParams>,
) -> Result<axum::Json<InfoView>, ApiError> {
    let view = app.reader.read(moment, |state| {
        let mut nodes = BTreeMap::new();
        for node in state.nodes() {
            *nodes.entry(views::node_state(node)).or_insert(0) += 1;
        }
        Ok(InfoView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cluster: state.settings().name.clone(),
            cluster_id: state.cluster().map(|cluster| UuidBytes(cluster.cluster_id).to_string()).unwrap_or_default(),
            sequence: state.sequence(),
            time: state.time(),
            head: None,
            first: None,
            head_hash: None,
            jobs: views::job_counts(state),
            held_until: views::held_until(state),
            nodes,
            caller: caller.user.clone(),
            dialects: app.config.dialects.clone(),
            next_job_number: state.next_job_number(),
        })
    });
    let mut view = view.await?;
    if let Ok(QueryAnswer::Head { last, first, last_hash, .. }) =
        app.ledger.clone().with_patience(HEAD_PATIENCE).query(&Query::Head).await
    {
        view.head = Some(last);
        view.first = Some(first);
        view.head_hash = Some(last_hash.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }));
    }
    Ok(axum::Json(view))
}

/// A query for usage.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct UsageParams {
    /// Windows that end after this time; left out, all from the first.
    from: Option<Timestamp>,
    /// Windows that begin before this time; left out, all to the last.
    to: Option<Timestamp>,
    /// Only of this user.
    user: Option<String>,
    /// Only of this account.
    account: Option<String>,
    /// Only in this queue.
    queue: Option<String>,
    /// Columns by which rows are split, separated by commas: `window`, `user`, `account`, `queue`; left out, all of
    /// them.
    #[serde(default, deserialize_with = "words")]
    #[param(value_type = Option<String>)]
    by: Vec<UsageDimension>,
}

/// Show requests and usage
#[utoipa::path(get, path = "/v1/usage", tag = "cluster", params(MomentParams, UsageParams),
    responses((status = 200, body = UsageAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn usage(
    State(app): State<App>,
    At(moment, params): At<UsageParams>,
) -> Result<axum::Json<UsageAnswer>, ApiError> {
    app.reader.catch_up(moment.wait_seq).await?;
    let at = app.reader.sequence_of(moment).await?;
    let query = UsageQuery {
        from: params.from,
        to: params.to,
        user: params.user,
        account: params.account,
        queue: params.queue,
        by: params.by,
        at_least: Some(app.reader.projection().sequence()),
        at: at.map(|sequence| UsageMoment { sequence, time: moment.at }),
    };
    let unreadable = |source| BusError::Malformed { subject: subjects::ACCOUNTING_USAGE.to_owned(), source };
    let message = Message::encode(&query).map_err(unreadable)?;
    let reply = match app.bus.request(subjects::ACCOUNTING_USAGE, message, USAGE_TIMEOUT).await {
        Err(BusError::NoResponder { .. }) => return Err(ApiError::unavailable("no accounting service answers")),
        Err(BusError::TimedOut { .. }) => return Err(ApiError::unavailable("no accounting service answers in time")),
        reply => reply?,
    };
    Ok(axum::Json(reply.decode().map_err(unreadable)?))
}

/// Show how the scheduler does
///
/// Counted since the start of the gateway that answers.
#[utoipa::path(get, path = "/v1/statistics", tag = "system",
    responses((status = 200, body = Statistics), (status = "default", body = ErrorBody)))]
pub(crate) async fn statistics(State(app): State<App>) -> Result<axum::Json<Statistics>, ApiError> {
    app.reader.catch_up(None).await?;
    app.live.wait_for(app.reader.projection().sequence()).await;
    Ok(axum::Json(app.reader.projection().read(|state| app.counts.told(state))))
}
