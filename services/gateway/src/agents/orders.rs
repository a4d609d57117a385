//! An agent asks for its orders (OAR-K-02).

use crate::{agents::identity::Agent, app::App, error::ApiError};
use muster_schemas::{
    CommandId, PartId, RunId,
    agent::{AgentOrder, AgentOrders, AgentPull, LEAVING, MAX_PARTS},
    cluster::NodeCondition,
    command::{Command, Reply},
    node::{Briefing, Heartbeat, NodeOrder, ShortOrder},
    resources::NodeSpec,
    views::ErrorCode,
};

/// How far the numbers of runs may be ahead of the log that an agent tells.
const MOST_RUNS_AHEAD: u64 = 1 << 16;
/// The longest boot id, in bytes.
const MAX_BOOT_ID_BYTES: usize = 64;

/// What the state says about the node of an agent.
struct Standing {
    is_pulled: bool,
    is_up: bool,
    has_left: bool,
    is_drained: bool,
    /// A part that the agent claims to have, and that is on another node.
    foreign: Option<PartId>,
}

/// The answer to the question of an agent: its node is alive, and gets its orders.
pub(crate) async fn pull(app: &App, agent: &Agent, pull: AgentPull) -> Result<AgentOrders, ApiError> {
    agent.require_own(app, &pull.host).await?;
    if pull.parts.len() > MAX_PARTS || pull.boot_id.is_empty() || pull.boot_id.len() > MAX_BOOT_ID_BYTES {
        return Err(ApiError::invalid(format!("an agent has at most {MAX_PARTS} parts, and a boot id")));
    }
    app.reader.catch_up(None).await?;
    let standing = match standing(app, agent, &pull) {
        Some(standing) => standing,
        None => {
            join(app, agent, &pull).await?;
            app.reader.catch_up(None).await?;
            let gone = || ApiError::unavailable("the node has just been made; ask again");
            standing(app, agent, &pull).ok_or_else(gone)?
        }
    };
    if !standing.is_pulled {
        let why = format!("node `{}` is not one whose agent asks: it lacks the property `{}`", agent.0, NodeSpec::PULL);
        return Err(agent.lies(app, why).await);
    }
    if let Some(part) = standing.foreign {
        return Err(agent.lies(app, format!("it claims to have run {part}, which is on another node")).await);
    }
    change_service(app, agent, &pull, &standing).await?;
    let briefing = brief(app, agent, &pull, standing.is_up).await?;
    translate(app, agent, briefing, pull.is_leaving).await
}

fn standing(app: &App, agent: &Agent, pull: &AgentPull) -> Option<Standing> {
    app.reader.projection().read(|state| {
        let node = state.node_by_name(&agent.0)?;
        let is_foreign =
            |part: &&PartId| state.run(part.run()).is_some_and(|run| run.parts_on(node.id).next().is_none());
        Some(Standing {
            is_pulled: node.spec.is_pulled(),
            is_up: node.condition == NodeCondition::Up,
            has_left: node.drained.as_deref() == Some(LEAVING),
            is_drained: node.drained.is_some(),
            foreign: pull.parts.iter().find(is_foreign).copied(),
        })
    })
}

/// The node of the agent does not exist: it is made, if the settings allow that (OAR-K-04).
async fn join(app: &App, agent: &Agent, pull: &AgentPull) -> Result<(), ApiError> {
    let node = NodeSpec {
        name: agent.0.to_string(),
        cores: pull.cores,
        sockets: 1,
        memory_bytes: pull.memory_bytes,
        gpus: Vec::new(),
        properties: Default::default(),
    };
    let joined = agent.command(app, CommandId::new_now(), Command::AgentJoins { node: Box::new(node) }).await;
    match joined {
        Err(error) if error.0.code == ErrorCode::PermissionDenied => Err(agent.lies(app, error.0.message).await),
        joined => joined.map(drop),
    }
}

/// A node whose agent was told to quit takes no new job; when the agent asks again, it does (OAR-K-10).
async fn change_service(app: &App, agent: &Agent, pull: &AgentPull, standing: &Standing) -> Result<(), ApiError> {
    let nodes = vec![agent.0.to_string()];
    let command = match pull.is_leaving {
        true if !standing.is_drained => Command::DrainNodes { nodes, reason: LEAVING.to_owned(), is_down: false },
        false if standing.has_left => Command::ResumeNodes { nodes },
        _ => return Ok(()),
    };
    agent.command(app, CommandId::new_now(), command).await.map(drop)
}

/// Reports for the node as its executor would: with a greeting until it is up, then with signs of life.
async fn brief(app: &App, agent: &Agent, pull: &AgentPull, is_up: bool) -> Result<Briefing, ApiError> {
    let (boot_id, parts) = (pull.boot_id.clone(), pull.parts.clone());
    // The number comes from outside: numbers of a restored log are passed in small steps.
    let most = app.reader.projection().read(|state| RunId(state.next_run().0.saturating_add(MOST_RUNS_AHEAD)));
    let (highest_run, as_of) = (pull.highest_run.map(|run| run.min(most)), pull.as_of.map(Into::into));
    if is_up {
        let heartbeat = Heartbeat { node: agent.0.to_string(), boot_id, parts, highest_run, as_of };
        return Ok(app.ledger.heartbeat(&heartbeat).await?);
    }
    let hello = Command::NodeHello { boot_id, parts, highest_run, as_of };
    match agent.command(app, CommandId::new_now(), hello).await? {
        Reply::NodeOrders(briefing) => Ok(briefing),
        _ => Ok(Briefing::default()),
    }
}

/// The orders as agents get them. Those that an agent cannot obey are left out: they come for no job that may run there.
async fn translate(app: &App, agent: &Agent, briefing: Briefing, is_leaving: bool) -> Result<AgentOrders, ApiError> {
    let (mark, epoch) = (briefing.mark.map(Into::into), briefing.epoch);
    let mut orders = AgentOrders { mark, epoch, ..AgentOrders::default() };
    for order in briefing.orders {
        let order = match order {
            NodeOrder::ByHash(short) => fill(app, agent, *short).await?,
            order => order,
        };
        let (list, part) = match &order {
            NodeOrder::Launch { .. } if is_leaving => continue,
            NodeOrder::Launch { order, tasks: None } => (&mut orders.launch, order.part),
            NodeOrder::Stop { part, .. } => (&mut orders.kill, *part),
            NodeOrder::Signal { part, .. }
            | NodeOrder::Suspend { part }
            | NodeOrder::Resume { part }
            | NodeOrder::SetWalltime { part, .. }
            | NodeOrder::Forget { part }
            | NodeOrder::Tell { part, .. } => (&mut orders.other, *part),
            _ => continue,
        };
        let sent = AgentOrder::new(part, &without_access(order));
        list.push(sent.map_err(|error| ApiError::unavailable(error.to_string()))?);
    }
    Ok(orders)
}

/// A job on a node of somebody else gets no access to the system.
fn without_access(mut order: NodeOrder) -> NodeOrder {
    if let NodeOrder::Launch { order, .. } = &mut order {
        order.access = None;
    }
    order
}

/// The complete order, with the contents that it names.
async fn fill(app: &App, agent: &Agent, short: ShortOrder) -> Result<NodeOrder, ApiError> {
    let mut contents = Vec::new();
    for hash in short.missing.hashes() {
        contents.push((hash, app.ledger.content(&agent.0, hash).await?));
    }
    let content = |wanted| contents.iter().find(|(hash, _)| *hash == wanted).map(|(_, bytes)| &bytes[..]);
    short.fill(content).map_err(|error| ApiError::unavailable(error.to_string()))
}
