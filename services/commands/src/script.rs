//! Job scripts: their text and the options in their `#MUSTER` lines.
//!
//! ```text
//! #!/bin/bash
//! #MUSTER --nodes 2 --time 30m      # options as on the command line
//! #MUSTER --name "my job"
//! srun_something
//! ```
//!
//! Options are taken from the comment lines before the first line that is neither empty nor a comment.

use crate::exit::Failure;
use muster_cli::foreign;
use std::{fmt, io::Read, path::Path};

/// A script larger than this is not a script; the ledger would refuse it as well.
const MOST_BYTES: u64 = 4 << 20;

/// The beginning of a line of options.
pub const MARKER: &str = "#MUSTER";

/// A place in a script, counted from 1 in lines and characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The name of the file as it was given.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One word of a `#MUSTER` line, without its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word.
    pub text: String,
    /// Where it begins.
    pub position: Position,
}

/// A script that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// All of it.
    pub text: String,
    /// The words of each `#MUSTER` line.
    pub option_lines: Vec<Vec<Word>>,
    /// Probable mistakes that are not refused.
    pub warnings: Vec<String>,
}

impl Script {
    /// Reads a script from a file, or from standard input if the path is `-`.
    pub fn read(path: &str) -> Result<Self, Failure> {
        let name = if path == "-" { "<stdin>" } else { path };
        let cannot = |error: std::io::Error| Failure::failed(format!("cannot read the script {name}: {error}"));
        let mut bytes = Vec::new();
        if path == "-" {
            std::io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
        } else {
            let file = std::fs::File::open(Path::new(path)).map_err(cannot)?;
            file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
        }
        Self::parse(name, bytes)
    }

    /// Parses a script from the bytes of a file.
    pub fn parse(name: &str, bytes: Vec<u8>) -> Result<Self, Failure> {
        if bytes.len() as u64 > MOST_BYTES {
            return Err(Failure::in_file(name, format_args!("larger than {} MiB", MOST_BYTES >> 20)));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let position = position_at(name, &String::from_utf8_lossy(valid));
            let byte = error.as_bytes()[valid.len()];
            Failure::in_file(position, format_args!("the byte 0x{byte:02x} is not UTF-8 text"))
        })?;
        check_text(name, &text)?;
        let mut script = Self { text: String::new(), option_lines: Vec::new(), warnings: Vec::new() };
        let mut in_head = true;
        for (index, line) in text.lines().enumerate() {
            let at = |column| Position { file: name.to_owned(), line: index + 1, column };
            in_head &= line.trim_start().is_empty() || line.trim_start().starts_with('#');
            match option_part(line) {
                Some(options) if in_head => {
                    let first_column = MARKER.len() + 1;
                    let words = split_words(options, first_column)
                        .map_err(|(column, message)| Failure::in_file(at(column), message))?;
                    let words = words.into_iter().map(|(column, text)| Word { text, position: at(column) });
                    script.option_lines.push(words.collect());
                }
                Some(_) => {
                    script
                        .warnings
                        .push(format!("{}: this {MARKER} line comes after the first command and is ignored", at(1)));
                }
                None if in_head && looks_like_marker(line) => {
                    script.warnings.push(format!("{}: this is a comment; options begin with `{MARKER} `", at(1)));
                }
                None => {}
            }
        }
        for (line, warning) in foreign::warnings(&text, MARKER) {
            let position = Position { file: name.to_owned(), line, column: 1 };
            script.warnings.push(format!("{position}: {warning}"));
        }
        script.text = text;
        Ok(script)
    }
}

fn check_text(name: &str, text: &str) -> Result<(), Failure> {
    let first = text.lines().next().unwrap_or_default();
    let first_position = Position { file: name.to_owned(), line: 1, column: 1 };
    if text.trim().is_empty() {
        return Err(Failure::in_file(first_position, "the script is empty"));
    }
    if !first.starts_with("#!") {
        return Err(Failure::in_file(
            first_position,
            "a script begins with `#!` and its interpreter, for example `#!/bin/bash`",
        ));
    }
    if let Some(at) = text.find("\r\n") {
        return Err(Failure::in_file(
            position_at(name, &text[..at]),
            "the line ends as on DOS, which shells do not understand; `sed -i 's/\\r$//'` corrects the file",
        ));
    }
    match text.find('\0') {
        Some(at) => Err(Failure::in_file(position_at(name, &text[..at]), "a zero byte; this is not a script")),
        None => Ok(()),
    }
}

/// The position of the character after the text.
fn position_at(name: &str, before: &str) -> Position {
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Position {
        file: name.to_owned(),
        line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

/// The text after the marker, if the line is one of options.
fn option_part(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(MARKER)?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then_some(rest)
}

/// Lines such as `# MUSTER -N 2` or `#muster -N 2`, which were probably meant as options.
fn looks_like_marker(line: &str) -> bool {
    let Some(comment) = line.strip_prefix('#') else { return false };
    let mut words = comment.split_whitespace();
    words.next().is_some_and(|word| word.eq_ignore_ascii_case("muster"))
        && words.next().is_some_and(|word| word.starts_with('-'))
}

/// Splits a line into words as a shell does: blanks separate, `'...'` keeps everything, `"..."` keeps everything but
/// `\"` and `\\`, a backslash keeps the next character, a word that begins with `#` ends the line.
///
/// Gives each word with the column of its beginning, or the column and reason of an error.
pub fn split_words(line: &str, first_column: usize) -> Result<Vec<(usize, String)>, (usize, &'static str)> {
    let mut words = Vec::new();
    let mut characters = line.chars().zip(first_column..).peekable();
    while let Some((character, start)) = characters.next() {
        if character.is_whitespace() {
            continue;
        }
        if character == '#' {
            break;
        }
        let mut word = String::new();
        let mut current = Some((character, start));
        while let Some((character, column)) = current {
            match character {
                '\'' | '"' => read_quoted(character, column, &mut characters, &mut word)?,
                '\\' => word.push(characters.next().ok_or((column, "nothing follows the backslash"))?.0),
                _ => word.push(character),
            }
            current = characters.next_if(|(next, _)| !next.is_whitespace());
        }
        words.push((start, word));
    }
    Ok(words)
}

fn read_quoted(
    quote: char,
    start: usize,
    characters: &mut impl Iterator<Item = (char, usize)>,
    word: &mut String,
) -> Result<(), (usize, &'static str)> {
    const OPEN: &str = "this quote is not closed";
    loop {
        match characters.next() {
            None => return Err((start, OPEN)),
            Some((character, _)) if character == quote => return Ok(()),
            Some(('\\', _)) if quote == '"' => match characters.next() {
                None => return Err((start, OPEN)),
                Some((escaped @ ('"' | '\\'), _)) => word.push(escaped),
                Some((other, _)) => word.extend(['\\', other]),
            },
            Some((character, _)) => word.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(script: &str) -> Vec<Vec<String>> {
        let script = Script::parse("job.sh", script.as_bytes().to_vec()).unwrap();
        script.option_lines.into_iter().map(|line| line.into_iter().map(|word| word.text).collect()).collect()
    }

    fn refusal(bytes: &[u8]) -> String {
        Script::parse("job.sh", bytes.to_vec()).unwrap_err().message
    }

    #[test]
    fn options_stand_before_the_first_command() {
        let text = "#!/bin/sh\n# about\n#MUSTER -N 2 --name 'my job'\n\n#MUSTER\t--env \"A=b \\\" c\" # why\necho hi\n#MUSTER -N 3\n";
        assert_eq!(words(text), vec![vec!["-N", "2", "--name", "my job"], vec!["--env", "A=b \" c"]]);
        let script = Script::parse("job.sh", text.into()).unwrap();
        assert_eq!(script.option_lines[0][2].position.to_string(), "job.sh:3:14");
        assert_eq!(script.warnings, ["job.sh:7:1: this #MUSTER line comes after the first command and is ignored"]);
        assert_eq!(script.text, text);
    }

    #[test]
    fn near_misses_are_told() {
        let script =
            Script::parse("job.sh", b"#!/bin/sh\n# MUSTER -N 2\n#MUSTERING -x\n#muster --hold\n".to_vec()).unwrap();
        assert!(script.option_lines.is_empty());
        assert_eq!(script.warnings.len(), 2);
    }

    #[test]
    fn options_of_other_schedulers_are_told_once_with_the_command_that_reads_them() {
        let text = "#!/bin/sh\n#SBATCH -N 2\n#SBATCH -t 5\n#PBS -l nodes=2\necho\n#SBATCH -n 1\n";
        let script = Script::parse("job.sh", text.into()).unwrap();
        assert_eq!(script.warnings.len(), 2, "{:?}", script.warnings);
        assert!(script.warnings[0].starts_with("job.sh:2:1: #SBATCH lines are options of sbatch and are ignored"));
        assert!(script.warnings[1].starts_with("job.sh:4:1: #PBS lines are options of qsub and are ignored"));
    }

    #[test]
    fn what_is_no_script_is_refused_with_its_place() {
        assert!(refusal(b"").starts_with("job.sh:1:1: the script is empty"));
        assert!(refusal(b"echo\n").starts_with("job.sh:1:1: a script begins with"));
        assert!(
            refusal("#!/bin/sh\n\u{e4}b\u{e4}".as_bytes().strip_suffix(b"\xa4").unwrap())
                .starts_with("job.sh:2:3: the byte 0xc3")
        );
        assert!(refusal(b"#!/bin/sh\r\necho\r\n").starts_with("job.sh:1:10: the line ends as on DOS"));
        assert!(refusal(b"#!/bin/sh\nab\0").starts_with("job.sh:2:3: a zero byte"));
        assert!(refusal(b"#!/bin/sh\n#MUSTER --name 'x\n").starts_with("job.sh:2:16: this quote is not closed"));
        assert!(refusal(b"#!/bin/sh\n#MUSTER \\").starts_with("job.sh:2:9: nothing follows the backslash"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Script::parse("job.sh", bytes);
        }

        #[test]
        fn any_options_are_read_or_refused(line in "[ -~\t\"'\\\\]{0,60}") {
            let _ = Script::parse("job.sh", format!("#!/bin/sh\n#MUSTER {line}\n").into_bytes());
        }

        #[test]
        fn quoted_words_come_back(list in prop::collection::vec("[^']{0,12}", 0..5)) {
            let line: Vec<String> = list.iter().map(|word| format!("'{word}'")).collect();
            let read = split_words(&line.join(" "), 1).unwrap();
            prop_assert_eq!(read.into_iter().map(|(_, word)| word).collect::<Vec<_>>(), list);
        }
    }
}
