//! Which cores of a node the tasks of a step get, and which of them each task is bound to.

use crate::decide::{invalid, refuse};
use muster_schemas::{
    binding::{Binding, CoreBinding, SocketOrder},
    command::{Refusal, RefusalCode},
    resources::{IndexSet, NodeSpec},
};

/// The cores of a step on a node.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bound {
    /// All of them.
    pub(super) cores: IndexSet,
    /// Those of each task, if the step binds them: see [`muster_schemas::steps::StepShare::bound`].
    pub(super) tasks: Vec<IndexSet>,
}

/// The tasks among which the cores of a node are dealt out.
pub(super) struct Wish<'a> {
    /// How the tasks are bound.
    pub(super) binding: &'a Binding,
    /// The number of tasks.
    pub(super) tasks: u32,
    /// Cores for each of them.
    pub(super) cpus_per_task: u32,
    /// Cores of the step, at most as many as are free.
    pub(super) cores: u64,
}

/// The node, with what the step can have of it.
pub(super) struct Place<'a> {
    /// Its specification.
    pub(super) node: &'a NodeSpec,
    /// The cores of the job there.
    pub(super) held: &'a IndexSet,
    /// Those that no other step uses.
    pub(super) free: &'a IndexSet,
}

/// Deals the cores of a node out to the tasks of a step.
pub(super) fn deal(wish: &Wish<'_>, place: &Place<'_>) -> Result<Bound, Refusal> {
    if let Some(CoreBinding::Listed(list)) = &wish.binding.cores {
        return listed(list, wish, place);
    }
    require_room_on_sockets(wish, place)?;
    let allowed = allowed(wish, place);
    let own = Dealer::new(wish, place, &allowed).deal()?;
    let chosen = own.iter().fold(IndexSet::new(), |all, one| all.union(one));
    let more = wish.cores.saturating_sub(chosen.len());
    let cores = chosen.union(&place.free.difference(&chosen).smallest(more));
    let tasks = match &wish.binding.cores {
        // The rule of steps without a binding.
        None if cores.len() != u64::from(wish.tasks) * u64::from(wish.cpus_per_task) => Vec::new(),
        None | Some(CoreBinding::Own) => own,
        Some(CoreBinding::All) => vec![cores.clone()],
        Some(CoreBinding::Sockets) => own.iter().map(|own| place.beside(own).intersection(&cores)).collect(),
        Some(CoreBinding::EachSocket | CoreBinding::ListedSockets(_)) => {
            allowed.iter().map(|allowed| some_of(allowed, &cores, place)).collect::<Result<_, _>>()?
        }
        Some(CoreBinding::Listed(_)) => Vec::new(),
    };
    Ok(Bound { cores, tasks })
}

/// The cores of a step among those that a task may use. A task that is bound to none would use all of the node.
fn some_of(allowed: &IndexSet, cores: &IndexSet, place: &Place<'_>) -> Result<IndexSet, Refusal> {
    let some = allowed.intersection(cores);
    if some.is_empty() {
        let name = &place.node.name;
        let message =
            format!("the step has cores {cores} on node {name}, and a task is to be bound to a socket of others");
        return Err(refuse(RefusalCode::LimitReached, message));
    }
    Ok(some)
}

/// The cores that each task may get by its binding, until they repeat: at least one entry, at most one for each task.
fn allowed(wish: &Wish<'_>, place: &Place<'_>) -> Vec<IndexSet> {
    let tasks = wish.tasks.max(1);
    match &wish.binding.cores {
        Some(CoreBinding::EachSocket) => {
            (0..place.sockets().min(tasks)).map(|socket| place.of_socket(socket)).collect()
        }
        Some(CoreBinding::ListedSockets(list)) => {
            let known = IndexSet::first_n(place.sockets());
            let of_sockets = |sockets: &IndexSet| {
                let sockets = sockets.intersection(&known);
                sockets.iter().fold(IndexSet::new(), |all, socket| all.union(&place.of_socket(socket)))
            };
            list.iter().take(tasks as usize).map(of_sockets).collect()
        }
        _ => vec![IndexSet::first_n(place.node.cores)],
    }
}

/// Refuses more tasks than the sockets of the node may have.
fn require_room_on_sockets(wish: &Wish<'_>, place: &Place<'_>) -> Result<(), Refusal> {
    let Some(most) = wish.binding.tasks_per_socket else { return Ok(()) };
    let has_some = |socket: &u32| !place.of_socket(*socket).intersection(place.held).is_empty();
    let count = (0..place.sockets()).filter(has_some).count();
    let (name, tasks) = (&place.node.name, wish.tasks);
    if u64::from(most) * count as u64 >= u64::from(tasks) {
        return Ok(());
    }
    let message = format!(
        "{tasks} tasks are wanted on node {name}, with {most} on each of the {count} sockets that the job has there"
    );
    Err(refuse(RefusalCode::LimitReached, message))
}

/// The cores that the step names for its tasks, and others until it has as many as it wants.
fn listed(list: &[IndexSet], wish: &Wish<'_>, place: &Place<'_>) -> Result<Bound, Refusal> {
    let used = list.iter().take(wish.tasks as usize);
    let named = used.fold(IndexSet::new(), |all, one| all.union(one));
    let name = &place.node.name;
    let foreign = named.difference(place.held);
    if !foreign.is_empty() {
        let held = place.held;
        return Err(invalid(format!("a task is to be bound to cores {foreign} of node {name}, the job has {held}")));
    }
    let taken = named.difference(place.free);
    if !taken.is_empty() {
        return Err(busy(format!("cores {taken} of node {name} are in use by other steps")));
    }
    let more = wish.cores.saturating_sub(named.len());
    let cores = named.union(&place.free.difference(&named).smallest(more));
    Ok(Bound { cores, tasks: list.iter().take(wish.tasks as usize).cloned().collect() })
}

fn busy(message: String) -> Refusal {
    refuse(RefusalCode::Busy, message)
}

impl Place<'_> {
    fn sockets(&self) -> u32 {
        self.node.sockets.clamp(1, self.node.cores.max(1))
    }

    /// The cores of a socket; none if there is no such socket.
    fn of_socket(&self, socket: u32) -> IndexSet {
        let each = self.node.cores / self.sockets();
        let last = match self.sockets().checked_sub(socket) {
            None | Some(0) => return IndexSet::new(),
            Some(1) => self.node.cores,
            Some(_) => (socket + 1) * each,
        };
        IndexSet::from_range(socket * each, last.saturating_sub(1))
    }

    /// All cores on the sockets of these.
    fn beside(&self, cores: &IndexSet) -> IndexSet {
        let touched = (0..self.sockets()).map(|socket| self.of_socket(socket));
        let touched = touched.filter(|socket| !socket.intersection(cores).is_empty());
        touched.fold(IndexSet::new(), |all, socket| all.union(&socket))
    }
}

/// Gives each task cores of its own.
struct Dealer<'a> {
    wish: &'a Wish<'a>,
    place: &'a Place<'a>,
    /// See [`allowed`].
    allowed: &'a [IndexSet],
    left: IndexSet,
    given: IndexSet,
    /// The number of tasks that have cores of each socket.
    tasks_on: Vec<u32>,
    /// The socket that the next task is offered first.
    next: u32,
}

impl<'a> Dealer<'a> {
    fn new(wish: &'a Wish<'a>, place: &'a Place<'a>, allowed: &'a [IndexSet]) -> Self {
        let tasks_on = vec![0; place.sockets() as usize];
        Self { wish, place, allowed, left: place.free.clone(), given: IndexSet::new(), tasks_on, next: 0 }
    }

    /// As many entries as have cores of their own: the list is used again, so more tasks share them.
    fn deal(mut self) -> Result<Vec<IndexSet>, Refusal> {
        let mut own: Vec<IndexSet> = Vec::new();
        let most = self.wish.cores.max(self.allowed.len() as u64).min(u64::from(self.wish.tasks));
        for task in 0..most {
            let wanted = u64::from(self.wish.cpus_per_task);
            if !own.is_empty() && self.given.len() + wanted > self.wish.cores {
                break;
            }
            let cores = self.next_cores(task)?;
            self.left = self.left.difference(&cores);
            self.given = self.given.union(&cores);
            own.push(cores);
        }
        Ok(own)
    }

    fn next_cores(&mut self, task: u64) -> Result<IndexSet, Refusal> {
        let wanted = u64::from(self.wish.cpus_per_task).min(self.wish.cores.max(1));
        let allowed = &self.allowed[(task % self.allowed.len() as u64) as usize];
        let may_use = match self.left.intersection(allowed) {
            // Other tasks of the step have them all.
            none if none.is_empty() => self.given.intersection(allowed),
            some => some,
        };
        let what = || format!("of the sockets that task {task} is to be bound to on node {}", self.place.node.name);
        let others_use_them = || busy(format!("other steps use the cores {}", what()));
        if may_use.is_empty() {
            return Err(match self.place.held.intersection(allowed).is_empty() {
                true => invalid(format!("the job has no core {}", what())),
                false => others_use_them(),
            });
        }
        let sockets = self.open_sockets();
        let on = |socket: &u32| self.place.of_socket(*socket).intersection(&may_use);
        let whole = sockets.iter().find(|socket| on(socket).len() >= wanted).copied();
        let cores = match (self.wish.binding.sockets, whole) {
            (Some(SocketOrder::FullCyclic), _) => in_turn(sockets.iter().map(on).collect(), wanted),
            (_, Some(socket)) => on(&socket).smallest(wanted),
            // No socket has enough for it.
            (_, None) => sockets.iter().fold(IndexSet::new(), |all, socket| {
                let more = on(socket).smallest(wanted - all.len());
                all.union(&more)
            }),
        };
        if cores.is_empty() {
            return Err(others_use_them());
        }
        self.note(&cores);
        Ok(cores)
    }

    /// The sockets that a task may be put on, in the order in which it tries them.
    fn open_sockets(&self) -> Vec<u32> {
        let count = self.place.sockets();
        let first = match self.wish.binding.sockets {
            Some(SocketOrder::Cyclic | SocketOrder::FullCyclic) => self.next,
            Some(SocketOrder::Block) | None => 0,
        };
        let most = self.wish.binding.tasks_per_socket.unwrap_or(u32::MAX);
        let in_order = (0..count).map(|at| (first + at) % count);
        in_order.filter(|socket| self.tasks_on[*socket as usize] < most).collect()
    }

    fn note(&mut self, cores: &IndexSet) {
        let used = (0..self.place.sockets()).filter(|socket| {
            let on_it = self.place.of_socket(*socket).intersection(cores);
            !on_it.is_empty()
        });
        for socket in used.collect::<Vec<_>>() {
            self.tasks_on[socket as usize] += 1;
            self.next = (socket + 1) % self.place.sockets();
        }
    }
}

/// Takes one core of each set in turn.
fn in_turn(mut sets: Vec<IndexSet>, wanted: u64) -> IndexSet {
    let mut taken = IndexSet::new();
    while taken.len() < wanted && sets.iter().any(|set| !set.is_empty()) {
        for set in &mut sets {
            if let Some(core) = set.first().filter(|_| taken.len() < wanted) {
                set.remove(core);
                taken.insert(core);
            }
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets of four cores each.
    fn node() -> NodeSpec {
        NodeSpec {
            name: "n1".into(),
            cores: 8,
            sockets: 2,
            memory_bytes: 0,
            gpus: Vec::new(),
            properties: Default::default(),
        }
    }

    fn dealt_among(
        binding: &Binding,
        free: &str,
        tasks: u32,
        cpus_per_task: u32,
    ) -> Result<(String, Vec<String>), String> {
        let (node, held) = (node(), IndexSet::first_n(8));
        let free: IndexSet = free.parse().unwrap();
        let cores = (u64::from(tasks) * u64::from(cpus_per_task)).min(free.len());
        let wish = Wish { binding, tasks, cpus_per_task, cores };
        let bound = deal(&wish, &Place { node: &node, held: &held, free: &free });
        let shown = |bound: Bound| (bound.cores.to_string(), bound.tasks.iter().map(IndexSet::to_string).collect());
        bound.map(shown).map_err(|refusal| format!("{:?}: {}", refusal.code, refusal.message))
    }

    fn dealt(binding: &Binding, tasks: u32, cpus_per_task: u32) -> (String, Vec<String>) {
        dealt_among(binding, "0-7", tasks, cpus_per_task).unwrap()
    }

    fn own(sockets: Option<SocketOrder>) -> Binding {
        Binding { cores: Some(CoreBinding::Own), sockets, ..Binding::default() }
    }

    fn sets(texts: &[&str]) -> Vec<IndexSet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn tasks_fill_a_socket_or_go_to_each_in_turn() {
        assert_eq!(dealt(&own(None), 3, 1).1, ["0", "1", "2"]);
        assert_eq!(dealt(&own(Some(SocketOrder::Block)), 3, 2).1, ["0-1", "2-3", "4-5"]);
        assert_eq!(dealt(&own(Some(SocketOrder::Cyclic)), 4, 1).1, ["0", "4", "1", "5"]);
        assert_eq!(dealt(&own(Some(SocketOrder::Cyclic)), 3, 2).1, ["0-1", "4-5", "2-3"]);
        assert_eq!(dealt(&own(Some(SocketOrder::FullCyclic)), 2, 2).1, ["0,4", "1,5"]);
    }

    #[test]
    fn the_cores_of_a_task_are_on_one_socket_if_they_can_be() {
        assert_eq!(dealt(&own(None), 2, 3).1, ["0-2", "4-6"]);
        assert_eq!(dealt(&own(None), 1, 6).1, ["0-5"]);
        assert_eq!(dealt_among(&own(None), "3-5", 1, 2).unwrap().1, ["4-5"]);
    }

    #[test]
    fn tasks_share_cores_if_there_are_too_few() {
        assert_eq!(dealt_among(&own(None), "2-3", 3, 1).unwrap(), ("2-3".into(), vec!["2".into(), "3".into()]));
    }

    #[test]
    fn tasks_may_use_all_cores_of_the_step_or_those_on_their_sockets() {
        let bound = |cores| Binding { cores: Some(cores), sockets: Some(SocketOrder::Cyclic), ..Binding::default() };
        assert_eq!(dealt(&bound(CoreBinding::All), 2, 1), ("0,4".into(), vec!["0,4".into()]));
        assert_eq!(dealt(&bound(CoreBinding::Sockets), 4, 1).1, ["0-1", "4-5", "0-1", "4-5"]);
        assert_eq!(dealt(&bound(CoreBinding::EachSocket), 3, 1).1, ["0-1", "4"]);
        assert_eq!(dealt_among(&bound(CoreBinding::EachSocket), "3-4", 3, 1).unwrap().1, ["3", "4"]);
        assert_eq!(dealt(&bound(CoreBinding::ListedSockets(sets(&["1", "0", "0-1"]))), 2, 2).1, ["4-5", "0-1"]);
        assert_eq!(dealt(&bound(CoreBinding::ListedSockets(sets(&["1"]))), 2, 2).1, ["4-7"]);
    }

    #[test]
    fn cores_that_a_step_names_are_those_that_it_gets() {
        let bound = |texts: &[&str]| Binding { cores: Some(CoreBinding::Listed(sets(texts))), ..Binding::default() };
        assert_eq!(dealt(&bound(&["6", "7"]), 2, 1), ("6-7".into(), vec!["6".into(), "7".into()]));
        assert_eq!(dealt(&bound(&["6-7"]), 3, 1), ("0,6-7".into(), vec!["6-7".into()]));
        let refused = |text: &str, free| dealt_among(&bound(&[text]), free, 1, 1).unwrap_err();
        let foreign = "Invalid: a task is to be bound to cores 8 of node n1, the job has 0-7";
        assert_eq!(refused("7-8", "0-7"), foreign);
        assert_eq!(refused("2", "3-7"), "Busy: cores 2 of node n1 are in use by other steps");
    }

    #[test]
    fn a_socket_gets_no_more_tasks_than_it_may() {
        let most = |tasks_per_socket| Binding { tasks_per_socket: Some(tasks_per_socket), ..own(None) };
        assert_eq!(dealt(&most(1), 2, 1).1, ["0", "4"]);
        assert_eq!(dealt(&most(2), 3, 1).1, ["0", "1", "4"]);
        let refused = dealt_among(&most(1), "0-7", 3, 1).unwrap_err();
        assert_eq!(
            refused,
            "LimitReached: 3 tasks are wanted on node n1, with 1 on each of the 2 sockets that the job has there"
        );
    }

    #[test]
    fn sockets_that_the_job_does_not_have_are_refused() {
        let bound = Binding { cores: Some(CoreBinding::ListedSockets(sets(&["2"]))), ..Binding::default() };
        let refused = dealt_among(&bound, "0-7", 1, 1).unwrap_err();
        assert_eq!(refused, "Invalid: the job has no core of the sockets that task 0 is to be bound to on node n1");
        let bound = Binding { cores: Some(CoreBinding::ListedSockets(sets(&["1"]))), ..Binding::default() };
        assert!(dealt_among(&bound, "0-3", 1, 1).unwrap_err().starts_with("Busy: "));
    }

    /// Huge numbers and many tasks cost nothing: lists end where they repeat.
    #[test]
    fn what_is_dealt_out_is_as_long_as_the_step_has_cores() {
        let listed = |texts: &[&str]| CoreBinding::ListedSockets(sets(texts));
        let all = |cores| Binding { cores: Some(cores), ..Binding::default() };
        let one_socket = dealt_among(&all(listed(&["0"])), "0-7", 1_000_000, 1).unwrap();
        assert_eq!(one_socket, ("0-7".into(), vec!["0-3".into()]));
        let huge = dealt_among(&all(listed(&["0-4294967295", "4294967295"])), "0-7", 1, 1).unwrap();
        assert_eq!(huge.1, ["0"]);
        let none = dealt_among(&all(listed(&["4294967295"])), "0-7", 1, 1).unwrap_err();
        assert!(none.starts_with("Invalid: the job has no core"), "{none}");
        assert_eq!(dealt_among(&own(None), "0-1", 1_000_000, 1).unwrap().1, ["0", "1"]);
        let named = all(CoreBinding::Listed(sets(&["0", "1", "2", "3"])));
        assert_eq!(dealt(&named, 2, 1).1, ["0", "1"], "entries without a task are left out");
    }

    /// A step with fewer cores than its tasks want shares them, and nobody is bound to cores of others.
    #[test]
    fn a_step_gets_no_more_cores_than_it_wants() {
        let (node, all) = (node(), IndexSet::first_n(8));
        let place = Place { node: &node, held: &all, free: &all };
        let few = |binding: &Binding, tasks, cpus_per_task, cores| {
            deal(&Wish { binding, tasks, cpus_per_task, cores }, &place).map_err(|refusal| refusal.message)
        };
        let bound = few(&own(None), 4, 2, 4).unwrap();
        assert_eq!((bound.cores, bound.tasks), ("0-3".parse().unwrap(), sets(&["0-1", "2-3"])));
        let each = Binding { cores: Some(CoreBinding::EachSocket), ..Binding::default() };
        let refused = few(&each, 2, 1, 1).unwrap_err();
        assert_eq!(refused, "the step has cores 0 on node n1, and a task is to be bound to a socket of others");
    }

    /// Sockets of which the job has no core count for nothing, and nobody is left without a core.
    #[test]
    fn only_sockets_of_the_job_count() {
        let binding = Binding { tasks_per_socket: Some(2), ..own(None) };
        let (node, held) = (node(), IndexSet::first_n(4));
        let dealt = |free: &str, tasks| {
            let free: IndexSet = free.parse().unwrap();
            let wish = Wish { binding: &binding, tasks, cpus_per_task: 1, cores: u64::from(tasks).min(free.len()) };
            deal(&wish, &Place { node: &node, held: &held, free: &free }).map_err(|refusal| refusal.message)
        };
        assert_eq!(dealt("0-3", 2).unwrap().tasks.len(), 2);
        let refused = dealt("0-3", 4).unwrap_err();
        assert_eq!(refused, "4 tasks are wanted on node n1, with 2 on each of the 1 sockets that the job has there");
    }

    /// Without a binding of cores a task is bound to its own only if the step has just enough.
    #[test]
    fn an_order_of_sockets_alone_binds_tasks_that_have_all_of_the_steps_cores_together() {
        let order = Binding { sockets: Some(SocketOrder::Cyclic), ..Binding::default() };
        assert_eq!(dealt(&order, 2, 1), ("0,4".into(), vec!["0".into(), "4".into()]));
        let (node, all) = (node(), IndexSet::first_n(8));
        let wish = Wish { binding: &order, tasks: 2, cpus_per_task: 1, cores: 8 };
        let bound = deal(&wish, &Place { node: &node, held: &all, free: &all }).unwrap();
        assert_eq!(bound, Bound { cores: all.clone(), tasks: Vec::new() });
    }
}
