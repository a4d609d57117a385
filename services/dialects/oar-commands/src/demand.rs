//! Demands of OAR as requests of the model.

use super::{
    cluster::{CORE, CPU, Cluster, HOST, Known},
    filter::{Condition, condition},
};
use muster_oar::{
    predicate::Predicate,
    refusal::{Code, Refusal},
    request::demand::{self, Count, Group, Step},
    resources::{
        property::{ID, NODE},
        state::State,
    },
};
use muster_schemas::resources::{self as model, Alternative, Level, LevelCount, Request, Sharing};
use std::collections::BTreeMap;

/// A shape of a job as an alternative of the model. The planner takes the requests in order, so those that fewer nodes can
/// serve come first: they get theirs before others take them (OAR-R-09). A job that shares its resources gets all cores of
/// whole nodes, but not their memory, which nobody shares.
///
/// # Errors
/// What the planner cannot be told.
pub fn alternative(
    shape: &demand::Alternative,
    (job, site): (&Predicate, &Predicate),
    shares: bool,
    cluster: &Cluster,
) -> Result<Alternative, Refusal> {
    let requests = shape.groups.iter().map(|group| request(group, job, site, cluster)).collect::<Result<Vec<_>, _>>();
    let mut requests = requests?;
    if shares {
        requests.iter_mut().for_each(|(_, request)| without_memory(request));
    }
    requests.sort_by_key(|(nodes, _)| *nodes);
    let requests = requests.into_iter().map(|(_, request)| request).collect();
    Ok(Alternative { requests, walltime_seconds: u64::try_from(shape.walltime).ok(), ..Alternative::default() })
}

fn refused(group: &Group, why: impl Into<String>) -> Refusal {
    Refusal::option(Code::Syntax, &format!("-l {group}"), why)
}

/// The request of a group, and the number of nodes that match its filter.
fn request(group: &Group, job: &Predicate, site: &Predicate, cluster: &Cluster) -> Result<(usize, Request), Refusal> {
    let whole = group.whole_filter(job, site);
    let filter = match condition(&whole, cluster) {
        Ok(Condition::Always) => None,
        Ok(Condition::If(filter)) => Some(filter),
        Ok(Condition::Never) => {
            return Err(Refusal::option(Code::Resources, &format!("-l {group}"), "no resource matches its filter"));
        }
        Err(why) => return Err(Refusal::option(Code::Resources, "-p", format!("is not supported: {why}"))),
    };
    // A dead node never comes back, so it counts nowhere (OAR-R-06, OAR-R-10).
    let is_meant = |node: &&Known| {
        let resource = cluster.table.resource(node.first);
        resource.is_some_and(|resource| resource.state() != State::Dead && whole.matches(resource.values()))
    };
    let nodes: Vec<&Known> = cluster.nodes.iter().filter(is_meant).collect();
    let matching = nodes.len();
    let mut path = Vec::new();
    let mut regions = vec![Region { nodes, cores: None }];
    for step in &group.path {
        let level = level(step, cluster);
        if path.last().is_some_and(|above: &LevelCount| depth(&above.level) > depth(&level)) || repeats(&path, &level) {
            let order = "levels go from groups of nodes to nodes, cpus and cores, each once";
            return Err(refused(group, format!("is not supported: {order}")));
        }
        let inner = regions.iter().map(|region| region.items(&level, step)).collect::<Vec<_>>();
        let count = match step.count {
            Count::Exactly(number) => model::Count::exactly(number),
            Count::Best => model::Count::Best,
            Count::BestHalf => model::Count::BestHalf,
            Count::All => model::Count::exactly(number_in_each(&inner).ok_or_else(|| {
                refused(group, format!("{}=ALL is not supported here: the numbers differ; give one", step.level))
            })?),
        };
        path.push(LevelCount { level, count });
        regions = inner.into_iter().flatten().collect();
    }
    let is_whole = match path.last().map(|last| &last.level) {
        Some(Level::Group(_)) => {
            let nodes: Vec<Vec<Region<'_>>> = regions.iter().map(Region::by_node).collect();
            let count = number_in_each(&nodes).ok_or_else(|| {
                refused(group, "is not supported: the groups have different numbers of nodes; add /nodes=N")
            })?;
            path.push(LevelCount { level: Level::Node, count: model::Count::exactly(count) });
            true
        }
        Some(Level::Node) => true,
        _ => false,
    };
    let sharing = if is_whole { Sharing::WholeNodes } else { Sharing::Shared };
    Ok((matching, Request { path, filter, sharing, ..Request::default() }))
}

/// All cores of whole nodes, and nothing else of them.
fn without_memory(request: &mut Request) {
    if request.sharing == Sharing::WholeNodes {
        request.sharing = Sharing::Exclusive;
        request.path.push(LevelCount { level: Level::Core, count: model::Count::All });
    }
}

const fn depth(level: &Level) -> u8 {
    match level {
        Level::Group(_) => 0,
        Level::Node => 1,
        Level::Socket => 2,
        Level::Core | Level::Gpu => 3,
    }
}

fn repeats(path: &[LevelCount], level: &Level) -> bool {
    path.iter().any(|above| above.level == *level)
}

fn level(step: &Step, cluster: &Cluster) -> Level {
    match step.level.as_str() {
        NODE | HOST => Level::Node,
        CPU => Level::Socket,
        CORE | ID => Level::Core,
        other => Level::Group(cluster.properties.get(other).map_or_else(|| other.to_owned(), |own| own.name.clone())),
    }
}

/// A part of the tree: nodes, or a number of cores of one node.
struct Region<'k> {
    nodes: Vec<&'k Known>,
    cores: Option<u32>,
}

impl<'k> Region<'k> {
    fn by_node(&self) -> Vec<Region<'k>> {
        self.nodes.iter().map(|node| Region { nodes: vec![*node], cores: None }).collect()
    }

    /// Its items of a level.
    fn items(&self, level: &Level, step: &Step) -> Vec<Region<'k>> {
        match level {
            Level::Group(_) => {
                let mut groups: BTreeMap<_, Vec<&'k Known>> = BTreeMap::new();
                for node in &self.nodes {
                    if let Some(value) = node.properties.get(&step.level) {
                        groups.entry(value).or_default().push(node);
                    }
                }
                groups.into_values().map(|nodes| Region { nodes, cores: None }).collect()
            }
            Level::Node => self.by_node(),
            Level::Socket => {
                let sockets = self.nodes.iter().flat_map(|node| node.sockets.iter().map(move |cores| (*node, *cores)));
                sockets.map(|(node, cores)| Region { nodes: vec![node], cores: Some(cores) }).collect()
            }
            Level::Core | Level::Gpu => {
                let all = self.cores.unwrap_or_else(|| self.nodes.iter().map(|node| node.cores).sum());
                (0..all).map(|_| Region { nodes: Vec::new(), cores: Some(1) }).collect()
            }
        }
    }
}

/// The number of items in each region, if it is the same everywhere and not 0.
fn number_in_each(regions: &[Vec<Region<'_>>]) -> Option<u32> {
    let first = regions.first()?.len();
    let is_same = first > 0 && regions.iter().all(|region| region.len() == first);
    is_same.then(|| u32::try_from(first).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::{fixture, node};
    use muster_oar::request::{self, site::Site};
    use muster_schemas::resources::PropertyValue;

    fn asked(text: &str, cluster: &Cluster) -> Result<Alternative, String> {
        let shape = request::alternative(text, &Site::of(&cluster.table)).map_err(|refusal| refusal.to_string())?;
        alternative(&shape, (&Predicate::ALWAYS, &Predicate::ALWAYS), false, cluster)
            .map_err(|refusal| refusal.to_string())
    }

    fn shown(text: &str, cluster: &Cluster) -> String {
        let shape = match asked(text, cluster) {
            Ok(shape) => shape,
            Err(why) => return why,
        };
        let count = |count: &model::Count| match count {
            model::Count::Range { min, .. } => min.to_string(),
            other => format!("{other:?}"),
        };
        let one = |request: &Request| {
            let path = request.path.iter().map(|part| match &part.level {
                Level::Group(name) => format!("/{name}={}", count(&part.count)),
                level => format!("/{level:?}={}", count(&part.count)),
            });
            let whole = if request.sharing == Sharing::WholeNodes { " whole" } else { "" };
            let filter = request.filter.as_ref().map(|filter| format!(" {filter}")).unwrap_or_default();
            path.collect::<String>() + whole + &filter
        };
        shape.requests.iter().map(one).collect::<Vec<_>>().join(" + ")
    }

    /// OAR-R-03, OAR-R-06, OAR-R-07, OAR-R-08, OAR-R-09, OAR-R-10
    #[test]
    fn paths_become_requests() {
        let cluster = fixture();
        for (text, request) in [
            ("/switch=1/nodes=2/cpu=1", "/switch=1/Node=2/Socket=1"),
            ("/switch=2/nodes=1", "/switch=2/Node=1 whole"),
            ("/switch=1", "/switch=1/Node=2 whole"),
            ("/nodes=1/core=3", "/Node=1/Core=3"),
            ("/nodes=BEST", "/Node=Best whole"),
            ("/nodes=BESTHALF/core=2", "/Node=BestHalf/Core=2"),
            ("/nodes=ALL", "/Node=4 whole"),
            ("/switch=1/nodes=ALL/core=ALL", "/switch=1/Node=2/Core=4"),
            ("/core=ALL", "/Core=16"),
            ("core=5", "/Core=5"),
            ("", "/Core=1"),
            ("host=1+{switch='s1'}/nodes=2", "/Node=2 whole switch=s1 + /Node=1 whole"),
        ] {
            assert_eq!(shown(text, &cluster), request, "{text}");
        }
        assert_eq!(asked("nodes=1,walltime=2:10", &cluster).map(|shape| shape.walltime_seconds), Ok(Some(7800)));
    }

    /// OAR-T-40: whole nodes without their memory, which those who share the cores could not have together.
    #[test]
    fn jobs_that_share_get_all_cores_of_whole_nodes_and_no_memory() {
        let cluster = fixture();
        let shape = |text: &str| request::alternative(text, &Site::of(&cluster.table)).expect("it can be read");
        let shared = |text: &str| {
            alternative(&shape(text), (&Predicate::ALWAYS, &Predicate::ALWAYS), true, &cluster).expect("it is served")
        };
        for text in ["nodes=2", "/switch=1"] {
            let request = &shared(text).requests[0];
            assert_eq!(request.sharing, Sharing::Exclusive);
            let last = request.path.last().expect("it has levels");
            assert_eq!((&last.level, last.count), (&Level::Core, model::Count::All));
        }
        assert_eq!(Ok(shared("core=2")), asked("core=2", &cluster));
    }

    /// OAR-R-02: what the planner cannot be told is refused with the part of the request.
    #[test]
    fn what_the_planner_cannot_be_told_is_refused_by_name() {
        let cluster = fixture();
        for (text, why) in [
            ("/core=1/nodes=1", "-l /core=1/network_address=1: is not supported: levels go from groups"),
            ("/nodes=1/host=1", "each once"),
            ("{besteffort='NO'}/nodes=1", "no resource matches its filter (job id -5)"),
            ("{core<3}/nodes=1", "chooses a single core"),
        ] {
            assert!(shown(text, &cluster).contains(why), "{text}: {}", shown(text, &cluster));
        }
        let rack = |name: &str| [("rack", PropertyValue::Text(name.to_owned()))];
        let uneven =
            Cluster::of(&[node("n1", 4, 1, &rack("a")), node("n2", 4, 1, &rack("a")), node("n3", 4, 1, &rack("b"))]);
        assert!(shown("/rack=1", &uneven).contains("different numbers of nodes"));
        assert_eq!(shown("{rack='a'}/rack=1", &uneven), "/rack=1/Node=2 whole rack=a");
    }

    /// OAR-R-06, OAR-R-10: what is dead counts nowhere.
    #[test]
    fn dead_nodes_do_not_count() {
        let on = |name: &str| [("switch", PropertyValue::Text(name.to_owned()))];
        let mut dead = node("n2", 4, 2, &on("s1"));
        dead.state = muster_schemas::views::NodeStateWord::Drained;
        dead.reason = Some(format!("{}Dead", crate::cluster::MARK));
        let cluster = Cluster::of(&[node("n1", 4, 2, &on("s1")), dead, node("n3", 4, 2, &on("s2"))]);
        assert_eq!(shown("/nodes=ALL", &cluster), "/Node=2 whole");
        assert_eq!(shown("/switch=1", &cluster), "/switch=1/Node=1 whole");
    }
}
