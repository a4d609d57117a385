//! The values in force: the user's, else those of templates, else built-in ones (HPC-T-03).

use super::{DEFAULT, Template};
use crate::{
    description::{
        attributes::JobAttributes,
        values::{NodeGroupOp, UnitType},
    },
    priority::Priority,
};

/// The values of properties that neither user nor template specifies (table 1.1). Sizes are computed from the tasks
/// (HPC-J-15).
pub fn built_in() -> JobAttributes {
    JobAttributes {
        name: Some(String::new()),
        project: Some(String::new()),
        priority: Some(Priority::NORMAL),
        job_template: Some(DEFAULT.to_owned()),
        unit_type: Some(UnitType::Core),
        is_exclusive: Some(false),
        single_node: Some(false),
        run_until_canceled: Some(false),
        fail_on_task_failure: Some(false),
        fail_dependent_tasks: Some(false),
        preemptable: Some(true),
        node_group_op: Some(NodeGroupOp::Intersect),
        notify_on_start: Some(false),
        notify_on_completion: Some(false),
        ..JobAttributes::default()
    }
}

/// The values in force: the user's (or a filter's), else the template's default, else the default of `Default`, else
/// the built-in one (HPC-T-03). A template cannot make a bound given by the user computed; a bound given only by a
/// template is used unless somebody says that it is computed (HPC-J-15).
pub fn effective(specified: &JobAttributes, template: &Template, default_template: &Template) -> JobAttributes {
    let mut values = specified.clone();
    let mut others = template.defaults.clone();
    others.fill_from(&default_template.defaults);
    others.fill_from(&built_in());
    let unit = values.unit_type.or(others.unit_type).unwrap_or_default();
    decide_given(&mut values, unit);
    values.fill_from(&others);
    decide_given(&mut values, unit);
    values.auto_calculate_min.get_or_insert(true);
    values.auto_calculate_max.get_or_insert(true);
    values
}

/// Given bounds of the size are not computed, unless somebody says that they are.
fn decide_given(values: &mut JobAttributes, unit: UnitType) {
    let (min, max) = match unit {
        UnitType::Core => (values.min_cores, values.max_cores),
        UnitType::Socket => (values.min_sockets, values.max_sockets),
        UnitType::Node => (values.min_nodes, values.max_nodes),
    };
    values.auto_calculate_min = values.auto_calculate_min.or(min.map(|_| false));
    values.auto_calculate_max = values.auto_calculate_max.or(max.map(|_| false));
}
