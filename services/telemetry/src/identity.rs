//! Which process it is that tells.

/// Which process it is that exports: what keeps the series of one process apart from those of every other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// What it is: `muster-planner`, for example.
    pub service: String,
    /// The cluster, if it is known.
    pub cluster: Option<String>,
    /// The node, for the executor of one.
    pub node: Option<String>,
}

impl Identity {
    /// A process that is only known by what it is.
    pub fn of(service: &str) -> Self {
        Self { service: service.to_owned(), ..Self::default() }
    }

    /// What nobody else has: host, node or service, and process.
    fn instance(&self, host: &str) -> String {
        let name = self.node.as_deref().unwrap_or(&self.service);
        format!("{host}/{name}/{}", std::process::id())
    }

    /// What is said of the process, by the names that OpenTelemetry has for it.
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
