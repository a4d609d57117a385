//! Jobs with equal demands, which share findings about one of them.

use crate::{
    limits::{Usage, Uses},
    model::{ComponentDemand, Demand},
};
use muster_domain::requests;
use muster_schemas::{Timestamp, cluster::ClusterSettings, job::WaitReason, resources::Alternative};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// The number of a class. Numbers of unused classes are reused.
pub(crate) type ClassId = u32;

/// Facts about all jobs with one demand.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub demand: Arc<Demand>,
    uses: u32,
    /// The least that it takes, by its first alternatives.
    pub size: Size,
    /// The least that each component takes in any of its ways, as limits count it.
    pub least: Uses,
    /// The least that each component takes in each of its ways.
    pub ways: Vec<Uses>,
    /// With fewer cores no way can serve it; at least 1.
    pub least_cores: u64,
    /// Why the machine, as it is, can never serve it, if that is so.
    pub hopeless: Option<WaitReason>,
    /// A number for that reason, which no other reason of any class has had; 0 while there has been none.
    pub judgement: u64,
    /// If there is a choice, which ways of each component can never be served.
    pub hopeless_ways: Vec<Vec<bool>>,
    /// How long it waits for nodes in few groups, if it wants those.
    pub patience: Option<Patience>,
}

/// How long a job waits for nodes in few groups (SL-C-12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// Its demand once it takes nodes in any groups.
    pub demand: Arc<Demand>,
    wait_seconds: u64,
}

impl Patience {
    fn of(demand: &Demand) -> Option<Self> {
        let ways = demand.components.iter().flat_map(|component| component.alternatives.iter());
        let wait_seconds = ways.filter_map(|way| way.groups.as_ref()).map(|few| few.wait_seconds).max()?;
        let mut anywhere = demand.clone();
        for component in &mut anywhere.components {
            let ways = component.alternatives.iter();
            component.alternatives = ways.map(|way| Alternative { groups: None, ..way.clone() }).collect();
        }
        Some(Self { demand: Arc::new(anywhere), wait_seconds })
    }

    /// Until when a job waits that could have started at this time.
    pub fn until(&self, possible: Timestamp) -> Timestamp {
        possible.plus_seconds(i64::try_from(self.wait_seconds).unwrap_or(i64::MAX))
    }
}

impl Class {
    /// Whether the job has one component that can be served in several ways: it takes the one that ends first.
    pub fn is_moldable(&self) -> bool {
        matches!(&self.demand.components[..], [component] if component.alternatives.len() > 1)
    }

    /// Whether a component of the job can be served in several ways.
    pub fn has_choice(&self) -> bool {
        self.ways.iter().any(|ways| ways.len() > 1)
    }

    /// A component of which limits shut all ways that could serve it, and the first of those.
    pub fn shut_way(&self, open: &[Vec<bool>]) -> Option<(usize, usize)> {
        let can_serve = |number: usize, way: usize| {
            let is_hopeless = self.hopeless_ways.get(number).and_then(|ways| ways.get(way));
            !is_hopeless.copied().unwrap_or(false)
        };
        open.iter().enumerate().find_map(|(number, open)| {
            let mut ways = (0..open.len()).filter(|way| can_serve(number, *way));
            let is_left = ways.clone().any(|way| open[way]);
            ways.next().filter(|_| !is_left).map(|way| (number, way))
        })
    }
}

/// The size of a job, for orders and limits: the sum over its components, each by its first alternative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Nodes.
    pub nodes: u64,
    /// Cores.
    pub cores: u64,
    /// GPUs.
    pub gpus: u64,
    /// Memory.
    pub memory_bytes: u64,
    /// The longest walltime of the components; `None` if one has none.
    pub walltime_seconds: Option<u64>,
}

impl Size {
    /// The size of a demand.
    pub fn of(demand: &Demand, settings: &ClusterSettings) -> Self {
        let mut size = Self { walltime_seconds: Some(0), ..Self::default() };
        for component in &demand.components {
            size.add_component(component, settings);
        }
        size.walltime_seconds = size.walltime_seconds.map(|seconds| demand.own_seconds(seconds));
        size
    }

    fn add_component(&mut self, component: &ComponentDemand, settings: &ClusterSettings) {
        let first = component.alternatives.first();
        self.add(first.unwrap_or(&Alternative::default()), settings);
    }

    fn add(&mut self, alternative: &Alternative, settings: &ClusterSettings) {
        for request in &alternative.requests {
            let least = requests::minimum(request, settings);
            self.nodes = self.nodes.saturating_add(least.nodes);
            self.cores = self.cores.saturating_add(least.cores);
            self.gpus = self.gpus.saturating_add(least.gpus);
            self.memory_bytes = self.memory_bytes.saturating_add(least.memory_bytes);
        }
        if alternative.requests.is_empty() {
            self.nodes = self.nodes.saturating_add(1);
            self.cores = self.cores.saturating_add(1);
        }
        let both = self.walltime_seconds.zip(alternative.walltime_seconds);
        self.walltime_seconds = both.map(|(longest, own)| longest.max(own));
    }
}

/// The least that each component of a demand takes in each of its ways, as limits count it.
fn ways(demand: &Demand, settings: &ClusterSettings) -> Vec<Uses> {
    let of_way = |alternative: &Alternative| {
        let mut size = Size { walltime_seconds: Some(0), ..Size::default() };
        size.add(alternative, settings);
        let Size { nodes, cores, gpus, memory_bytes, walltime_seconds } = size;
        let walltime_seconds = walltime_seconds.map_or(u64::MAX, |seconds| demand.own_seconds(seconds));
        Usage { jobs: 1, nodes, cores, gpus, memory_bytes, walltime_seconds }
    };
    let of_component = |component: &ComponentDemand| match &component.alternatives[..] {
        [] => vec![of_way(&Alternative::default())],
        alternatives => alternatives.iter().map(of_way).collect(),
    };
    demand.components.iter().map(of_component).collect()
}

/// The least that each component of a demand takes: for each amount the least that any of its ways needs.
pub(crate) fn least(demand: &Demand, settings: &ClusterSettings) -> Uses {
    least_of(&ways(demand, settings))
}

fn least_of(ways: &[Uses]) -> Uses {
    ways.iter().map(|ways| ways.iter().copied().reduce(Usage::least).unwrap_or_default()).collect()
}

/// With fewer cores no way can serve a demand.
fn least_cores(demand: &Demand, size: &Size) -> u64 {
    let has_choice = demand.components.len() > 1 || demand.components.iter().any(|one| one.alternatives.len() > 1);
    if has_choice { 1 } else { size.cores.max(1) }
}

/// All classes in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    by_demand: HashMap<Arc<Demand>, ClassId>,
    classes: Vec<Class>,
    /// For each class the last pass in which it was found not to fit now. Within a pass free resources only shrink, so
    /// equal jobs need no look.
    failed_in_pass: Vec<u64>,
    unused: Vec<ClassId>,
    /// Classes that may be hopeless, still to be judged.
    unjudged: Vec<ClassId>,
    /// Classes found to be hopeless.
    hopeless: BTreeSet<ClassId>,
    /// The number of the last judgement.
    judgements: u64,
}

impl Classes {
    /// The class of a demand, with one more use.
    pub fn take(&mut self, demand: &Arc<Demand>, settings: &ClusterSettings) -> ClassId {
        if let Some(id) = self.by_demand.get(demand) {
            self.classes[*id as usize].uses += 1;
            return *id;
        }
        let size = Size::of(demand, settings);
        let least_cores = least_cores(demand, &size);
        let ways = ways(demand, settings);
        let least = least_of(&ways);
        let (demand_of_class, hopeless_ways, patience) = (demand.clone(), Vec::new(), Patience::of(demand));
        let class = Class {
            demand: demand_of_class,
            uses: 1,
            size,
            least,
            ways,
            least_cores,
            hopeless: None,
            judgement: 0,
            hopeless_ways,
            patience,
        };
        let id = match self.unused.pop() {
            Some(id) => {
                self.classes[id as usize] = class;
                self.failed_in_pass[id as usize] = 0;
                id
            }
            None => {
                self.classes.push(class);
                self.failed_in_pass.push(0);
                u32::try_from(self.classes.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.by_demand.insert(demand.clone(), id);
        self.unjudged.push(id);
        id
    }

    /// All ids are below this.
    pub fn most(&self) -> usize {
        self.classes.len()
    }

    /// One use less; the last one removes the class.
    pub fn give_back(&mut self, id: ClassId) {
        let class = &mut self.classes[id as usize];
        class.uses -= 1;
        if class.uses == 0 {
            self.by_demand.remove(&class.demand);
            self.unused.push(id);
            self.hopeless.remove(&id);
        }
    }

    /// The classes to judge; all of them if the machine has changed.
    pub fn take_unjudged(&mut self, is_other_machine: bool) -> Vec<ClassId> {
        if is_other_machine {
            self.unjudged = (0..).zip(&self.classes).filter(|(_, class)| class.uses > 0).map(|(id, _)| id).collect();
        }
        std::mem::take(&mut self.unjudged)
    }

    /// Records whether the class is hopeless and why, and, if it has a choice, which of its ways are.
    pub fn judge(&mut self, id: ClassId, hopeless: Option<WaitReason>, hopeless_ways: Vec<Vec<bool>>) {
        if hopeless.is_some() {
            self.hopeless.insert(id);
        } else {
            self.hopeless.remove(&id);
        }
        let class = &mut self.classes[id as usize];
        if class.hopeless != hopeless {
            self.judgements += 1;
            class.judgement = self.judgements;
        }
        (class.hopeless, class.hopeless_ways) = (hopeless, hopeless_ways);
    }

    /// Whether a class can never be served.
    pub fn is_hopeless(&self, id: ClassId) -> bool {
        !self.hopeless.is_empty() && self.hopeless.contains(&id)
    }

    /// Whether any class can never be served.
    pub fn has_hopeless(&self) -> bool {
        !self.hopeless.is_empty()
    }

    /// How many classes are in use.
    pub fn len(&self) -> usize {
        self.by_demand.len()
    }

    /// Whether the class was found not to fit in this pass.
    pub fn has_failed(&self, id: ClassId, pass: u64) -> bool {
        self.failed_in_pass[id as usize] == pass
    }

    /// Records that the class does not fit in this pass.
    pub fn fails(&mut self, id: ClassId, pass: u64) {
        self.failed_in_pass[id as usize] = pass;
    }

    pub fn get(&self, id: ClassId) -> &Class {
        &self.classes[id as usize]
    }

    /// Measures all demands again, after a change of the memory for requests that name none.
    pub fn measure(&mut self, settings: &ClusterSettings) {
        for class in &mut self.classes {
            class.size = Size::of(&class.demand, settings);
            class.ways = ways(&class.demand, settings);
            class.least = least_of(&class.ways);
            class.least_cores = least_cores(&class.demand, &class.size);
        }
    }
}
