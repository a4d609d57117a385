//! The cluster's configuration, where the nodes, their properties and the queues are.

use super::{ended::Failure, site::Site};
use muster_client::Moment;
use muster_oar::resources::value::Kind;
use muster_schemas::{
    CommandId,
    cluster::{ClusterChange, ClusterConfig, ClusterSettingsChange, NodeSpecChange},
    resources::NodeSpec,
};
use std::collections::BTreeMap;

/// The attribute with the properties that were added, each with its kind: `mem=integer wing=text`. A property that no
/// node has is known from here alone.
const PROPERTIES: &str = "oar.properties";
/// The attribute with the begin of accounting, in seconds since the epoch: windows that ended before are not shown.
pub const ACCOUNTING_BEGIN: &str = "oar.accounting_begin";

/// The configuration in force.
pub fn config(site: &mut Site) -> Result<ClusterConfig, Failure> {
    Ok(site.client.config(Moment::Now)?)
}

/// Puts a change in force. Whatever it does not name stays as it is.
pub fn configure(site: &mut Site, change: &ClusterChange) -> Result<(), Failure> {
    let done = site.client.configure(CommandId::new_now(), change, true);
    done.map(drop).map_err(|error| Failure::new(format_args!("{error}; nothing was changed")))
}

/// Nodes with these specifications, which stay as they are otherwise.
pub fn with_properties(specs: impl IntoIterator<Item = NodeSpec>) -> ClusterChange {
    let of = |spec: NodeSpec| NodeSpecChange {
        name: spec.name,
        properties: Some(spec.properties),
        ..NodeSpecChange::default()
    };
    ClusterChange { nodes: specs.into_iter().map(of).collect(), ..ClusterChange::default() }
}

/// A change of one attribute of the cluster; `None` removes it.
pub fn with_attribute(config: &ClusterConfig, name: &str, value: Option<String>) -> ClusterChange {
    let mut attributes = config.settings.attributes.clone();
    match value {
        Some(value) => drop(attributes.insert(name.to_owned(), value)),
        None => drop(attributes.remove(name)),
    }
    let settings = ClusterSettingsChange { attributes: Some(attributes), ..ClusterSettingsChange::default() };
    ClusterChange { settings, ..ClusterChange::default() }
}

/// The properties that were added, also those that no node has.
pub fn declared(config: &ClusterConfig) -> BTreeMap<String, Kind> {
    let text = config.settings.attributes.get(PROPERTIES).map(String::as_str).unwrap_or_default();
    let one = |word: &str| {
        let (name, kind) = word.split_once('=')?;
        let kind = if kind == "text" { Kind::Text } else { Kind::Integer };
        Some((name.to_owned(), kind))
    };
    text.split_whitespace().filter_map(one).collect()
}

/// A change of the properties that were added.
pub fn declaring(config: &ClusterConfig, properties: &BTreeMap<String, Kind>) -> ClusterChange {
    let one = |(name, kind): (&String, &Kind)| {
        let kind = if *kind == Kind::Text { "text" } else { "integer" };
        format!("{name}={kind}")
    };
    let text = properties.iter().map(one).collect::<Vec<_>>().join(" ");
    with_attribute(config, PROPERTIES, Some(text).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAR-R-22: properties that no node has are known all the same.
    #[test]
    fn added_properties_are_kept_with_their_kinds() {
        let mut config = ClusterConfig::default();
        assert!(declared(&config).is_empty());
        let properties: BTreeMap<String, Kind> = [("mem".into(), Kind::Integer), ("wing".into(), Kind::Text)].into();
        let change = declaring(&config, &properties);
        config.settings.attributes = change.settings.attributes.expect("they are named");
        assert_eq!(declared(&config), properties);
        let none = declaring(&config, &BTreeMap::new()).settings.attributes.expect("they are named");
        assert!(none.is_empty());
    }
}
