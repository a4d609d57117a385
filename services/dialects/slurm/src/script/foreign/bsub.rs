//! The options of `#BSUB` lines.

use super::translation::{Foreign, Translation, foreign, leading_number, read};
use crate::{getopt::Takes::*, messages::Refusal};

static OPTIONS: &[Foreign] = &[
    foreign('c', "cwd", Value),
    foreign('e', "error_file", Value),
    foreign('J', "job_name", Value),
    foreign('m', "hostname", Value),
    foreign('M', "memory_limit", Value),
    foreign('n', "tasks", Value),
    foreign('o', "output_file", Value),
    foreign('q', "queue_name", Value),
    foreign('W', "time", Value),
    foreign('x', "exclusive", Nothing),
];

/// What the words of `#BSUB` lines ask for.
pub(super) fn translate(words: &[String]) -> Result<Translation, Refusal> {
    // LSF writes this long option with one dash.
    let words: Vec<String> =
        words.iter().map(|word| if word == "-cwd" { "-c".to_owned() } else { word.clone() }).collect();
    let mut all = Translation::default();
    read(OPTIONS, &words, |letter, value| {
        match letter {
            'c' => all.put("chdir", value),
            'e' => all.put_file("error", value),
            'J' => all.put("job-name", value),
            'm' => all.put("nodelist", value.split_whitespace().collect::<Vec<_>>().join(",")),
            'M' => all.put("mem-per-cpu", leading_number(value).ok_or(Refusal::BadValue("mem-per-cpu"))?.to_string()),
            'n' => all.put("ntasks", tasks(value)?),
            'o' => all.put("output", value),
            'q' => all.put("partition", value),
            'W' => all.put("time", minutes(value).ok_or(Refusal::BadValue("time"))?.to_string()),
            // The table has no other letters.
            _ => all.set("exclusive"),
        }
        Ok(())
    })?;
    Ok(all)
}

/// The number of tasks in `MIN[,MAX]`: the higher one.
fn tasks(value: &str) -> Result<&str, Refusal> {
    match value.split_once(',') {
        Some((_, "")) => Err(Refusal::ForeignValue(format!("#BSUB -n format not correct given: '{value}'"))),
        Some((_, most)) => Ok(most),
        None => Ok(value),
    }
}

/// The minutes of `[HOURS:]MINUTES[/HOST]`. Slurm reads only the first number, even if it counts hours.
fn minutes(value: &str) -> Option<u64> {
    let limit = value.split('/').next().unwrap_or_default();
    match limit.split_once(':') {
        Some((hours, minutes)) => hours.parse::<u64>().ok()?.checked_mul(60)?.checked_add(minutes.parse().ok()?),
        None => limit.parse().ok(),
    }
}
