//! The view that submission filters have of components, and their changes.

use super::submissions::{request, submit};
use muster_schemas::{
    job::JobSpec,
    resources::{Memory, NodeFilter, Per},
};
use muster_slurm::filtered::{Terms, change, told};

fn told_of(job: &JobSpec, offset: u32) -> Terms {
    let component = &job.components[offset as usize];
    told(component, &component.alternatives, &job.attributes, offset)
}

fn terms(pairs: &[(&str, &str)]) -> Terms {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// SL-S-21: a component is described by its own request, without anything that it did not ask for.
#[test]
fn a_component_is_told_in_the_words_of_scontrol() {
    let job =
        submit("-p p2 --qos=high -C gamma -N2 -n4 -c2 --mem=300 : --mem-per-cpu=50 -C a*1&b*2 -N4 --reservation=r");
    let first = [
        ("CPUsPerTask", "2"),
        ("Features", "gamma"),
        ("MinMemoryNode", "300M"),
        ("NumNodes", "2"),
        ("NumTasks", "4"),
        ("Partition", "p2"),
        ("QOS", "high"),
    ];
    assert_eq!(told_of(&job, 0), terms(&first));
    let second = told_of(&job, 1);
    for (name, value) in [("Features", "a*1&b*2"), ("MinMemoryCPU", "50M"), ("NumNodes", "4"), ("ReservationName", "r")]
    {
        assert_eq!(second.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(told_of(&submit(""), 0).is_empty());
}

/// SL-S-21: a filter's changes apply to the component and are shown; everything else stays.
#[test]
fn changes_are_taken_over_into_the_component() {
    let mut job = submit("-n1 : -p p2,p3 --qos=high -C gamma -N2 -n4 --mem=300 -w n[1-2]");
    let before = told_of(&job, 1);
    let untouched = job.components[0].clone();
    let mut after = before.clone();
    after.extend(terms(&[("Partition", "big"), ("Features", "knl&fast"), ("NumNodes", "3"), ("NumTasks", "6")]));
    after.insert("MinMemoryCPU".to_owned(), "1G".to_owned());
    after.retain(|name, _| name != "QOS" && name != "MinMemoryNode");
    assert_eq!(change(&mut job, 1, &before, &after), Ok(()));
    assert_eq!(job.components[0], untouched);
    let component = &job.components[1];
    assert_eq!((component.queue.as_deref(), component.class.as_deref()), (Some("big"), None));
    let asked = request(&job, 1);
    assert_eq!((asked.tasks, &asked.nodes[..]), (Some(6), &["n1".to_owned(), "n2".to_owned()][..]));
    assert_eq!(asked.memory, Some(Memory { bytes: 1 << 30, per: Per::Core }));
    let both = vec![NodeFilter::Has("knl".into()), NodeFilter::Has("fast".into())];
    assert_eq!(asked.filter, Some(NodeFilter::All(both)));
    // The filter sees, and users are shown, the changed request.
    assert_eq!(told_of(&job, 1), after);
}

/// SL-S-21: impossible changes are reported, with the possible words.
#[test]
fn what_a_filter_cannot_change_is_refused() {
    let refused = |line: &str, pairs: &[(&str, &str)]| {
        let mut job = submit(line);
        let before = told_of(&job, 0);
        let after = before.clone().into_iter().chain(terms(pairs)).collect();
        change(&mut job, 0, &before, &after).expect_err(line)
    };
    assert!(refused("", &[("Colour", "red")]).starts_with("Request: `Colour` is none of Partition, QOS, "));
    assert_eq!(refused("", &[("NumNodes", "many")]), "Request: NumNodes cannot be `many` here");
    assert_eq!(refused("-C a", &[("Features", "b*2")]), "Request: Features cannot be `b*2` here");
    assert_eq!(refused("-N4 -C a*1&b*2", &[("NumNodes", "5")]), "Request: NumNodes cannot be `5` here");
}
