//! Partitions that `scontrol` makes, changes and deletes: queues of the configuration (SL-C-38).

use super::{Ended, site::Site};
use muster_client::{ClientError, Moment};
use muster_schemas::{
    CommandId,
    accounts::DEFAULT_CLASS,
    cluster::{ClusterChange, ClusterConfig, ClusterSettingsChange, Removed},
    views::ErrorCode,
};
use muster_slurm::queries::{Failure, partitions::queue_change, update::Update};

/// `scontrol create partition`.
pub fn create(site: &mut Site, update: &Update, name: &str) -> Ended {
    let config = config(site)?;
    if config.queues.iter().any(|queue| queue.name == name) {
        return Err(Failure::plain("slurm_create_partition error: Partition name already exists"));
    }
    put(site, update, name, &config)
}

/// `scontrol update partition`.
pub fn change(site: &mut Site, update: &Update, name: &str) -> Ended {
    let config = config(site)?;
    if !config.queues.iter().any(|queue| queue.name == name) {
        return Err(Failure::plain("slurm_update error: Invalid partition name specified"));
    }
    if update.pairs.is_empty() {
        return Err(Failure::plain("No changes specified"));
    }
    put(site, update, name, &config)
}

fn put(site: &mut Site, update: &Update, name: &str, config: &ClusterConfig) -> Ended {
    let before = config.queues.iter().find(|queue| queue.name == name);
    let is_node = |wanted: &str| config.nodes.iter().any(|node| node.name == wanted);
    let classes = match update.value("QoS") {
        Some(_) => site.client.accounts(Moment::Now).map_err(|error| site.failure(&error))?.classes,
        None => Vec::new(),
    };
    let is_class = |wanted: &str| wanted == DEFAULT_CLASS || classes.iter().any(|class| class.name == wanted);
    let wanted = queue_change(update, name, before, config.settings.default_queue == name, is_node, is_class)?;
    let accounts = wanted.class.as_ref().map(|class| {
        let mut settings = config.accounts.clone().unwrap_or_default();
        settings.queue_classes.remove(name);
        settings.queue_classes.extend((!class.is_empty()).then(|| (name.to_owned(), class.clone())));
        settings
    });
    let default_queue = wanted.is_default.then(|| name.to_owned());
    let settings = ClusterSettingsChange { default_queue, ..ClusterSettingsChange::default() };
    let queues = vec![wanted.named(before)];
    configure(site, &ClusterChange { queues, settings, accounts, ..ClusterChange::default() })
}

/// `scontrol delete partition`. Whatever others change of the rest meanwhile stays.
pub fn delete(site: &mut Site, name: &str) -> Ended {
    let config = config(site)?;
    if config.queues.iter().all(|queue| queue.name != name) {
        return Err(Failure::plain("slurm_delete_partition error: Invalid partition name specified"));
    }
    if config.settings.default_queue == name {
        return Err(Failure::plain(format_args!(
            "slurm_delete_partition error: {name} is the default partition; choose another one first"
        )));
    }
    let removed = Removed { queues: vec![name.to_owned()], ..Removed::default() };
    configure(site, &ClusterChange { removed, ..ClusterChange::default() })
}

fn config(site: &mut Site) -> Result<ClusterConfig, Failure> {
    site.client.config(Moment::Now).map_err(|error| site.failure(&error))
}

fn configure(site: &mut Site, change: &ClusterChange) -> Ended {
    let done = site.client.configure(CommandId::new_now(), change, true);
    done.map(|_| 0).map_err(|error| refused(site, &error))
}

fn refused(site: &Site, error: &ClientError) -> Failure {
    let says = |text: &str| error.to_string().contains(text);
    match error.code() {
        Some(ErrorCode::PermissionDenied) => Failure::plain("slurm_update error: Access/permission denied"),
        Some(ErrorCode::NotFound) => Failure::plain("slurm_delete_partition error: Invalid partition name specified"),
        Some(ErrorCode::Conflict) if says("job") => {
            Failure::plain(format_args!("slurm_delete_partition error: Partition is in use: {error}"))
        }
        _ => site.failure(error),
    }
}
