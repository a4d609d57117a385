//! A gateway's description of its own API, used by other programs: a validator, and a generator of clients.

use crate::{book::python, system::System};
use std::path::PathBuf;

/// Anything that takes longer hangs.
const PATIENCE_SECONDS: u32 = 240;

/// The Python that has validator and generator. `None` if `ops/test` could not install them and has said so.
fn python() -> Option<PathBuf> {
    if let Some(python) = std::env::var_os("MUSTER_OPENAPI_TOOLS") {
        return Some(PathBuf::from(python)).filter(|python| !python.as_os_str().is_empty());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let python = target.map(|target| target.join("../openapi/bin/python")).filter(|python| python.exists());
    Some(python.expect("set MUSTER_OPENAPI_TOOLS to a Python with the tools, or run ops/test"))
}

/// D5 of the operators' findings: a client generated from the document submits a job and reads it.
#[test]
fn clients_can_be_made_from_the_document() {
    let Some(python) = python() else {
        return muster_surroundings::skipped("validator and generator of clients are not installed; ops/test says why");
    };
    let system = System::start_for_others();
    let bin = python.parent().expect("a program is in a folder").display();
    let document = system.shell(&format!(
        "{bin}/python -c 'import sys, urllib.request as r; sys.stdout.write(r.urlopen(sys.argv[1]).read().decode())' \
         {}/openapi.json",
        system.server()
    ));
    assert_eq!(document.status, 0, "{}", document.stderr);
    system.write("openapi.json", &document.stdout);
    let parsed: serde_json::Value = serde_json::from_str(&document.stdout).expect("it is JSON");
    let example = parsed.pointer("/paths/~1v1~1jobs/post/requestBody/content/application~1json/example");
    system.write("example.json", &example.expect("how to submit is shown").to_string());
    let run = |line: &str| {
        let said = system.shell(&format!("PATH={bin}:$PATH PYTHONPATH=. timeout -k 5 {PATIENCE_SECONDS} {line}"));
        assert_eq!(said.status, 0, "{line}\n{}{}", said.stdout, said.stderr);
        said.stdout + &said.stderr
    };
    run(&format!("{bin}/openapi-spec-validator openapi.json"));
    let generated = run(&format!(
        "{bin}/openapi-python-client generate --path openapi.json --output-path muster_client --meta none"
    ));
    assert!(!generated.contains("will not be generated"), "{generated}");
    let workload = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/openapi-client/with_client.py");
    let said = run(&format!("{bin}/python {workload} {} {} example.json", system.server(), System::TOKEN));
    assert!(said.ends_with("done\n"), "{said}");
    let shown =
        python::program("docs/integrate.md", "AuthenticatedClient").replace("https://head:7457", &system.server());
    let given = format!("import json\ntoken = \"{}\"\nrequest = json.load(open(\"example.json\"))\n", System::TOKEN);
    system.write("shown.py", &format!("{given}{shown}print(detail.job.id, detail.job.owner)\n"));
    assert!(run(&format!("{bin}/python shown.py")).contains("nobody"));
}
