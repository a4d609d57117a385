//! Options that a site adds to Slurm's commands.

use crate::slurm::Site;
use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

/// Refuses components that want much scratch space.
const JUDGE: &str = r#"#!/bin/sh
if grep -q '"SiteOption.scratch": *"99G"' job.json; then
  echo "message=too much scratch space" >"$MUSTER_RESULT_FILE"
  exit 3
fi
exit 0
"#;

/// SL-S-22: a site's options are taken on command lines and in scripts, each for its component, shown in the help, told to the
/// submission filter and seen by tasks.
#[test]
fn options_of_a_site_reach_tasks_and_filters() {
    let site = Site::with(
        "[slurm]\nsite_options = [\"scratch=SIZE scratch space that tasks may use\", \"debug-tools load them\"]\n\
         [filter_runner]\naccount = \"nobody\"\n",
    );
    assert!(site.ok("sbatch --help").contains("--scratch=SIZE "), "{}", site.ok("sbatch --help"));
    let script = "#!/bin/sh\n#SBATCH --scratch=1G -o out\n#SBATCH hetjob\n#SBATCH --scratch=2G --debug-tools\n\
                  echo batch $SITE_OPTION_SCRATCH $SITE_OPTION_SCRATCH_HET_GROUP_1\n\
                  srun --het-group=0 sh -c 'echo first $SITE_OPTION_SCRATCH [$SITE_OPTION_DEBUG_TOOLS]'\n\
                  srun --het-group=1 sh -c 'echo second $SITE_OPTION_SCRATCH [$SITE_OPTION_DEBUG_TOOLS]'\n\
                  srun --scratch=3G --het-group=1 sh -c 'echo own $SITE_OPTION_SCRATCH'\n";
    site.system.write("job.sh", script);
    site.ok("sbatch --wait job.sh");
    assert_eq!(site.system.read("out"), "batch 1G 2G\nfirst 1G []\nsecond 2G [1]\nown 3G\n");
    let alone = "sh -c 'echo $SITE_OPTION_SCRATCH'";
    assert_eq!(site.ok(&format!("srun --scratch=5G {alone} : --scratch=6G {alone} | sort")), "5G\n6G\n");
    assert_eq!(site.ok(&format!("salloc -Q --scratch=7G {alone}")), "7G\n");
    assert_eq!(site.ok(&format!("salloc -Q --scratch=7G srun {alone}")), "7G\n");
    // That of the outer job is not the inner one's.
    assert_eq!(site.ok(&format!("salloc -Q --scratch=7G salloc -Q {alone}")), "\n");
    let (status, error) = site.fails("sbatch --scrotch=1 --wrap true");
    assert_eq!((status, error.lines().next()), (255, Some("sbatch: unrecognized option '--scrotch'")));
    site.system.write("judge", JUDGE);
    for file in ["", "judge"] {
        std::fs::set_permissions(site.system.path(file), Permissions::from_mode(0o755)).expect("it is there");
    }
    let judge = site.system.path("judge").display().to_string();
    site.system.ok(&["cluscfg", "setparams", &format!("SubmissionFilterProgram={judge}")]);
    let (status, error) = site.fails("sbatch --scratch=1G : --scratch=99G --wrap true");
    assert!(status == 1 && error.starts_with("sbatch: error: 1: too much scratch space"), "{status}: {error}");
    site.ok("sbatch --scratch=1G : --scratch=2G --wrap true");
}
