//! Where the tasks of a program are, as checked.

use crate::protocol::Program;
use std::collections::BTreeMap;

/// The longest name of a namespace, in bytes (`PMIX_MAX_NSLEN`).
const MAX_NAMESPACE_BYTES: usize = 255;
/// The most tasks of a program. Each takes some 16 KiB in the server of each node while the library reads about it.
const MAX_TASKS: usize = 1 << 20;

/// The reason why a program cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadProgram {
    /// It is empty or too long, or holds a zero byte.
    #[error("its namespace is not a name")]
    Namespace,
    /// None, or too many.
    #[error("it has no tasks, or too many")]
    Tasks,
    /// A list has a wrong length, or holds a number that does not exist.
    #[error("its lists of ranks do not fit together")]
    Ranks,
    /// It is empty, or holds a character that separates names.
    #[error("a name of a node is not a name")]
    NodeName,
    /// It is empty or holds a zero byte.
    #[error("its folder is not a path")]
    Folder,
}

/// A program whose parts fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    program: Program,
    nodes: Vec<Node>,
    /// The ranks of each application, ascending.
    apps: Vec<Vec<u32>>,
    /// By rank.
    tasks: Vec<Task>,
}

/// A node of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// A name that no other node of the program has.
    pub name: String,
    /// Its ranks, ascending; there is one.
    pub ranks: Vec<u32>,
}

/// A task of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The number of its node.
    pub node: u32,
    /// Its position among the ranks of its node.
    pub local_rank: u16,
    /// Its application.
    pub app: u32,
    /// Its position among the ranks of its application.
    pub app_rank: u32,
}

impl Layout {
    /// Checks a program.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn new(program: Program) -> Result<Self, BadProgram> {
        check_texts(&program)?;
        if program.node_of_rank.is_empty() || program.node_of_rank.len() > MAX_TASKS {
            return Err(BadProgram::Tasks);
        }
        let names = distinct(&program.node_names);
        let by_node = grouped(&program.node_of_rank, names.len()).ok_or(BadProgram::Ranks)?;
        let app_count = program.app_of_rank.iter().max().map_or(0, |last| *last as usize + 1);
        let apps = grouped(&program.app_of_rank, app_count).ok_or(BadProgram::Ranks)?;
        if program.app_of_rank.len() != program.node_of_rank.len() || program.node as usize >= names.len() {
            return Err(BadProgram::Ranks);
        }
        let tasks = tasks(&program, &by_node, &apps).ok_or(BadProgram::Tasks)?;
        let nodes = names.into_iter().zip(by_node).map(|(name, ranks)| Node { name, ranks }).collect();
        Ok(Self { program, nodes, apps, tasks })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The number of tasks.
    pub fn size(&self) -> u32 {
        self.tasks.len() as u32
    }

    /// The nodes, by their numbers.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node of this server.
    pub fn here(&self) -> &Node {
        &self.nodes[self.program.node as usize]
    }

    /// The ranks of each application, ascending.
    pub fn apps(&self) -> &[Vec<u32>] {
        &self.apps
    }

    /// The tasks, by their ranks.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Whether this rank is on the node of this server.
    pub fn is_local(&self, rank: u32) -> bool {
        self.tasks.get(rank as usize).is_some_and(|task| task.node == self.program.node)
    }
}

fn check_texts(program: &Program) -> Result<(), BadProgram> {
    let namespace = program.namespace.as_bytes();
    if namespace.is_empty() || namespace.len() > MAX_NAMESPACE_BYTES || namespace.contains(&0) {
        return Err(BadProgram::Namespace);
    }
    let separates = |character: char| matches!(character, ',' | ';' | '\0') || character.is_whitespace();
    if program.node_names.iter().any(|name| name.is_empty() || name.contains(separates)) {
        return Err(BadProgram::NodeName);
    }
    if program.temporary.is_empty() || program.temporary.contains('\0') {
        return Err(BadProgram::Folder);
    }
    Ok(())
}

/// The library tells nodes apart by their names: `n1`, `n1_2`, `n1_3` if there are three `n1`. Host names have no `_`.
fn distinct(names: &[String]) -> Vec<String> {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    let mut distinct = Vec::with_capacity(names.len());
    for name in names {
        let count = seen.entry(name).or_default();
        *count += 1;
        distinct.push(if *count == 1 { name.clone() } else { format!("{name}_{count}") });
    }
    distinct
}

/// The ranks of each group; `None` if a group does not exist or is empty.
fn grouped(group_of_rank: &[u32], groups: usize) -> Option<Vec<Vec<u32>>> {
    if groups > group_of_rank.len() {
        return None;
    }
    let mut ranks = vec![Vec::new(); groups];
    for (rank, group) in (0..).zip(group_of_rank) {
        ranks.get_mut(*group as usize)?.push(rank);
    }
    ranks.iter().all(|ranks| !ranks.is_empty()).then_some(ranks)
}

/// `None` if a node has more tasks than the library can number.
fn tasks(program: &Program, by_node: &[Vec<u32>], apps: &[Vec<u32>]) -> Option<Vec<Task>> {
    let pairs = program.node_of_rank.iter().zip(&program.app_of_rank);
    let mut tasks: Vec<Task> =
        pairs.map(|(node, app)| Task { node: *node, local_rank: 0, app: *app, app_rank: 0 }).collect();
    for ranks in by_node {
        for (local_rank, rank) in ranks.iter().enumerate() {
            tasks[*rank as usize].local_rank = u16::try_from(local_rank).ok()?;
        }
    }
    for ranks in apps {
        for (app_rank, rank) in (0..).zip(ranks) {
            tasks[*rank as usize].app_rank = app_rank;
        }
    }
    Some(tasks)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two applications on three nodes, of which two are one machine.
    pub(crate) fn program() -> Program {
        Program {
            namespace: "7.0".into(),
            node: 1,
            node_names: vec!["n1".into(), "n2".into(), "n1".into()],
            node_of_rank: vec![0, 1, 0, 1, 2],
            app_of_rank: vec![0, 0, 0, 0, 1],
            uid: 1000,
            gid: 100,
            temporary: "/tmp/x".into(),
        }
    }

    /// SL-W-05
    #[test]
    fn each_task_has_its_places() {
        let layout = Layout::new(program()).unwrap();
        let names: Vec<&str> = layout.nodes().iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["n1", "n2", "n1_2"]);
        assert_eq!((layout.size(), layout.here().ranks.as_slice()), (5, [1, 3].as_slice()));
        assert_eq!(layout.apps(), [vec![0, 1, 2, 3], vec![4]]);
        assert_eq!(layout.tasks()[3], Task { node: 1, local_rank: 1, app: 0, app_rank: 3 });
        assert_eq!(layout.tasks()[4], Task { node: 2, local_rank: 0, app: 1, app_rank: 0 });
        assert_eq!([1, 2, 9].map(|rank| layout.is_local(rank)), [true, false, false]);
    }

    #[test]
    fn a_program_whose_parts_do_not_fit_is_refused() {
        let bad = |change: fn(&mut Program)| {
            let mut program = program();
            change(&mut program);
            Layout::new(program).unwrap_err()
        };
        assert_eq!(bad(|program| program.namespace.clear()), BadProgram::Namespace);
        assert_eq!(bad(|program| program.namespace = "x".repeat(256)), BadProgram::Namespace);
        assert_eq!(bad(|program| program.node_of_rank.clear()), BadProgram::Tasks);
        assert_eq!(bad(|program| program.node_of_rank[4] = 3), BadProgram::Ranks);
        assert_eq!(bad(|program| program.node_of_rank[4] = 1), BadProgram::Ranks, "a node without tasks");
        assert_eq!(bad(|program| program.app_of_rank[4] = u32::MAX), BadProgram::Ranks);
        assert_eq!(bad(|program| program.app_of_rank.truncate(1)), BadProgram::Ranks);
        assert_eq!(bad(|program| program.node = 3), BadProgram::Ranks);
        assert_eq!(bad(|program| program.node_names[0] = "a,b".into()), BadProgram::NodeName);
        assert_eq!(bad(|program| program.temporary.clear()), BadProgram::Folder);
    }
}
