//! Version 2: a message is its length in six characters, and words `cmd=NAME;key=value;...`. A `;` in a value is
//! doubled. A process begins with a line of version 1 that names version 2.

use crate::wire::{Malformed, Outcome, Request, Words, text};

/// The characters of a message's length.
const LENGTH_BYTES: usize = 6;

/// A request, and the thread of the process that waits for the answer, if it named one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub request: Request,
    pub thread: Option<String>,
}

/// The first request in bytes, and its length; `None` if it is not complete yet.
pub(crate) fn first(bytes: &[u8]) -> Result<Option<(Asked, usize)>, Malformed> {
    let Some((head, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let length = text(head)?.trim();
    let length: usize = length.parse().map_err(|_| Malformed(format!("`{length}` instead of a length")))?;
    let Some(message) = rest.get(..length) else { return Ok(None) };
    let words = words(text(message)?);
    let thread = words.get("thrid").map(str::to_owned);
    Ok(Some((Asked { request: request(&words)?, thread }, LENGTH_BYTES + length)))
}

fn words(message: &str) -> Words {
    let mut words = vec![String::new()];
    let mut characters = message.chars().peekable();
    while let Some(character) = characters.next() {
        if character == ';' && characters.next_if_eq(&';').is_none() {
            words.push(String::new());
        } else if let Some(word) = words.last_mut() {
            word.push(character);
        }
    }
    let word = |word: &String| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    Words::new(words.iter().filter_map(word))
}

fn request(words: &Words) -> Result<Request, Malformed> {
    Ok(match words.needed("cmd")?.as_str() {
        "fullinit" => Request::Join,
        "job-getid" => Request::SpaceName,
        "kvs-put" => Request::Put { key: words.needed("key")?, value: words.needed("value")? },
        "kvs-get" => Request::Get { key: words.needed("key")? },
        "kvs-fence" => Request::Fence,
        "info-putnodeattr" => Request::PutNodeAttribute { key: words.needed("key")?, value: words.needed("value")? },
        "info-getnodeattr" => Request::GetNodeAttribute {
            key: words.needed("key")?,
            waits: words.get("wait").is_some_and(|wait| wait.eq_ignore_ascii_case("true")),
        },
        "info-getjobattr" => Request::GetJobAttribute { key: words.needed("key")? },
        "abort" => Request::Abort { status: 1, message: words.get("msg").unwrap_or_default().to_owned() },
        "finalize" => Request::Finalize,
        "job-connect" => Request::Other { answer: "job-connect-response" },
        "job-disconnect" => Request::Other { answer: "job-disconnect-response" },
        "name-publish" => Request::Other { answer: "name-publish-response" },
        "name-unpublish" => Request::Other { answer: "name-unpublish-response" },
        "name-lookup" => Request::Other { answer: "name-lookup-response" },
        "spawn" => Request::Spawn { answer: "spawn-response" },
        other => return Err(Malformed(format!("the unknown command `{other}`"))),
    })
}

/// The process that is answered: its [`Request::Join`] asks who it is.
pub(crate) struct Member {
    pub rank: u32,
    pub size: usize,
}

/// The answer to a request; empty if it has none.
pub(crate) fn answer(asked: &Asked, outcome: &Outcome, member: &Member) -> Vec<u8> {
    let Some(name) = name(&asked.request) else { return Vec::new() };
    let mut words = vec![("cmd", name.to_owned())];
    words.extend(asked.thread.as_ref().map(|thread| ("thrid", thread.clone())));
    if asked.request == Request::Join {
        words.extend(joined(member));
    }
    let is_id = asked.request == Request::SpaceName;
    match outcome {
        Outcome::Value(Some(id)) if is_id => words.push(("jobid", id.clone())),
        Outcome::Value(Some(value)) => words.extend([("found", "TRUE".to_owned()), ("value", value.clone())]),
        Outcome::Value(None) => words.push(("found", "FALSE".to_owned())),
        Outcome::Refused(why) => words.push(("errmsg", (*why).to_owned())),
        Outcome::Done => {}
    }
    words.push(("rc", if matches!(outcome, Outcome::Refused(_)) { "-1" } else { "0" }.to_owned()));
    message(&words)
}

fn joined(member: &Member) -> [(&'static str, String); 7] {
    [
        ("pmi-version", "2".to_owned()),
        ("pmi-subversion", "0".to_owned()),
        ("rank", member.rank.to_string()),
        ("size", member.size.to_string()),
        ("appnum", "0".to_owned()),
        ("debugged", "FALSE".to_owned()),
        ("pmiverbose", "FALSE".to_owned()),
    ]
}

fn name(request: &Request) -> Option<&'static str> {
    Some(match request {
        Request::Join => "fullinit-response",
        Request::SpaceName => "job-getid-response",
        Request::Put { .. } => "kvs-put-response",
        Request::Get { .. } => "kvs-get-response",
        Request::Fence => "kvs-fence-response",
        Request::PutNodeAttribute { .. } => "info-putnodeattr-response",
        Request::GetNodeAttribute { .. } => "info-getnodeattr-response",
        Request::GetJobAttribute { .. } => "info-getjobattr-response",
        Request::Finalize => "finalize-response",
        Request::Other { answer } | Request::Spawn { answer } => answer,
        Request::Begin { .. }
        | Request::Maxima
        | Request::ApplicationNumber
        | Request::UniverseSize
        | Request::Abort { .. } => return None,
    })
}

fn message(words: &[(&str, String)]) -> Vec<u8> {
    let text: String = words.iter().map(|(name, value)| format!("{name}={};", value.replace(';', ";;"))).collect();
    format!("{:>LENGTH_BYTES$}{text}", text.len()).into_bytes()
}

/// The answer to a process that begins, a line of version 1.
pub(crate) fn welcome() -> Vec<u8> {
    b"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n".to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<Option<(Asked, usize)>, Malformed> {
        first(format!("{:6}{text}", text.len()).as_bytes())
    }

    #[test]
    fn a_semicolon_in_a_value_is_doubled() {
        for (text, value) in
            [("v", "v"), ("a;;b", "a;b"), ("a;;;;b", "a;;b"), (";;b", ";b"), ("b;;", "b;"), ("a=b", "a=b")]
        {
            let (asked, _) = asked(&format!("cmd=kvs-put;key=k;value={text};thrid=7;")).unwrap().unwrap();
            assert_eq!(asked.request, Request::Put { key: "k".into(), value: value.into() }, "{text}");
            assert_eq!(asked.thread.as_deref(), Some("7"), "{text}");
        }
    }

    #[test]
    fn answers_say_for_whom_they_are() {
        let asked = Asked { request: Request::Get { key: "k".into() }, thread: Some("7".into()) };
        let found = answer(&asked, &Outcome::Value(Some("a;b".into())), &Member { rank: 0, size: 1 });
        let text = "cmd=kvs-get-response;thrid=7;found=TRUE;value=a;;b;rc=0;";
        assert_eq!(String::from_utf8(found).unwrap(), format!("{:>6}{text}", text.len()));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for bad in ["cmd=unheard_of;", "hello", "cmd=kvs-put;key=a;"] {
            assert!(asked(bad).is_err(), "{bad}");
        }
        assert!(first(b"abcdefcmd=").is_err());
        assert_eq!(first(b"    12cmd="), Ok(None));
        assert_eq!(first(b"   "), Ok(None));
    }
}
