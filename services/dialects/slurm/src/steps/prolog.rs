//! `--task-prolog` and `--task-epilog` of `srun` (SL-R-21): a small shell script starts each task of a group that has
//! them, and runs them before and after it on its node.
//!
//! The prolog has the task's environment and user. In its standard output, `export NAME=value` and `unset NAME` change
//! the variables of the task, and `print TEXT` goes to the task's standard output; if the prolog fails, the task does
//! not run. The epilog has the same environment as the prolog, and five seconds. Whatever its result, the task ends
//! like the program itself.

use crate::request::Settings;
use muster_schemas::steps::StepSpec;

/// The script, with its comments.
const SCRIPT: &str = include_str!("prolog.sh");

/// Wraps the programs of parts that have a prolog or epilog; the others stay unchanged.
pub(super) fn put_around<'a>(spec: &mut StepSpec, parts: impl Iterator<Item = &'a Settings>) {
    let StepSpec { environment, groups, .. } = spec;
    for (group, settings) in groups.iter_mut().zip(parts) {
        let program = |option| settings.text(option).unwrap_or_default();
        let (prolog, epilog) = (program("task-prolog"), program("task-epilog"));
        if prolog.is_empty() && epilog.is_empty() {
            continue;
        }
        let variables = environment.iter().flatten().chain(&group.environment);
        let odd: Vec<String> =
            variables.filter(|(name, _)| !is_passed_on(name)).map(|(name, value)| format!("{name}={value}")).collect();
        let count = odd.len().to_string();
        let words = ["/bin/sh", "-c", &script(), "sh", prolog, epilog, &count].map(str::to_owned);
        for program in &mut group.programs {
            let command = std::mem::take(&mut program.argv);
            program.argv = words.iter().chain(&odd).cloned().chain(command).collect();
        }
    }
}

/// The script to launch, without comments.
fn script() -> String {
    let is_comment = |line: &&str| line.trim_start().starts_with("# ");
    SCRIPT.split_inclusive('\n').filter(|line| !is_comment(line)).collect()
}

/// Whether every shell passes a variable on. Functions exported by `bash` have names that other shells drop.
fn is_passed_on(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    name.starts_with(is_letter) && name.chars().all(|letter| is_letter(letter) || letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        io::{BufRead as _, BufReader, Write as _},
        os::unix::{fs::PermissionsExt as _, process::ExitStatusExt as _},
        path::{Path, PathBuf},
        process::{Child, Command, ExitStatus, Stdio},
    };

    /// The shells behind `/bin/sh` on most systems, if they exist here.
    const SHELLS: [&[&str]; 3] = [&["/bin/sh"], &["/bin/dash"], &["/bin/bash", "--posix"]];

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("muster-prolog-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn program(&self, name: &str, text: &str) -> String {
            let path = self.0.join(name);
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path.display().to_string()
        }

        fn read(&self, name: &str) -> String {
            fs::read_to_string(self.0.join(name)).unwrap_or_default()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn each_shell(check: impl Fn(&[&str])) {
        SHELLS.into_iter().filter(|shell| Path::new(shell[0]).exists()).for_each(check);
    }

    fn start(shell: &[&str], folder: &Folder, around: [&str; 2], odd: &[&str], command: &[&str]) -> Child {
        Command::new(shell[0])
            .args(&shell[1..])
            .args(["-c", &script(), "sh", around[0], around[1], &odd.len().to_string()])
            .args(odd)
            .args(command)
            .current_dir(&folder.0)
            .env_clear()
            .envs([("PATH", "/usr/bin:/bin"), ("KEPT", "a  b"), ("GONE", "1"), ("SLURM_TASK_PID", "0")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn run(shell: &[&str], folder: &Folder, around: [&str; 2], command: &[&str]) -> (ExitStatus, String, String) {
        let output = start(shell, folder, around, &[], command).wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status, text(output.stdout), text(output.stderr))
    }

    #[test]
    fn the_prolog_changes_the_variables_of_the_task_and_nothing_it_says_is_run() {
        let folder = Folder::new("variables");
        let prolog = folder.program(
            "prolog",
            r#"cat <<'END'
export NEW=with  blanks $(touch run) `touch run` \n
export   SPACED  =x=y
export KEPT=
export 9=no
export BAD-NAME=no
export NO
unset   GONE  
unset ;touch run
print   said $HOME $(touch run)
touch run
noise
END
echo "export CONTEXT=$SLURM_SCRIPT_CONTEXT.$KEPT"; echo lost >&2; printf 'print last'"#,
        );
        each_shell(|shell| {
            for epilog in ["", "/bin/true"] {
                let (status, out, err) = run(shell, &folder, [&prolog, epilog], &["env"]);
                assert!(status.success() && err.is_empty(), "{shell:?}: {err}");
                let mut lines: Vec<&str> = out.lines().collect();
                assert_eq!(lines[..2], ["said $HOME $(touch run)", "last"]);
                lines
                    .retain(|line| !["PWD=", "OLDPWD=", "SHLVL=", "_=", "PATH="].iter().any(|it| line.starts_with(it)));
                let mut variables = lines.split_off(2);
                variables.retain(|line| epilog.is_empty() || !line.starts_with("SLURM_TASK_PID="));
                variables.sort_unstable();
                let pid = epilog.is_empty().then_some("SLURM_TASK_PID=0");
                let new = "NEW=with  blanks $(touch run) `touch run` \\n";
                let expected = ["CONTEXT=prolog_task.a  b", "KEPT=", new].into_iter().chain(pid).chain(["SPACED=x=y"]);
                let mut expected: Vec<&str> = expected.collect();
                expected.sort_unstable();
                assert_eq!(variables, expected, "{shell:?}");
                assert!(!folder.0.join("run").exists(), "{shell:?}");
            }
        });
    }

    #[test]
    fn the_epilog_runs_after_the_task_which_ends_as_its_program_did() {
        let folder = Folder::new("epilog");
        let prolog = folder.program("prolog", "echo export NEW=1");
        let epilog = folder.program("epilog", r#"echo "$SLURM_SCRIPT_CONTEXT $NEW.$KEPT" > after; echo noise; exit 9"#);
        each_shell(|shell| {
            for (command, code, signal, said) in [
                ("exit 0", Some(0), None, ""),
                ("exit 3", Some(3), None, ""),
                ("exit 147", Some(147), None, ""),
                ("exit 255", Some(255), None, ""),
                ("echo out; echo err >&2; kill -9 $$", None, Some(9), "out\n"),
                ("kill -TERM $$", None, Some(15), ""),
                ("kill -ABRT $$", None, Some(6), ""),
                ("cat", Some(0), None, "read\n"),
            ] {
                let mut child = start(shell, &folder, [&prolog, &epilog], &[], &["sh", "-c", command]);
                // A process that does not read it has ended.
                let _ = child.stdin.take().unwrap().write_all(b"read\n");
                let output = child.wait_with_output().unwrap();
                assert_eq!((output.status.code(), output.status.signal()), (code, signal), "{shell:?} {command}");
                assert_eq!(String::from_utf8_lossy(&output.stdout), said, "{shell:?} {command}");
                let err = if said == "out\n" { "err\n" } else { "" };
                assert_eq!(String::from_utf8_lossy(&output.stderr), err, "{shell:?} {command}");
                assert_eq!(folder.read("after"), "epilog_task .a  b\n", "{shell:?} {command}");
                fs::remove_file(folder.0.join("after")).unwrap();
            }
        });
    }

    #[test]
    fn signals_are_for_the_task_and_the_epilog_runs_after_them() {
        let folder = Folder::new("signals");
        let epilog = folder.program("epilog", "echo over > after");
        each_shell(|shell| {
            let task = r#"trap 'echo heard' USR1; trap 'echo ends; exit 4' TERM
                echo "$SLURM_TASK_PID $$"; while :; do sleep 0.01; done"#;
            let mut child = start(shell, &folder, ["", &epilog], &[], &["sh", "-c", task]);
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let first = lines.next().unwrap().unwrap();
            let (told, own) = first.split_once(' ').unwrap();
            assert_eq!(told, own, "the task is told its own number");
            // A signal for a step reaches all of its processes.
            let signal = |signal: &str| {
                for pid in [&child.id().to_string(), own] {
                    assert!(Command::new("kill").args([signal, pid]).status().unwrap().success());
                }
            };
            for _ in 0..2 {
                signal("-USR1");
                assert_eq!(lines.next().unwrap().unwrap(), "heard", "{shell:?}");
            }
            signal("-TERM");
            assert_eq!(lines.next().unwrap().unwrap(), "ends", "{shell:?}");
            assert_eq!(child.wait().unwrap().code(), Some(4), "{shell:?}");
            assert_eq!(folder.read("after"), "over\n", "{shell:?}");
            fs::remove_file(folder.0.join("after")).unwrap();
        });
    }

    #[test]
    fn a_prolog_that_fails_keeps_the_task_from_running() {
        let folder = Folder::new("fails");
        let fails = folder.program("fails", "echo print before; exit 7");
        let epilog = folder.program("epilog", "echo over > after");
        fs::write(folder.0.join("text"), "").unwrap();
        each_shell(|shell| {
            let (status, out, err) = run(shell, &folder, [&fails, &epilog], &["echo", "never"]);
            assert_eq!((status.code(), out.as_str()), (Some(7), "before\n"), "{shell:?}");
            assert_eq!(err, "error: --task-prolog failed status=7\n", "{shell:?}");
            assert_eq!(folder.read("after"), "over\n");
            for (path, why) in [("nosuch", "No such file or directory"), ("text", "Permission denied")] {
                let (status, out, err) = run(shell, &folder, [path, ""], &["echo", "never"]);
                assert_eq!((status.code(), out.as_str()), (Some(1), ""), "{shell:?}");
                let can_not = format!("error: user task_prolog can not be executed (./{path}) {why}\n");
                assert_eq!(err, format!("{can_not}error: --task-prolog failed status=1\n"), "{shell:?}");
            }
            let (status, out, _) = run(shell, &folder, ["", "nosuch"], &["echo", "runs"]);
            assert_eq!((status.code(), out.as_str()), (Some(0), "runs\n"), "{shell:?}");
        });
    }

    #[test]
    fn a_missing_program_is_told_as_without_them_and_odd_variables_reach_the_task() {
        let folder = Folder::new("missing");
        fs::write(folder.0.join("text"), "").unwrap();
        each_shell(|shell| {
            for around in [["/bin/true", ""], ["", "/bin/true"]] {
                for (name, code, why) in [
                    ("nosuch", 2, "No such file or directory"),
                    ("./nosuch", 2, "No such file or directory"),
                    ("./text", 13, "Permission denied"),
                ] {
                    let (status, out, err) = run(shell, &folder, around, &[name, "x"]);
                    assert_eq!((status.code(), out.as_str()), (Some(code), ""), "{shell:?} {name}");
                    assert_eq!(err, format!("error: execve(): {name}: {why}\n"), "{shell:?}");
                }
                let odd = ["BASH_FUNC_f%%=() {  echo \"$1\"\n}", "a.b=c"];
                let child = start(shell, &folder, around, &odd, &["bash", "-c", "f 'x  y'; env | grep ^a.b"]);
                let output = child.wait_with_output().unwrap();
                assert_eq!(String::from_utf8_lossy(&output.stdout), "x  y\na.b=c\n", "{shell:?}");
                // Even a word that is also a shell command means a program.
                let (status, out, _) = run(shell, &folder, around, &["echo", "-e", "a\\tb"]);
                assert_eq!((status.code(), out.as_str()), (Some(0), "a\tb\n"), "{shell:?}");
            }
        });
    }

    #[test]
    fn names_that_shells_drop_are_known() {
        for (name, is_known) in [("A_1", true), ("_", true), ("1A", false), ("", false), ("BASH_FUNC_f%%", false)] {
            assert_eq!(is_passed_on(name), is_known, "{name}");
        }
        assert!(!script().contains("# ") && script().contains("muster_become"));
    }
}
