//! The identity of an exporting process.

/// The identity of an exporting process, which separates its series from those of every other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Its role: `muster-planner`, for example.
    pub service: String,
    /// The cluster, if it is known.
    pub cluster: Option<String>,
    /// The node, for an executor.
    pub node: Option<String>,
}

impl Identity {
    /// A process known only by its role.
    pub fn of(service: &str) -> Self {
        Self { service: service.to_owned(), ..Self::default() }
    }

    /// A unique name: host, node or service, and process.
    fn instance(&self, host: &str) -> String {
        let name = self.node.as_deref().unwrap_or(&self.service);
        format!("{host}/{name}/{}", std::process::id())
    }

    /// The attributes of the process, by their names in OpenTelemetry.
    pub(crate) fn attributes(&self) -> Vec<(&'static str, String)> {
        let host = host_name();
        let mut attributes = vec![
            ("service.name", self.service.clone()),
            ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("service.instance.id", self.instance(&host)),
            ("host.name", host),
        ];
        attributes.extend(self.node.clone().map(|node| ("muster.node", node)));
        attributes.extend(self.cluster.clone().map(|cluster| ("muster.cluster", cluster)));
        attributes
    }
}

/// The host, as the kernel calls it.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "localhost".to_owned() } else { name.trim().to_owned() }
}
