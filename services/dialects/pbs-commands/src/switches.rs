//! `qenable`, `qdisable`, `qstart` and `qstop`: switches of the configuration's queues.

use super::{
    configuration::{REFUSED, config, configure},
    ended::{Ended, Failure},
    site::{Site, unknown_queue},
};
use muster_cli::stderr_line;
use muster_pbs::queries::{Destination, Switch, switched};
use muster_schemas::cluster::{ClusterChange, QueueSpecChange};

/// Runs a command line of one of these commands.
pub fn run(site: &mut Site, tool: &str, words: &[String]) -> Ended {
    let destinations = switched(words)
        .map_err(|refusal| Failure::new(format_args!("{refusal}\nusage: {tool} [queue][@server] ...")))?;
    let switch = Switch::of(tool).ok_or_else(|| Failure::new("this is not a switch of queues"))?;
    let mut status = 0;
    for destination in destinations {
        let done = match destination {
            Ok(destination) => set(site, switch, &destination),
            Err(text) => Err(Failure::new(text)),
        };
        if let Err(Failure { text, status: failed }) = done {
            stderr_line!("{tool}: {text}");
            status = failed;
        }
    }
    Ok(status)
}

fn set(site: &mut Site, switch: Switch, destination: &Destination) -> Result<(), Failure> {
    let refused = |failure: Failure| Failure { status: REFUSED, ..failure };
    destination.server.iter().try_for_each(|server| site.require_server(server)).map_err(refused)?;
    let config = config(site).map_err(refused)?;
    let name = destination.queue.clone().unwrap_or_else(|| config.settings.default_queue.clone());
    let Some(queue) = config.queues.iter().find(|queue| queue.name == name) else {
        return Err(refused(unknown_queue(&name)));
    };
    let mut change = QueueSpecChange { name: queue.name.clone(), ..QueueSpecChange::default() };
    match switch {
        Switch::Enabled(is_on) => change.enabled = Some(is_on),
        Switch::Started(is_on) => change.started = Some(is_on),
    }
    let change = ClusterChange { queues: vec![change], ..ClusterChange::default() };
    let done = configure(site, &change);
    done.map_err(|failure| Failure { text: format!("{} {name}", failure.text), ..failure })
}
