"""PSI/J with its two kinds of PBS: jobs that succeed, fail, are cancelled, and run on two nodes."""

import getpass
import subprocess
from datetime import timedelta
from pathlib import Path

from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1
from psij.executors.batch.pbs_base import PBSExecutorConfig

PATIENCE = timedelta(seconds=90)
folder = Path.cwd()


def check(kind):
    work = folder / kind
    config = PBSExecutorConfig(queue_polling_interval=1, initial_queue_polling_delay=0, work_directory=work)
    pbs = JobExecutor.get_instance(kind, config=config)

    def job(name, command, **settings):
        spec = JobSpec(name=name, executable="/bin/sh", arguments=["-c", command], directory=folder)
        spec.stdout_path = folder / f"{kind}-{name}.txt"
        for key, value in settings.items():
            setattr(spec, key, value)
        job = Job(spec)
        pbs.submit(job)
        return job

    def ends(job, state):
        status = job.wait(timeout=PATIENCE)
        assert status is not None, f"{kind}: {job} has not ended: {job.status}"
        assert status.state == state, f"{kind}: {job} is {status}, and should be {state}"
        return status

    limits = JobAttributes(duration=timedelta(minutes=10))
    hello = job("hello", "echo the sky is $COLOUR", attributes=limits, environment={"COLOUR": "blue"})
    bad = job("bad", "exit 7")
    endless = job("endless", "sleep 1000")
    shape = ResourceSpecV1(node_count=2, processes_per_node=1)
    several = job("several", "sort -u $PBS_NODEFILE", resources=shape)

    ends(hello, JobState.COMPLETED)
    assert (folder / f"{kind}-hello.txt").read_text() == "the sky is blue\n"
    ends(bad, JobState.FAILED)
    endless.wait(timeout=PATIENCE, target_states=[JobState.ACTIVE])
    listed = subprocess.run(["qstat", "-u", getpass.getuser()], check=True, capture_output=True, text=True).stdout
    assert endless.native_id.split(".")[0] in listed, listed
    endless.cancel()
    ends(endless, JobState.CANCELED)
    ends(several, JobState.COMPLETED)


check("pbs")
check("pbs_classic")
print("done")
