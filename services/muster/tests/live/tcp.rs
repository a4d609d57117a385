//! Callers over TCP: jobs that start steps through a token of their own, and TLS from a command to the steps of its job.

use crate::system::{Output, System};
use muster_client::{Client, ClientError, Endpoint, Moment};
use muster_schemas::{
    CommandId, JobId,
    command::JobSelection,
    job::JobSpec,
    views::{ErrorCode, JobsRequest, TellRequest},
};
use std::os::unix::fs::PermissionsExt as _;

/// A folder that everybody can reach and write to.
fn open_folder(system: &System) {
    let set = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is our own");
    };
    set(&system.path(""), 0o711);
    for folder in ["open", "programs"] {
        std::fs::create_dir(system.path(folder)).expect("it can be made");
    }
    set(&system.path("open"), 0o777);
    set(&system.path("programs"), 0o755);
    // Not everybody has access to the build folder.
    let (built, own) = (env!("CARGO_BIN_EXE_muster"), system.path("programs/muster"));
    if std::fs::hard_link(built, &own).is_err() {
        std::fs::copy(built, &own).expect("it can be copied");
    }
}

fn code<T: std::fmt::Debug>(result: Result<T, ClientError>) -> ErrorCode {
    result.expect_err("it should be refused").code().expect("the gateway answers")
}

/// SL-R-01, D6: the job of a user with a token starts steps with a token of its own, which is good for nothing else,
/// and for nothing at all after the run.
#[test]
fn a_job_that_came_over_tcp_starts_steps_with_a_token_of_its_own() {
    let system = System::start_for_others();
    open_folder(&system);
    let submitted = |arguments: &[&str]| -> JobId {
        let arguments: Vec<&str> = ["submit", "--parsable", "-n", "1"].iter().chain(arguments).copied().collect();
        let Output { status, stdout, stderr } = system.run_as_nobody(&arguments);
        assert_eq!(status, 0, "{stderr}");
        stdout.trim().parse().expect("a job")
    };
    // It has the same owner, but its token does not reach it.
    let other = submitted(&["-o", "/dev/null", "--", "sleep", "1000"]);
    let script = "#!/bin/sh\nprograms/muster run -n 1 -o open/step -- sh -c 'echo a step; echo $MUSTER_TOKEN > open/of-step' || exit 9\n\
        echo $MUSTER_TOKEN > open/token.new; mv open/token.new open/token\n\
        until [ -e open/go ]; do sleep 0.02; done\n";
    system.write("job.sh", script);
    let job = submitted(&["-o", "open/out", "job.sh"]);
    system.wait_until("its step has run", || {
        system.path("open/token").exists() || system.state(&job.to_string()) == "finished"
    });
    assert_eq!(system.read("open/step"), "a step\n", "{}", system.read("open/out"));
    let token = system.read("open/token").trim().to_owned();
    assert_eq!(system.read("open/of-step").trim(), token);
    assert!(token.starts_with(&format!("job.{job}.")), "{token}");

    let client = |token: &str| {
        let endpoint: Endpoint = system.server().parse().expect("an address");
        Client::new(endpoint.with_token(Some(token.to_owned())))
    };
    let mut own = client(&token);
    assert_eq!(own.job(job, Moment::Now).expect("it may read itself").job.id, job);
    let request = |job| JobsRequest { jobs: JobSelection::Ids(vec![job]) };
    let tell = TellRequest { jobs: JobSelection::Ids(vec![job]), text: "to itself".into() };
    own.tell(CommandId::new_now(), &tell).expect("it may tell itself something");
    assert_eq!(code(own.job(other, Moment::Now)), ErrorCode::PermissionDenied);
    assert_eq!(code(own.cancel(CommandId::new_now(), &request(other))), ErrorCode::PermissionDenied);
    assert_eq!(code(own.jobs(&Default::default())), ErrorCode::PermissionDenied);
    assert_eq!(code(own.nodes(Moment::Now)), ErrorCode::PermissionDenied);
    assert_eq!(code(own.submit(CommandId::new_now(), &[JobSpec::default()])), ErrorCode::PermissionDenied);
    assert_eq!(code(own.text("/metrics")), ErrorCode::PermissionDenied);

    // Nobody can forge one for another job or run from it.
    let proof = token.rsplit('.').next().expect("it has parts");
    let changed = format!("{}{}", &token[..token.len() - 1], if token.ends_with('0') { '1' } else { '0' });
    for forged in
        [format!("job.{other}.1.{proof}"), format!("job.{job}.1.{proof}"), changed, format!("job.{job}.{proof}")]
    {
        assert_eq!(code(client(&forged).job(job, Moment::Now)), ErrorCode::Unauthenticated, "{forged}");
    }
    system.write("open/go", "");
    system.wait_for_state(&job.to_string(), "finished");
    assert_eq!(code(client(&token).job(job, Moment::Now)), ErrorCode::Unauthenticated, "the run is over");
    assert_eq!(code(own.info(Moment::Now)), ErrorCode::Unauthenticated, "also on a connection that was kept");
    assert_eq!(system.json(&["job", "show", &job.to_string(), "--json"])["job"]["outcome"]["outcome"], "completed");
}

/// D7: commands, and the steps of the jobs they submit, use TLS to a gateway whose certificate an authority of the
/// site has signed.
#[test]
fn commands_and_steps_go_over_tls() {
    let system = System::start_over_tls();
    open_folder(&system);
    system.write("job.sh", "#!/bin/sh\nexec programs/muster run -n 1 -o open/step -- echo $MUSTER_SERVER\n");
    let submitted = system.run_as_nobody(&["submit", "--wait", "-n", "1", "-o", "open/out", "job.sh"]);
    assert_eq!(submitted.status, 0, "{}{}", submitted.stderr, system.read("open/out"));
    assert_eq!(system.read("open/step"), format!("{}\n", system.server()));
    assert!(system.server().starts_with("https://"));
    let over = system.run_as_nobody(&["slurm", "srun", "-n1", "-D", "/", "sh", "-c", "echo over TLS"]);
    assert_eq!((over.status, over.stdout.as_str()), (0, "over TLS\n"), "{}", over.stderr);
    // Without the authority the gateway is not trusted, and the token stays here.
    let shell = |line: &str| system.shell(&format!("set +e; MUSTER_SERVER={} MUSTER_TOKEN=x {line}", system.server()));
    let Output { status, stderr, .. } = shell("muster nodes");
    assert!(status == 1 && stderr.contains("is not trusted"), "{stderr}");
    let Output { status, stderr, .. } = shell("muster --server http://192.0.2.1:7457 nodes");
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("the token is not sent there") && stderr.contains("MUSTER_CLEAR_TOKEN=1"), "{stderr}");
}
