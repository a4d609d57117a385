//! What the library is told about a program, in the words of the PMIx standard (SL-W-05).
//!
//! Pure: what has to be said, not how it is passed. The keys are those of the standard, by which programs ask.

use crate::layout::{Layout, Node};

/// A statement to the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Its key.
    pub key: &'static str,
    /// Its value.
    pub value: Value,
}

/// A value, of the type that the key has in the standard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `bool`
    Flag(bool),
    /// `uint16_t`
    Short(u16),
    /// `uint32_t`
    Number(u32),
    /// `pmix_rank_t`
    Rank(u32),
    /// `char*`
    Text(String),
    /// What the library has made of a list.
    Map(Vec<u8>),
    /// `pmix_data_array_t` of facts
    Facts(Vec<Fact>),
}

/// The nodes of a program and the ranks on each, as the library packs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maps {
    /// Made of [`node_list`].
    pub nodes: Vec<u8>,
    /// Made of [`rank_list`].
    pub ranks: Vec<u8>,
}

fn flag(key: &'static str, value: bool) -> Fact {
    Fact { key, value: Value::Flag(value) }
}

fn short(key: &'static str, value: u16) -> Fact {
    Fact { key, value: Value::Short(value) }
}

fn number(key: &'static str, value: u32) -> Fact {
    Fact { key, value: Value::Number(value) }
}

fn rank(key: &'static str, value: u32) -> Fact {
    Fact { key, value: Value::Rank(value) }
}

fn text(key: &'static str, value: &str) -> Fact {
    Fact { key, value: Value::Text(value.to_owned()) }
}

fn facts(key: &'static str, value: Vec<Fact>) -> Fact {
    Fact { key, value: Value::Facts(value) }
}

/// What the library is told about itself.
pub fn of_server(layout: &Layout) -> Vec<Fact> {
    let program = layout.program();
    vec![
        // The server is a process too. Its namespace is not that of the program, of which it is none.
        text("pmix.srv.nspace", "muster"),
        rank("pmix.srv.rank", program.node),
        text("pmix.srvr.tmpdir", &program.temporary),
        text("pmix.sys.tmpdir", &program.temporary),
        text("pmix.hname", &layout.here().name),
        flag("pmix.srvr.tool", false),
    ]
}

/// The names of the nodes.
pub fn node_list(layout: &Layout) -> String {
    let names: Vec<&str> = layout.nodes().iter().map(|node| node.name.as_str()).collect();
    names.join(",")
}

/// The ranks of each node.
pub fn rank_list(layout: &Layout) -> String {
    let ranks: Vec<String> = layout.nodes().iter().map(peers).collect();
    ranks.join(";")
}

/// What the library is told about the program.
pub fn of_program(layout: &Layout, maps: Maps) -> Vec<Fact> {
    let mut all = of_job(layout);
    all.push(Fact { key: "pmix.nmap", value: Value::Map(maps.nodes) });
    all.push(Fact { key: "pmix.pmap", value: Value::Map(maps.ranks) });
    // For clients that know no arrays of nodes.
    all.extend(of_node(layout.program().node, layout.here()));
    all.extend((0..).zip(layout.nodes()).map(|(number, node)| facts("pmix.node.arr", of_node(number, node))));
    all.extend((0..).zip(layout.apps()).map(|(number, ranks)| facts("pmix.app.arr", of_app(number, ranks))));
    all.extend((0..layout.size()).map(|rank| facts("pmix.pdata", of_task(layout, rank))));
    all
}

fn of_job(layout: &Layout) -> Vec<Fact> {
    let program = layout.program();
    vec![
        text("pmix.jobid", &program.namespace),
        number("pmix.univ.size", layout.size()),
        number("pmix.job.size", layout.size()),
        number("pmix.max.size", layout.size()),
        number("pmix.num.slots", layout.size()),
        number("pmix.num.nodes", layout.nodes().len() as u32),
        number("pmix.job.napps", layout.apps().len() as u32),
        rank("pmix.offset", 0),
        flag("pmix.spawned", false),
        text("pmix.tmpdir", &program.temporary),
        text("pmix.nsdir", &program.temporary),
        flag("pmix.tdir.rmclean", true),
    ]
}

fn of_node(number_of_node: u32, node: &Node) -> Vec<Fact> {
    let size = node.ranks.len() as u32;
    let mut all = vec![
        number("pmix.nodeid", number_of_node),
        text("pmix.hname", &node.name),
        number("pmix.local.size", size),
        number("pmix.node.size", size),
        text("pmix.lpeers", &peers(node)),
    ];
    all.extend(node.ranks.first().map(|first| rank("pmix.lldr", *first)));
    all
}

fn of_app(number_of_app: u32, ranks: &[u32]) -> Vec<Fact> {
    let mut all = vec![number("pmix.appnum", number_of_app), number("pmix.app.size", ranks.len() as u32)];
    all.extend(ranks.first().map(|first| rank("pmix.aldr", *first)));
    all
}

/// The rank comes first: the library refers what follows to it.
fn of_task(layout: &Layout, number_of_task: u32) -> Vec<Fact> {
    let task = layout.tasks()[number_of_task as usize];
    let app = &layout.apps()[task.app as usize];
    let mut all = vec![
        rank("pmix.rank", number_of_task),
        rank("pmix.grank", number_of_task),
        number("pmix.appnum", task.app),
        rank("pmix.apprank", task.app_rank),
        // Also here: clients ask for the size of the application of a task without saying which it is.
        number("pmix.app.size", app.len() as u32),
        short("pmix.lrank", task.local_rank),
        short("pmix.nrank", task.local_rank),
        number("pmix.nodeid", task.node),
        text("pmix.hname", &layout.nodes()[task.node as usize].name),
    ];
    all.extend(app.first().map(|first| rank("pmix.aldr", *first)));
    all
}

fn peers(node: &Node) -> String {
    let ranks: Vec<String> = node.ranks.iter().map(u32::to_string).collect();
    ranks.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::tests::program;

    fn of(program: crate::protocol::Program) -> (Layout, Vec<Fact>) {
        let layout = Layout::new(program).unwrap();
        let all = of_program(&layout, Maps { nodes: vec![1], ranks: vec![2] });
        (layout, all)
    }

    /// SL-W-05
    #[test]
    fn a_program_is_described_by_job_nodes_applications_and_tasks() {
        let (layout, all) = of(program());
        assert_eq!((node_list(&layout), rank_list(&layout)), ("n1,n2,n1_2".into(), "0,2;1,3;4".into()));
        let count = |key| all.iter().filter(|fact| fact.key == key).count();
        assert_eq!([count("pmix.node.arr"), count("pmix.app.arr"), count("pmix.pdata")], [3, 2, 5]);
        assert!(all.contains(&number("pmix.job.size", 5)) && all.contains(&text("pmix.lpeers", "1,3")));
        let second_app = vec![number("pmix.appnum", 1), number("pmix.app.size", 1), rank("pmix.aldr", 4)];
        assert!(all.contains(&facts("pmix.app.arr", second_app)));
    }

    #[test]
    fn the_rank_of_a_task_is_said_first() {
        let (_, all) = of(program());
        for fact in all.iter().filter(|fact| fact.key == "pmix.pdata") {
            let Value::Facts(about) = &fact.value else { panic!("{fact:?}") };
            assert_eq!(about[0].key, "pmix.rank");
        }
    }
}
