//! The defined filters.

use crate::{cli::QueryOptions, exit::Failure};
use muster_client::Client;
use muster_schemas::filter::{FilterKind, FilterSettings, FilterSpec, TemplateSpec};
use serde::Serialize;

/// A filter with where it is defined.
#[derive(Clone, Debug, Serialize)]
pub struct Defined {
    /// What it judges.
    pub kind: FilterKind,
    /// The template that names it; `None` for a cluster-wide filter.
    pub template: Option<String>,
    /// The time limit of a call.
    pub time_limit_seconds: u32,
    /// The definition.
    #[serde(flatten)]
    pub filter: FilterSpec,
}

/// All filters, in the order in which a chain calls them.
fn defined(settings: &FilterSettings, templates: &[TemplateSpec]) -> Vec<Defined> {
    let mut all = Vec::new();
    for kind in [FilterKind::Submission, FilterKind::Activation] {
        let time_limit_seconds = settings.timeout_seconds(kind);
        let one = |template: Option<&str>, filter: &FilterSpec| Defined {
            kind,
            template: template.map(str::to_owned),
            time_limit_seconds,
            filter: filter.clone(),
        };
        for template in templates {
            all.extend(template.filters(kind).iter().map(|filter| one(Some(&template.name), filter)));
        }
        all.extend(settings.cluster_wide(kind).map(|filter| one(None, filter)));
    }
    all
}

/// All filters of the system.
///
/// # Errors
/// The system cannot be reached, or refuses.
pub fn read(client: &mut Client, options: &QueryOptions) -> Result<Vec<Defined>, Failure> {
    let settings = client.filter_settings(options.moment())?;
    let templates = client.templates(options.moment())?.templates;
    Ok(defined(&settings, &templates))
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::filter::FilterForm;

    fn filter(name: &str) -> FilterSpec {
        FilterSpec { name: name.into(), path: format!("/f/{name}"), form: FilterForm::Verbs, revert_on_unknown: false }
    }

    #[test]
    fn filters_are_listed_in_the_order_of_their_chains() {
        let settings = FilterSettings {
            submission: Some(filter("last")),
            activation: Some(filter("gate")),
            activation_timeout_seconds: 60,
            ..FilterSettings::default()
        };
        let template = TemplateSpec {
            name: "Big".into(),
            submission_filters: vec![filter("first"), filter("second")],
            ..TemplateSpec::default()
        };
        let all = defined(&settings, &[template]);
        let names: Vec<&str> = all.iter().map(|defined| defined.filter.name.as_str()).collect();
        assert_eq!(names, ["first", "second", "last", "gate"]);
        let limits: Vec<u32> = all.iter().map(|defined| defined.time_limit_seconds).collect();
        assert_eq!(limits, [15, 15, 15, 60]);
    }
}
