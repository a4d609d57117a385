//! Lists of node names with ranges: `node[001-100,200],login1`.

use super::shorten;

/// No list names more nodes than this: protects from `node[1-4000000000]`.
const MOST_HOSTS: usize = 1_000_000;

/// The names in a list such as `n[1-3],m[08-10]-ib`, in the order written. A range keeps the width of its first number.
pub fn parse_hosts(text: &str) -> Result<Vec<String>, String> {
    let mut hosts = Vec::new();
    for part in split_outside_brackets(text)? {
        expand(part, String::new(), &mut hosts)?;
    }
    Ok(hosts)
}

fn split_outside_brackets(text: &str) -> Result<Vec<&str>, String> {
    let mut parts = Vec::new();
    let (mut start, mut inside) = (0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' if !inside => inside = true,
            b']' if inside => inside = false,
            b'[' | b']' => return Err(format!("the brackets in `{}` do not match", shorten(text))),
            b',' if !inside => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err(format!("`{}` has a `[` without its `]`", shorten(text)));
    }
    parts.push(&text[start..]);
    if parts.iter().any(|part| part.is_empty()) {
        return Err(format!("`{}` has an empty name", shorten(text)));
    }
    Ok(parts)
}

/// Puts `prefix` + each expansion of `rest` behind the hosts. `rest` has balanced, unnested brackets.
fn expand(rest: &str, prefix: String, hosts: &mut Vec<String>) -> Result<(), String> {
    let Some((before, (ranges, after))) =
        rest.split_once('[').and_then(|(before, tail)| Some((before, tail.split_once(']')?)))
    else {
        if hosts.len() >= MOST_HOSTS {
            return Err(format!("it names more than {MOST_HOSTS} nodes"));
        }
        hosts.push(prefix + rest);
        return Ok(());
    };
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let error = || format!("`{}` is not a number or range such as 01-16", shorten(range));
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse::<u32>().ok()).flatten().ok_or_else(error)
        };
        let (from, to, width) = (number(first)?, number(last)?, first.len());
        if from > to {
            return Err(error());
        }
        for index in from..=to {
            expand(after, format!("{prefix}{before}{index:0width$}"), hosts)?;
        }
    }
    Ok(())
}

/// The names as a list with ranges, in order: `node1 node2 node3 x` is `node[1-3],x`. Only neighbours are joined.
pub fn compress_hosts<S: AsRef<str>>(hosts: &[S]) -> String {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for host in hosts {
        let (stem, digits) = split_number(host.as_ref());
        match groups.last_mut() {
            Some(group) if group.takes(stem, digits) => group.numbers.push(digits),
            _ => groups.push(Group { stem, numbers: vec![digits] }),
        }
    }
    let texts: Vec<String> = groups.iter().map(Group::text).collect();
    texts.join(",")
}

/// A name's stem and the digits at its end; without digits, or with too many to count, the stem is all of it.
fn split_number(host: &str) -> (&str, &str) {
    let stem = host.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &host[stem.len()..];
    if digits.len() <= 9 { (stem, digits) } else { (host, "") }
}

/// Names with one stem and one width.
struct Group<'a> {
    stem: &'a str,
    numbers: Vec<&'a str>,
}

impl Group<'_> {
    fn takes(&self, stem: &str, digits: &str) -> bool {
        let last = self.numbers[self.numbers.len() - 1];
        let same_width = digits.len() == last.len() || (!digits.starts_with('0') && !last.starts_with('0'));
        !digits.is_empty() && !last.is_empty() && self.stem == stem && same_width
    }

    fn text(&self) -> String {
        if let [only] = self.numbers[..] {
            return format!("{}{only}", self.stem);
        }
        let mut ranges: Vec<(&str, &str)> = Vec::new();
        for number in &self.numbers {
            let value = |text: &str| text.parse::<u64>().unwrap_or(0);
            match ranges.last_mut() {
                Some((_, last)) if value(last) + 1 == value(number) => *last = number,
                _ => ranges.push((number, number)),
            }
        }
        let text =
            |(first, last): &(&str, &str)| if first == last { first.to_string() } else { format!("{first}-{last}") };
        let texts: Vec<String> = ranges.iter().map(text).collect();
        format!("{}[{}]", self.stem, texts.join(","))
    }
}
