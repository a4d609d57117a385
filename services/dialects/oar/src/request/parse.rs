//! The grammar of `-l`.

use super::{
    demand::{Alternative, Count, Group, Step},
    site::Site,
    walltime,
};
use crate::{
    mistake::Mistake,
    predicate::{self, Predicate},
    refusal::{Code, Refusal},
    resources::property,
    text::{decimal, shown, suggestion},
};

/// The longest value of `-l`, in bytes.
const LONGEST: usize = 65_536;
/// The greatest number of alternatives of a job.
const MOST_ALTERNATIVES: usize = 64;
/// The greatest number of groups of an alternative.
const MOST_GROUPS: usize = 64;
/// The greatest number of steps of a path.
const MOST_STEPS: usize = 16;
/// The greatest count of a step.
const MOST_ITEMS: u32 = 1_000_000;

/// Reads the filter of `-p`.
///
/// # Errors
/// The first mistake, with its place (code -5).
pub fn filter(text: &str, site: &Site) -> Result<Predicate, Refusal> {
    predicate::read(text, &site.fields).map_err(|mistake| Refusal::mistake(Code::Resources, "-p", mistake))
}

/// Reads the values of all `-l`, each of which is an alternative. Without any, the site's default demand.
///
/// # Errors
/// The first mistake, with its place.
pub fn alternatives<S: AsRef<str>>(texts: &[S], site: &Site) -> Result<Vec<Alternative>, Refusal> {
    if texts.len() > MOST_ALTERNATIVES {
        let why = format!("a job has at most {MOST_ALTERNATIVES} alternatives");
        return Err(Refusal::option(Code::Syntax, "-l", why));
    }
    if texts.is_empty() {
        return Ok(vec![alternative("", site)?]);
    }
    texts.iter().map(|text| alternative(text.as_ref(), site)).collect()
}

/// Reads the value of one `-l`.
///
/// # Errors
/// The first mistake, with its place.
pub fn alternative(text: &str, site: &Site) -> Result<Alternative, Refusal> {
    if text.len() > LONGEST {
        return Err(Refusal::option(Code::Syntax, "-l", format!("at most {LONGEST} bytes are read")));
    }
    let mut reader = Reader { text, at: 0, site };
    let (groups, walltime) = reader.alternative()?;
    let groups = match groups {
        None if text == site.default_demand => return Err(reader.syntax("the site's default demand has no resources")),
        None => alternative(&site.default_demand, site)?.groups,
        Some(groups) => groups,
    };
    let has_own_walltime = walltime.is_some();
    Ok(Alternative { groups, walltime: walltime.unwrap_or(site.default_walltime), has_own_walltime })
}

struct Reader<'r> {
    text: &'r str,
    /// The byte that comes next.
    at: usize,
    site: &'r Site,
}

impl<'r> Reader<'r> {
    fn alternative(&mut self) -> Result<(Option<Vec<Group>>, Option<i64>), Refusal> {
        self.skip_blanks();
        if self.rest().is_empty() {
            return Ok((None, None));
        }
        if let Some(walltime) = self.walltime()? {
            self.end()?;
            return Ok((None, Some(walltime)));
        }
        let mut groups = vec![self.group()?];
        while self.takes('+') {
            groups.push(self.group()?);
            if groups.len() > MOST_GROUPS {
                return Err(self.syntax(&format!("an alternative has at most {MOST_GROUPS} groups")));
            }
        }
        let mut walltime = None;
        if self.takes(',') {
            walltime = self.walltime()?;
            if walltime.is_none() {
                return Err(self.expected("walltime="));
            }
        }
        self.end()?;
        Ok((Some(groups), walltime))
    }

    /// The end of the text.
    fn end(&mut self) -> Result<(), Refusal> {
        self.skip_blanks();
        let rest = self.rest();
        if rest.is_empty() {
            return Ok(());
        }
        let is_second = rest.trim_start_matches([',', ' ']).to_ascii_lowercase().starts_with("walltime");
        Err(if is_second {
            self.syntax("the walltime is given twice")
        } else {
            self.expected("the end of the request")
        })
    }

    fn walltime(&mut self) -> Result<Option<i64>, Refusal> {
        self.skip_blanks();
        let word = self.leading(|c| c.is_ascii_alphabetic());
        if !word.eq_ignore_ascii_case("walltime") {
            return Ok(None);
        }
        self.at += word.len();
        self.skip_blanks();
        if !self.takes('=') {
            return Err(self.expected("= and the walltime"));
        }
        self.skip_blanks();
        let value = self.leading(|c| c != ',' && c != '+' && !c.is_whitespace());
        let seconds = walltime::seconds(value).map_err(|why| self.syntax(&why))?;
        self.at += value.len();
        Ok(Some(seconds))
    }

    fn group(&mut self) -> Result<Group, Refusal> {
        self.skip_blanks();
        let filter = if self.rest().starts_with('{') { self.filter()? } else { Predicate::ALWAYS };
        self.takes('/');
        let mut path = vec![self.step()?];
        while self.takes('/') {
            let at = self.at;
            let step = self.step()?;
            if path.iter().any(|before| before.level == step.level) {
                return Err(self.refusal(Code::Syntax, at, format!("the level {} is given twice", step.level)));
            }
            path.push(step);
            if path.len() > MOST_STEPS {
                return Err(self.syntax(&format!("a path has at most {MOST_STEPS} levels")));
            }
        }
        Ok(Group { filter, path })
    }

    /// The filter in braces. A brace in quotes does not end it.
    fn filter(&mut self) -> Result<Predicate, Refusal> {
        let begin = self.at + 1;
        let mut quote = None;
        let close = self.text[begin..].char_indices().find(|(_, c)| match (quote, c) {
            (Some(open), c) if open == *c => {
                quote = None;
                false
            }
            (None, '\'' | '"') => {
                quote = Some(*c);
                false
            }
            (quote, c) => quote.is_none() && *c == '}',
        });
        let Some((length, _)) = close else {
            return Err(self.syntax("the brace is not closed"));
        };
        let content = &self.text[begin..begin + length];
        let before = self.text[..begin].chars().count();
        let filter = predicate::read(content, &self.site.fields)
            .map_err(|mistake| Refusal::mistake(Code::Resources, "-l", mistake.moved(before)))?;
        self.at = begin + length + 1;
        Ok(filter)
    }

    fn step(&mut self) -> Result<Step, Refusal> {
        self.skip_blanks();
        if self.rest().starts_with('{') {
            return Err(self.syntax("a filter is before the first level of its group"));
        }
        let begin = self.at;
        let name = self.leading(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if name.is_empty() {
            return Err(self.expected("a level, as in nodes=2"));
        }
        self.at += name.len();
        if !self.takes('=') {
            return Err(self.expected(&format!("= and a count after '{}'", shown(name))));
        }
        let count = self.count()?;
        // The syntax is told before the meaning: a level that is unknown may be a typing error of something else.
        let Some(level) = self.site.level(name) else {
            let near = suggestion(name, self.site.level_names());
            let message = format!("no level is called '{}'{near}", shown(name));
            return Err(self.refusal(Code::UnknownLevel, begin, message));
        };
        if property::is_system(&level) {
            let message = format!("{level} describes how resources are used; it cannot be a level");
            return Err(self.refusal(Code::Rule, begin, message));
        }
        Ok(Step { level, count })
    }

    fn count(&mut self) -> Result<Count, Refusal> {
        self.skip_blanks();
        let word = self.leading(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.');
        let count = match word.to_ascii_uppercase().as_str() {
            "ALL" => Count::All,
            "BEST" => Count::Best,
            "BESTHALF" | "HALF_BEST" => Count::BestHalf,
            number => match decimal::<u32>(number).filter(|number| (1..=MOST_ITEMS).contains(number)) {
                Some(number) => Count::Exactly(number),
                None => {
                    let forms = format!("a count from 1 to {MOST_ITEMS}, ALL, BEST or BESTHALF");
                    return Err(self.expected(&forms));
                }
            },
        };
        self.at += word.len();
        Ok(count)
    }

    fn takes(&mut self, sign: char) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len_utf8() } else { 0 };
        found
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn rest(&self) -> &'r str {
        &self.text[self.at..]
    }

    fn leading(&self, belongs: impl Fn(char) -> bool) -> &'r str {
        let rest = self.rest();
        rest.split_once(|c| !belongs(c)).map_or(rest, |(word, _)| word)
    }

    /// A mistake that names the part of the text that was found instead.
    fn expected(&self, what: &str) -> Refusal {
        let rest = self.rest();
        let found = match rest.split_inclusive(['/', '+', ',']).next() {
            None => "the end of the request".to_owned(),
            Some(part) => format!("'{}'", shown(part)),
        };
        self.syntax(&format!("expected {what}, found {found}"))
    }

    fn syntax(&self, message: &str) -> Refusal {
        self.refusal(Code::Syntax, self.at, message.to_owned())
    }

    fn refusal(&self, code: Code, at: usize, message: String) -> Refusal {
        Refusal::mistake(code, "-l", Mistake::at(self.text, at, message))
    }
}
