"""PSI/J: jobs that succeed, fail, are cancelled, run on two nodes, and are found again by their number."""

from datetime import timedelta
from pathlib import Path

from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1
from psij.executors.batch.slurm import SlurmExecutorConfig

PATIENCE = timedelta(seconds=90)
folder = Path.cwd()
config = SlurmExecutorConfig(queue_polling_interval=1, initial_queue_polling_delay=0, work_directory=folder / "psij")
slurm = JobExecutor.get_instance("slurm", config=config)


def job(name, command, **settings):
    spec = JobSpec(name=name, executable="/bin/sh", arguments=["-c", command], directory=folder)
    spec.stdout_path = folder / f"{name}.txt"
    for key, value in settings.items():
        setattr(spec, key, value)
    job = Job(spec)
    slurm.submit(job)
    assert job.native_id in slurm.list(), f"{job.native_id} is not listed right after its submission"
    return job


def ends(job, state):
    status = job.wait(timeout=PATIENCE)
    assert status is not None, f"{job} has not ended: {job.status}"
    assert status.state == state, f"{job} is {status}, and should be {state}"
    return status


limits = JobAttributes(duration=timedelta(minutes=10))
hello = job("hello", "echo the sky is $COLOUR", attributes=limits, environment={"COLOUR": "blue"})
again = Job()
slurm.attach(again, hello.native_id)
bad = job("bad", "exit 7")
endless = job("endless", "sleep 1000")
shape = ResourceSpecV1(node_count=2, processes_per_node=2)
several = job("several", "echo $SLURM_PROCID $SLURM_NTASKS $SLURMD_NODENAME", resources=shape, launcher="srun")

ends(hello, JobState.COMPLETED)
ends(again, JobState.COMPLETED)
assert (folder / "hello.txt").read_text() == "the sky is blue\n"
failed = ends(bad, JobState.FAILED)
assert failed.exit_code == 7, failed
endless.wait(timeout=PATIENCE, target_states=[JobState.ACTIVE])
endless.cancel()
ends(endless, JobState.CANCELED)
ends(several, JobState.COMPLETED)
lines = [line.split() for line in (folder / "several.txt").read_text().splitlines()]
assert sorted(line[:2] for line in lines) == [[str(rank), "4"] for rank in range(4)], lines
assert len({node for _, _, node in lines}) == 2, lines
print("done")
