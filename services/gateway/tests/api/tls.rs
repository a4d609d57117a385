//! TLS: callers over TCP are encrypted, recognise the gateway by its certificate, and cannot shut others out by
//! delaying the handshake.

use crate::system::{OtherGateway, System, TOKEN, job};
use muster_client::{Client, ClientError, Endpoint, Moment, Tls};
use muster_schemas::CommandId;
use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Longer than anything awaited here.
const PATIENCE: Duration = Duration::from_secs(20);

/// A certificate, which is its own authority.
struct Identity {
    certificate: PathBuf,
    key: PathBuf,
}

/// Writes one for these names to files, replacing earlier ones.
fn identity(folder: &Path, name: &str, hosts: &[&str]) -> Identity {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    written(folder, name, &rcgen::generate_simple_self_signed(hosts).unwrap())
}

/// The same for an authority, as `openssl req -x509` makes it.
fn authority(folder: &Path, name: &str, host: &str) -> Identity {
    let mut parameters = rcgen::CertificateParams::new([host.to_owned()]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let signing_key = rcgen::KeyPair::generate().unwrap();
    let cert = parameters.self_signed(&signing_key).unwrap();
    written(folder, name, &rcgen::CertifiedKey { cert, signing_key })
}

fn written(folder: &Path, name: &str, made: &rcgen::CertifiedKey<rcgen::KeyPair>) -> Identity {
    let file = |suffix: &str, text: &str| {
        let path = folder.join(format!("{name}.{suffix}"));
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    Identity { certificate: file("pem", &made.cert.pem()), key: file("key", &made.signing_key.serialize_pem()) }
}

fn encrypted(system: &System, identity: &Identity, change: impl Fn(&mut muster_gateway::Config)) -> OtherGateway {
    system.gateway_with(|config| {
        config.tls_certificate = Some(identity.certificate.clone());
        config.tls_key = Some(identity.key.clone());
        change(config);
    })
}

fn client(gateway: &OtherGateway, authority: &Path) -> Client {
    let tls = Some(Tls { authority: Some(authority.to_path_buf()) });
    Client::new(Endpoint::Tcp { address: gateway.tcp.to_string(), token: Some(TOKEN.to_owned()), tls })
}

fn message<T: std::fmt::Debug>(result: Result<T, ClientError>) -> String {
    let error = result.unwrap_err();
    assert!(matches!(error, ClientError::Protocol(_) | ClientError::Refused(_)), "another try is no use: {error:?}");
    error.to_string()
}

/// D7: commands, lists and streams use TLS; a client that cannot verify the gateway does not send it a token.
#[test]
fn callers_over_tls_know_the_gateway_by_its_certificate() {
    let system = System::start();
    let own = identity(system.folder(), "own", &["127.0.0.1"]);
    let other = identity(system.folder(), "other", &["127.0.0.1"]);
    let gateway = encrypted(&system, &own, |_| {});
    let mut known = client(&gateway, &own.certificate);
    assert_eq!(known.info(Moment::Now).unwrap().caller, "nobody");
    let jobs: Vec<_> = (0..500).map(|number| job(&format!("{number}-{}", "x".repeat(200)))).collect();
    known.submit(CommandId::new_now(), &jobs).unwrap();
    assert_eq!(known.jobs(&Default::default()).unwrap().jobs.len(), 500, "an answer of many packets");
    let mut events = known.events(None, None, &[]).unwrap();
    client(&gateway, &own.certificate).submit(CommandId::new_now(), &[job("seen")]).unwrap();
    assert_eq!(events.next().unwrap().kind, "muster.job.submitted.v1");

    let untrusted = message(client(&gateway, &other.certificate).info(Moment::Now));
    assert!(untrusted.contains("is not trusted") && untrusted.contains("MUSTER_CA"), "{untrusted}");
    let elsewhere = identity(system.folder(), "elsewhere", &["head.example.org"]);
    system.stop(Some(gateway.service));
    let gateway = encrypted(&system, &elsewhere, |_| {});
    let wrong = message(client(&gateway, &elsewhere.certificate).info(Moment::Now));
    assert!(wrong.contains("is not trusted") && wrong.contains("not valid for name"), "{wrong}");

    let authority = authority(system.folder(), "authority", "127.0.0.1");
    system.stop(Some(gateway.service));
    let gateway = encrypted(&system, &authority, |_| {});
    let wrong = message(client(&gateway, &authority.certificate).info(Moment::Now));
    assert!(wrong.contains("is not trusted: it shows the certificate of an authority (CA:TRUE)"), "{wrong}");

    // Each side reports the fault when only one of them uses TLS.
    let clear = Endpoint::Tcp { address: gateway.tcp.to_string(), token: Some(TOKEN.to_owned()), tls: None };
    let told = message(Client::new(clear).info(Moment::Now));
    assert!(told.contains("the gateway speaks TLS"), "{told}");
    system.stop(Some(gateway.service));
    let gateway = system.gateway_with(|_| {});
    let told = message(client(&gateway, &own.certificate).info(Moment::Now));
    assert!(told.contains("does not speak TLS"), "{told}");
    system.stop(Some(gateway.service));
}

/// D7, F7: a caller who never finishes the handshake gets no more connections than others, and is ended in time.
#[test]
fn handshakes_without_end_shut_nobody_out() {
    let system = System::start();
    let own = identity(system.folder(), "own", &["127.0.0.1"]);
    let gateway = encrypted(&system, &own, |config| {
        (config.max_connections, config.max_connections_per_caller) = (Some(32), Some(4));
        config.head_seconds = 3;
    });
    let silent = || {
        let stream = TcpStream::connect(gateway.tcp).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    };
    let mut halves: Vec<TcpStream> = (0..4).map(|_| silent()).collect();
    for half in &mut halves[..2] {
        // The beginning of a greeting that announces more.
        half.write_all(&[0x16, 3, 1, 2, 0, 1, 0]).unwrap();
    }
    assert_eq!(all_of(&mut silent()), b"", "the fifth of one address is not let in");
    Client::new(Endpoint::Unix(gateway.socket.clone())).submit(CommandId::new_now(), &[job("beside-them")]).unwrap();
    for half in &mut halves {
        assert_eq!(all_of(half), b"");
    }
    client(&gateway, &own.certificate).jobs(&Default::default()).unwrap();
    system.stop(Some(gateway.service));
}

/// Everything until the gateway ends the connection.
fn all_of(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("the gateway keeps the connection: {error}"),
        _ => bytes,
    }
}

/// D7: a renewed certificate is used without a restart; an unusable one changes nothing.
#[test]
fn a_renewed_certificate_is_taken_up() {
    let system = System::start();
    let own = identity(system.folder(), "own", &["127.0.0.1"]);
    let gateway = encrypted(&system, &own, |_| {});
    let first = system.folder().join("first.pem");
    std::fs::copy(&own.certificate, &first).unwrap();
    client(&gateway, &first).info(Moment::Now).unwrap();
    let renewed = identity(system.folder(), "own", &["127.0.0.1"]);
    let second = system.folder().join("second.pem");
    std::fs::copy(&renewed.certificate, &second).unwrap();
    until("it has the new one", || client(&gateway, &second).info(Moment::Now).is_ok());
    assert!(client(&gateway, &first).info(Moment::Now).is_err());
    std::fs::write(&own.certificate, "no certificate").unwrap();
    until("it has looked at the files again", || {
        client(&gateway, &second).info(Moment::Now).expect("the one before stays");
        std::fs::metadata(&own.certificate).unwrap().modified().unwrap().elapsed().unwrap() > Duration::from_secs(3)
    });
    system.stop(Some(gateway.service));
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// D7: tokens do not cross a network in clear text unless somebody allows it, and a key readable by
/// everybody is no secret.
#[test]
fn what_would_show_secrets_is_refused() {
    let system = System::start();
    let own = identity(system.folder(), "own", &["127.0.0.1"]);
    let tokens = system.folder().join("tokens");
    let refused = |change: &dyn Fn(&mut muster_gateway::Config)| {
        let mut config = muster_gateway::Config {
            listen: Some("127.0.0.1:0".parse().unwrap()),
            tokens_file: Some(tokens.clone()),
            ..muster_gateway::Config::default()
        };
        change(&mut config);
        system.refused_gateway(config)
    };
    let open = "0.0.0.0:0".parse().unwrap();
    assert!(refused(&|config| config.listen = Some(open)).contains("without TLS"));
    assert!(refused(&|config| config.tls_key = Some(own.key.clone())).contains("need each other"));
    let with = |config: &mut muster_gateway::Config, chain: &Path, key: &Path| {
        (config.tls_certificate, config.tls_key) = (Some(chain.to_path_buf()), Some(key.to_path_buf()));
    };
    assert!(refused(&|config| with(config, &own.key, &own.key)).contains("no certificate"));
    let other = identity(system.folder(), "other", &["127.0.0.1"]);
    assert!(refused(&|config| with(config, &own.certificate, &other.key)).contains("cannot be used together"));
    std::fs::set_permissions(&own.key, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(refused(&|config| with(config, &own.certificate, &own.key)).contains("read by everybody"));
}
