//! Option lines of other schedulers in a job script: comments to whoever does not read them, which users should know.

/// One kind of option lines.
struct Kind {
    marker: &'static str,
    /// Whose options they are.
    command: &'static str,
    /// Who reads them.
    reader: Option<&'static str>,
}

const KINDS: [Kind; 8] = [
    Kind { marker: "#MUSTER", command: "muster submit", reader: Some("muster submit") },
    Kind { marker: "#SBATCH", command: "sbatch", reader: Some("muster slurm sbatch") },
    Kind { marker: "#PBS", command: "qsub", reader: Some("muster pbs qsub") },
    Kind { marker: "#OAR", command: "oarsub", reader: Some("muster oar oarsub -S") },
    Kind { marker: "#BSUB", command: "bsub", reader: Some("muster slurm sbatch") },
    Kind { marker: "#MSUB", command: "msub", reader: None },
    Kind { marker: "#COBALT", command: "the qsub of Cobalt", reader: None },
    Kind { marker: "#$", command: "the qsub of Grid Engine", reader: None },
];

impl Kind {
    fn begins(&self, line: &str) -> bool {
        line.strip_prefix(self.marker).is_some_and(|rest| rest.starts_with([' ', '\t']))
    }

    fn warning(&self) -> String {
        let Self { marker, command, reader } = self;
        let advice = reader.map(|reader| format!("; `{reader}` reads them")).unwrap_or_default();
        format!("{marker} lines are options of {command} and are ignored here{advice}")
    }
}

/// A warning for each kind of foreign option lines in the head of a script, which ends at the first line that is neither empty
/// nor a comment, with the number of its first line from 1. `own` is how lines begin that the caller reads.
pub fn warnings(text: &str, own: &str) -> Vec<(usize, String)> {
    let is_head = |line: &&str| line.trim_start().is_empty() || line.trim_start().starts_with('#');
    let head = || (1..).zip(text.lines().take_while(is_head)).filter(|(_, line)| !line.starts_with(own));
    let mut found: Vec<(usize, String)> = KINDS
        .iter()
        .filter(|kind| kind.marker != own)
        .filter_map(|kind| Some((head().find(|(_, line)| kind.begins(line))?.0, kind.warning())))
        .collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each kind is told once, with its first line; lines after the first command, and whoever's own, are not.
    #[test]
    fn each_kind_of_foreign_lines_is_told_once() {
        let script =
            "#!/bin/sh\n#PBS -N x\n#SBATCH -N 2\n\n#SBATCH -n 4\n#$ -cwd\n#$HOME is no option\necho\n#OAR -l core=1\n";
        let told = warnings(script, "#PBS");
        assert_eq!(told.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3, 6]);
        let sbatch = "#SBATCH lines are options of sbatch and are ignored here; `muster slurm sbatch` reads them";
        assert_eq!(told[0].1, sbatch);
        assert_eq!(told[1].1, "#$ lines are options of the qsub of Grid Engine and are ignored here");
        assert_eq!(warnings(script, "#MUSTER")[0].0, 2);
    }
}
