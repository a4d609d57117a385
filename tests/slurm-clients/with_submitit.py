"""submitit: functions of this program as jobs, as tasks of one job and as an array; one that
fails, one that is cancelled."""

import submitit


def add(first, second):
    return first + second


def rank():
    environment = submitit.JobEnvironment()
    return environment.global_rank, environment.num_tasks, environment.num_nodes


def fail():
    raise ValueError("on purpose")


def executor(**parameters):
    executor = submitit.AutoExecutor(folder="submitit", cluster="slurm")
    executor.update_parameters(timeout_min=10, mem_gb=0.25, cpus_per_task=1, **parameters)
    return executor


def state(job):
    return job.watcher.get_state(job.job_id, mode="force")


single = executor().submit(add, 5, 7)
assert state(single) in ("PENDING", "RUNNING", "COMPLETED"), f"{single.job_id} is {state(single)} after its submission"
tasks = executor(nodes=2, tasks_per_node=2).submit(rank)
array = executor(slurm_array_parallelism=2).map_array(add, range(4), range(4))
bad = executor().submit(fail)
held = executor(slurm_additional_parameters={"hold": True}).submit(add, 1, 2)

assert single.result() == 12
assert sorted(tasks.results()) == [(rank, 4, 2) for rank in range(4)]
assert [job.result() for job in array] == [0, 2, 4, 6]
assert "on purpose" in str(bad.exception())
assert state(held) == "PENDING", state(held)
held.cancel(check=True)
assert state(held).startswith("CANCELLED"), state(held)
print("done")
