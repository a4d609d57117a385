//! Which cores of a node the tasks of a step get, and which of them each task is bound to.

use crate::decide::{invalid, refuse};
use muster_schemas::{
    binding::{Binding, CoreBinding, SocketOrder, entry},
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
    let own = Dealer::new(wish, place).deal()?;
    let chosen = own.iter().fold(IndexSet::new(), |all, one| all.union(one));
    let more = wish.cores.saturating_sub(chosen.len());
    let cores = chosen.union(&place.free.difference(&chosen).smallest(more));
    let tasks = match &wish.binding.cores {
        // The rule of steps without a binding.
        None if cores.len() != u64::from(wish.tasks) * u64::from(wish.cpus_per_task) => Vec::new(),
        None | Some(CoreBinding::Own) => own,
        Some(CoreBinding::All) => vec![cores.clone()],
        Some(CoreBinding::Sockets) => own.iter().map(|own| place.beside(own).intersection(&cores)).collect(),
        Some(CoreBinding::EachSocket) => on_each_of(place.sockets(), wish, place, &cores),
        Some(CoreBinding::ListedSockets(list)) => on_each_of(length(list), wish, place, &cores),
        Some(CoreBinding::Listed(_)) => Vec::new(),
    };
    Ok(Bound { cores, tasks })
}

/// The cores of tasks that may use whole sockets, until their sockets repeat.
fn on_each_of(period: u32, wish: &Wish<'_>, place: &Place<'_>, cores: &IndexSet) -> Vec<IndexSet> {
    (0..wish.tasks.min(period)).map(|task| allowed(wish, place, task).intersection(cores)).collect()
}

fn length(list: &[IndexSet]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

/// Refuses more tasks than the sockets of the node may have.
fn require_room_on_sockets(wish: &Wish<'_>, place: &Place<'_>) -> Result<(), Refusal> {
    let Some(most) = wish.binding.tasks_per_socket else { return Ok(()) };
    let (count, name, tasks) = (place.sockets(), &place.node.name, wish.tasks);
    if u64::from(most) * u64::from(count) >= u64::from(tasks) {
        return Ok(());
    }
    let message = format!("{tasks} tasks are wanted on node {name}, with {most} on each of its {count} sockets");
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
    Ok(Bound { cores, tasks: list.to_vec() })
}

fn busy(message: String) -> Refusal {
    refuse(RefusalCode::Busy, message)
}

/// The cores that a task may get by its binding.
fn allowed(wish: &Wish<'_>, place: &Place<'_>, task: u32) -> IndexSet {
    let count = place.sockets();
    let of_sockets =
        |sockets: &IndexSet| sockets.iter().fold(IndexSet::new(), |all, socket| all.union(&place.of_socket(socket)));
    match &wish.binding.cores {
        Some(CoreBinding::EachSocket) => place.of_socket(task % count),
        Some(CoreBinding::ListedSockets(list)) => entry(list, task).map(of_sockets).unwrap_or_default(),
        _ => IndexSet::first_n(place.node.cores),
    }
}

impl Place<'_> {
    fn sockets(&self) -> u32 {
        self.node.sockets.clamp(1, self.node.cores.max(1))
    }

    /// The cores of a socket; none if there is no such socket.
    fn of_socket(&self, socket: u32) -> IndexSet {
        let each = self.node.cores / self.sockets();
        let last = if socket + 1 == self.sockets() { self.node.cores } else { (socket + 1).saturating_mul(each) };
        match socket < self.sockets() {
            true => IndexSet::from_range(socket * each, last.saturating_sub(1)),
            false => IndexSet::new(),
        }
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
    left: IndexSet,
    given: IndexSet,
    /// The number of tasks that have cores of each socket.
    tasks_on: Vec<u32>,
    /// The socket that the next task is offered first.
    next: u32,
}

impl<'a> Dealer<'a> {
    fn new(wish: &'a Wish<'a>, place: &'a Place<'a>) -> Self {
        let tasks_on = vec![0; place.sockets() as usize];
        Self { wish, place, left: place.free.clone(), given: IndexSet::new(), tasks_on, next: 0 }
    }

    fn deal(mut self) -> Result<Vec<IndexSet>, Refusal> {
        let mut own: Vec<IndexSet> = Vec::with_capacity(self.wish.tasks as usize);
        for task in 0..self.wish.tasks {
            // If there are more tasks than the step has cores for, they share them: the list is used again.
            if self.left.len() < u64::from(self.wish.cpus_per_task) && !own.is_empty() {
                break;
            }
            let cores = self.next_cores(task)?;
            self.left = self.left.difference(&cores);
            self.given = self.given.union(&cores);
            own.push(cores);
        }
        Ok(own)
    }

    fn next_cores(&mut self, task: u32) -> Result<IndexSet, Refusal> {
        let wanted = u64::from(self.wish.cpus_per_task).min(self.wish.cores.max(1));
        let allowed = allowed(self.wish, self.place, task);
        let may_use = match self.left.intersection(&allowed) {
            // Other tasks of the step have them all.
            none if none.is_empty() => self.given.intersection(&allowed),
            some => some,
        };
        if may_use.is_empty() {
            let name = &self.place.node.name;
            let what = format!("of the sockets that task {task} is to be bound to on node {name}");
            return Err(match self.place.held.intersection(&allowed).is_empty() {
                true => invalid(format!("the job has no core {what}")),
                false => busy(format!("other steps use the cores {what}")),
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
        assert_eq!(refused, "LimitReached: 3 tasks are wanted on node n1, with 1 on each of its 2 sockets");
    }

    #[test]
    fn sockets_that_the_job_does_not_have_are_refused() {
        let bound = Binding { cores: Some(CoreBinding::ListedSockets(sets(&["2"]))), ..Binding::default() };
        let refused = dealt_among(&bound, "0-7", 1, 1).unwrap_err();
        assert_eq!(refused, "Invalid: the job has no core of the sockets that task 0 is to be bound to on node n1");
        let bound = Binding { cores: Some(CoreBinding::ListedSockets(sets(&["1"]))), ..Binding::default() };
        assert!(dealt_among(&bound, "0-3", 1, 1).unwrap_err().starts_with("Busy: "));
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
