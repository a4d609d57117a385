//! Version 1: a message is a line of words, `cmd=NAME key=value ...`. A request to spawn processes is several lines.

use crate::{
    MAX_KEY_BYTES, MAX_VALUE_BYTES,
    wire::{Malformed, Outcome, Request, Words, text},
};

/// The first request in bytes, and its length; `None` if it is not complete yet.
pub(crate) fn first(bytes: &[u8]) -> Result<Option<(Request, usize)>, Malformed> {
    let Some(length) = end_of(bytes, b"\n") else { return Ok(None) };
    if bytes.starts_with(b"mcmd=") {
        let end = end_of(bytes, b"\nendcmd\n");
        return Ok(end.map(|length| (Request::Spawn { answer: "spawn_result" }, length)));
    }
    let line = text(&bytes[..length])?;
    request(&words(line)).map(|request| Some((request, length)))
}

/// Where the first occurrence of a text ends.
fn end_of(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted).map(|start| start + wanted.len())
}

fn words(line: &str) -> Words {
    let word = |word: &str| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    Words::new(line.split_ascii_whitespace().filter_map(word))
}

fn request(words: &Words) -> Result<Request, Malformed> {
    Ok(match words.needed("cmd")?.as_str() {
        "init" => {
            let version = words.needed("pmi_version")?;
            let version = version.parse().map_err(|_| Malformed(format!("`pmi_version={version}`")))?;
            Request::Begin { version }
        }
        "get_maxes" => Request::Maxima,
        "get_appnum" => Request::ApplicationNumber,
        "get_my_kvsname" => Request::SpaceName,
        "get_universe_size" => Request::UniverseSize,
        "put" => Request::Put { key: words.needed("key")?, value: words.needed("value")? },
        "get" => Request::Get { key: words.needed("key")? },
        "barrier_in" => Request::Fence,
        "abort" => Request::Abort {
            status: words.get("exitcode").and_then(|status| status.parse().ok()).unwrap_or(1),
            message: words.get("message").unwrap_or_default().to_owned(),
        },
        "finalize" => Request::Finalize,
        "publish_name" => Request::Other { answer: "publish_result" },
        "unpublish_name" => Request::Other { answer: "unpublish_result" },
        "lookup_name" => Request::Other { answer: "lookup_result" },
        "getbyidx" => Request::Other { answer: "getbyidx_results" },
        "create_kvs" => Request::Other { answer: "newkvs" },
        "destroy_kvs" => Request::Other { answer: "kvs_destroyed" },
        other => return Err(Malformed(format!("the unknown command `{other}`"))),
    })
}

/// The answer to a request; empty if it has none.
pub(crate) fn answer(request: &Request, outcome: &Outcome) -> Vec<u8> {
    let value = match outcome {
        Outcome::Value(Some(value)) => value.as_str(),
        _ => "",
    };
    let text = match (request, outcome) {
        (Request::Other { answer } | Request::Spawn { answer }, Outcome::Refused(why)) => {
            format!("cmd={answer} rc=-1 status=-1 msg={}", why.replace(' ', "_"))
        }
        (_, Outcome::Refused(why)) => format!("cmd={} rc=-1 msg={}", name(request), why.replace(' ', "_")),
        (Request::Begin { .. }, _) => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".to_owned(),
        (Request::Maxima, _) => {
            format!("cmd=maxes kvsname_max=256 keylen_max={MAX_KEY_BYTES} vallen_max={MAX_VALUE_BYTES} rc=0")
        }
        (Request::ApplicationNumber, _) => "cmd=appnum appnum=0 rc=0".to_owned(),
        (Request::SpaceName, _) => format!("cmd=my_kvsname kvsname={value} rc=0"),
        (Request::UniverseSize, _) => format!("cmd=universe_size size={value} rc=0"),
        (Request::Put { .. }, _) => "cmd=put_result rc=0 msg=success".to_owned(),
        (Request::Get { .. }, Outcome::Value(Some(value))) => {
            format!("cmd=get_result rc=0 msg=success value={value}")
        }
        (Request::Get { .. }, _) => "cmd=get_result rc=-1 msg=key_not_found value=unknown".to_owned(),
        (Request::Fence, _) => "cmd=barrier_out rc=0".to_owned(),
        (Request::Finalize, _) => "cmd=finalize_ack rc=0".to_owned(),
        _ => return Vec::new(),
    };
    (text + "\n").into_bytes()
}

/// The name of an answer that refuses.
fn name(request: &Request) -> &'static str {
    match request {
        Request::Begin { .. } => "response_to_init",
        Request::Put { .. } => "put_result",
        Request::Fence => "barrier_out",
        _ => "result",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_line() {
        let bytes = b"cmd=put kvsname=s key=a value=b=c\ncmd=ba";
        let (request, length) = first(bytes).unwrap().unwrap();
        assert_eq!(request, Request::Put { key: "a".into(), value: "b=c".into() });
        assert_eq!(first(&bytes[length..]), Ok(None));
    }

    #[test]
    fn a_request_to_spawn_has_several_lines() {
        let bytes = b"mcmd=spawn\nnprocs=2\nexecname=a\nendcmd\ncmd=finalize\n";
        let (request, length) = first(bytes).unwrap().unwrap();
        assert_eq!(request, Request::Spawn { answer: "spawn_result" });
        assert_eq!(first(&bytes[length..]).unwrap().unwrap().0, Request::Finalize);
        assert_eq!(first(b"mcmd=spawn\nnprocs=2\n"), Ok(None));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for bad in
            [&b"cmd=unheard_of\n"[..], b"hello\n", b"cmd=put key=a\n", b"cmd=init\n", b"\xff\n", b"cmd=get key=\0\n"]
        {
            assert!(first(bad).is_err(), "{bad:?}");
        }
    }
}
