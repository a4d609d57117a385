//! `qmgr`: the server, its queues and its nodes, which are the cluster's configuration.

mod input;

use super::{
    configuration::{self, REFUSED, config, configure},
    ended::{Ended, Failure, print},
    nodes,
    site::{Site, host, version},
};
use input::Input;
use muster_cli::stderr_line;
use muster_client::Moment;
use muster_pbs::{
    qmgr::{self, Command, Edit, HELP, Object, ObjectKind, ObjectName, Service, Verb, Written, difference, edit},
    queries::{self, ManagerRequest},
    refusal::shown,
};
use muster_schemas::{
    CommandId,
    cluster::ClusterConfig,
    views::{DrainRequest, NodeStateWord, ResumeNodesRequest},
};

/// The status of a command that cannot be read.
const UNREADABLE: u8 = 1;

/// Runs a command line of `qmgr`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let request = queries::qmgr(words).map_err(|refusal| {
        Failure::new(format_args!("{refusal}\nusage: qmgr [-a] [-c command] [-e] [-n] [-z] [server]"))
    })?;
    request.servers.iter().try_for_each(|server| site.require_server(server))?;
    let mut session = Session { site, request: &request, queues: Vec::new(), nodes: Vec::new(), status: 0 };
    match &request.commands {
        Some(text) => {
            session.carry_out(0, text);
        }
        None => session.converse(),
    }
    Ok(session.status)
}

/// The commands of one program.
struct Session<'a> {
    site: &'a mut Site,
    request: &'a ManagerRequest,
    /// The queues that commands without names are about.
    queues: Vec<String>,
    /// The nodes that commands without names are about.
    nodes: Vec<String>,
    /// The highest status so far.
    status: u8,
}

/// Whether more commands are carried out.
#[derive(PartialEq, Eq)]
enum Then {
    Continue,
    Stop,
}

impl Session<'_> {
    /// Carries out what standard input says, as it comes.
    fn converse(&mut self) {
        let mut input = Input::new();
        loop {
            match input.next() {
                Ok(Some((line, text))) => {
                    if self.carry_out(line - 1, &text) == Then::Stop {
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    self.tell(&format!("standard input: {error}"), UNREADABLE);
                    return;
                }
            }
        }
    }

    /// Carries out the commands of a text. `lines` is the number of lines before it.
    fn carry_out(&mut self, lines: usize, text: &str) -> Then {
        for Written { line, command } in qmgr::script(text) {
            let done = match command {
                Err(wrong) => {
                    self.tell(&format!("line {}: {wrong}", line + lines), UNREADABLE);
                    Err(())
                }
                Ok(command) => {
                    if self.request.echoes {
                        print(&format!("{command}\n"));
                    }
                    if command.verb == Verb::Quit {
                        return Then::Stop;
                    }
                    self.one(&command)
                }
            };
            if done.is_err() && self.request.aborts {
                return Then::Stop;
            }
        }
        Then::Continue
    }

    /// Tells a fault, and remembers the status.
    fn tell(&mut self, text: &str, status: u8) {
        if !self.request.quiet {
            stderr_line!("qmgr: {text}");
        }
        self.status = self.status.max(status);
    }

    fn one(&mut self, command: &Command) -> Result<(), ()> {
        if self.request.only_checks {
            return Ok(());
        }
        let done = match command.verb {
            Verb::Help => {
                print(HELP);
                Ok(())
            }
            Verb::Quit => Ok(()),
            Verb::Active => self.active(command),
            Verb::List | Verb::Print => self.show(command),
            Verb::Create | Verb::Delete | Verb::Set | Verb::Unset => self.change(command),
        };
        done.map_err(|(object, failure): (String, Failure)| {
            let text = match object.is_empty() {
                true => failure.text,
                false => format!("obj={} svr=default: {}", shown(&object), failure.text),
            };
            self.tell(&text, REFUSED);
        })
    }

    /// `active`: says which objects commands without names are about, or shows them.
    fn active(&mut self, command: &Command) -> Result<(), (String, Failure)> {
        let names = self.own_names(&command.names)?;
        let known = match command.kind {
            Some(ObjectKind::Queue) => &mut self.queues,
            Some(ObjectKind::Node) => &mut self.nodes,
            _ => return Err(plain(Failure::new("only queues and nodes can be active; there is one server"))),
        };
        match command.names.is_empty() {
            true => print(&format!("Active {}s:\n{}\n", command.kind.map_or("", of_kind), known.join(","))),
            // `@server` names none: later commands are about all again.
            false => *known = names.into_iter().flatten().collect(),
        }
        Ok(())
    }

    /// The names of a command, `None` for all; each at this server.
    fn own_names(&self, names: &[ObjectName]) -> Result<Vec<Option<String>>, (String, Failure)> {
        for name in names {
            let server = name.server.iter().try_for_each(|server| self.site.require_server(server));
            server.map_err(|failure| (name.to_string(), failure))?;
        }
        Ok(names.iter().map(|name| name.name.clone()).collect())
    }

    /// The objects that a command is about: the named ones, the active ones, or all that there are.
    fn objects(&self, command: &Command, all: Vec<String>) -> Result<Vec<String>, (String, Failure)> {
        let named = self.own_names(&command.names)?;
        let active = match command.kind {
            Some(ObjectKind::Queue) => &self.queues,
            Some(ObjectKind::Node) => &self.nodes,
            _ => return Ok(Vec::new()),
        };
        let changes = matches!(command.verb, Verb::Create | Verb::Delete | Verb::Set | Verb::Unset);
        let makes = matches!(command.verb, Verb::Create | Verb::Delete);
        match (named.is_empty(), active.is_empty()) {
            (true, true) if changes => Err(plain(Failure::new("the command names no object, and none is active"))),
            (true, false) => Ok(active.clone()),
            (true, true) => Ok(all),
            (false, _) if named.contains(&None) && makes => {
                Err(plain(Failure::new("objects are created and deleted by name")))
            }
            (false, _) if named.contains(&None) => Ok(all),
            (false, _) => Ok(named.into_iter().flatten().collect()),
        }
    }

    fn show(&mut self, command: &Command) -> Result<(), (String, Failure)> {
        let prints = command.verb == Verb::Print;
        let objects = match command.kind {
            Some(ObjectKind::Server) => {
                self.own_names(&command.names)?;
                self.server(prints).map_err(plain)?
            }
            Some(ObjectKind::Queue) => self.shown_queues(command, prints)?,
            Some(ObjectKind::Node) => self.shown_nodes(command, prints)?,
            Some(kind) => {
                let text = format!("the server has no objects of the kind {kind}; it has queues and nodes");
                return Err(plain(Failure::new(text)));
            }
            None => Vec::new(),
        };
        let objects = qmgr::only(objects, &command.changes);
        print(&if prints { qmgr::print(&objects) } else { qmgr::list(&objects) });
        Ok(())
    }

    /// The server; `print` has its queues with it.
    fn server(&mut self, prints: bool) -> Result<Vec<Object>, Failure> {
        let config = config(self.site)?;
        let flavour = self.site.flavour;
        if !prints {
            let (host, version) = (host(), version());
            let info = self.site.client.info(Moment::Now)?;
            let missing = self.site.missing_policy()?;
            let facts =
                self.site.server_facts(&config, (&info.jobs, info.held_until), &host, &version, missing.as_deref());
            return Ok(vec![qmgr::listed_server(&config, &facts, flavour)]);
        }
        let mut all = vec![qmgr::server(&config, &self.site.server, flavour)];
        all.extend(config.queues.iter().map(|queue| qmgr::queue(queue, flavour)));
        Ok(all)
    }

    fn shown_queues(&mut self, command: &Command, prints: bool) -> Result<Vec<Object>, (String, Failure)> {
        let views = self.site.client.queues(Moment::Now).map_err(|error| plain(error.into()))?.queues;
        let all = views.iter().map(|view| view.spec.name.clone()).collect();
        let flavour = self.site.flavour;
        let one = |name: String| {
            let view = views.iter().find(|view| view.spec.name == name);
            let view = view.ok_or_else(|| (name, Failure::new("Unknown queue")))?;
            Ok(if prints { qmgr::queue(&view.spec, flavour) } else { qmgr::listed_queue(view, flavour) })
        };
        self.objects(command, all)?.into_iter().map(one).collect()
    }

    fn shown_nodes(&mut self, command: &Command, prints: bool) -> Result<Vec<Object>, (String, Failure)> {
        let views = self.site.client.nodes(Moment::Now).map_err(|error| plain(error.into()))?.nodes;
        let all = views.iter().map(|view| view.spec.name.clone()).collect();
        let names = self.objects(command, all)?;
        let flavour = self.site.flavour;
        let mut wanted = Vec::new();
        for name in names {
            let view = views.iter().find(|view| view.spec.name == name).cloned();
            wanted.push(view.ok_or_else(|| (name, Failure::new("Unknown node")))?);
        }
        if prints {
            return Ok(wanted.iter().map(|view| qmgr::node(view, flavour)).collect());
        }
        let found = nodes::with_jobs(self.site, wanted).map_err(plain)?;
        Ok(found.iter().map(|node| qmgr::listed_node(&node.view, &node.jobs, flavour)).collect())
    }

    fn change(&mut self, command: &Command) -> Result<(), (String, Failure)> {
        let before = config(self.site).map_err(plain)?;
        let all = match command.kind {
            Some(ObjectKind::Queue) => before.queues.iter().map(|queue| queue.name.clone()).collect(),
            Some(ObjectKind::Node) => before.nodes.iter().map(|node| node.name.clone()).collect(),
            _ => Vec::new(),
        };
        let names = match command.kind {
            Some(ObjectKind::Server) => {
                self.own_names(&command.names)?;
                Vec::new()
            }
            _ => self.objects(command, all)?,
        };
        let Edit { config: after, service, warnings } = edit(command, &names, &before)
            .map_err(|wrong| (wrong.object, Failure { text: wrong.why, status: REFUSED }))?;
        let first = names.first().cloned().unwrap_or_default();
        self.put(&before, &after).map_err(|failure| (first, failure))?;
        let unfollowed = self.unfollowed(&before, &after);
        warnings.iter().chain(&unfollowed).for_each(|warning| self.tell(&format!("warning: {warning}"), 0));
        service.iter().try_for_each(|service| self.serve(service).map_err(|failure| (service.node.clone(), failure)))
    }

    /// That limits which were set have no effect as long as no policy of PBS is in force, if none is.
    fn unfollowed(&mut self, before: &ClusterConfig, after: &ClusterConfig) -> Option<String> {
        let names = qmgr::new_limits(before, after);
        if names.is_empty() {
            return None;
        }
        let policy = self.site.client.policy(Moment::Now).ok()?;
        let is_of_pbs = !policy.sources.is_empty() || policy.starts_nothing.is_some();
        (!is_of_pbs).then(|| {
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            format!("{names}: holds only under policies of PBS, and the policy in force is `{}`", policy.name)
        })
    }

    fn put(&mut self, before: &ClusterConfig, after: &ClusterConfig) -> Result<(), Failure> {
        if before == after {
            return Ok(());
        }
        configure(self.site, &difference(before, after))
    }

    /// Takes a node out of service or puts it into it. It has a comment only while it is out of service.
    fn serve(&mut self, service: &Service) -> Result<(), Failure> {
        let client = &mut self.site.client;
        let view = client.node(&service.node, Moment::Now)?;
        let is_out = view.state == NodeStateWord::Drained;
        let nodes = vec![service.node.clone()];
        let done = match (service.is_offline.unwrap_or(is_out), &service.comment) {
            (true, comment) => {
                let reason = comment.clone().or_else(|| view.reason.clone().filter(|_| is_out)).unwrap_or_default();
                let is_down = is_out && view.is_down;
                client.drain(CommandId::new_now(), &DrainRequest { nodes, reason, is_down })
            }
            (false, Some(comment)) if !comment.is_empty() => {
                let why = "comment: is kept only while the node is offline; its state and comment were not changed";
                return Err(Failure { text: why.to_owned(), status: REFUSED });
            }
            (false, _) => client.resume_nodes(CommandId::new_now(), &ResumeNodesRequest { nodes }),
        };
        done.map(drop).map_err(|error| configuration::refused(&error))
    }
}

/// A failure that is about no object.
fn plain(failure: Failure) -> (String, Failure) {
    (String::new(), failure)
}

const fn of_kind(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Node => "node",
        _ => "queue",
    }
}
