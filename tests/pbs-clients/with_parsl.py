"""Parsl with its two kinds of PBS: a block of one node each, on which workers run functions of this program."""

import os

import parsl
from parsl import python_app
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SimpleLauncher
from parsl.providers import PBSProProvider, TorqueProvider

# PBS gives jobs the environment of a login, so sites of Parsl say where its programs are.
block = dict(
    nodes_per_block=1,
    init_blocks=1,
    max_blocks=1,
    walltime="00:10:00",
    launcher=SimpleLauncher(),
    worker_init=f"export PATH={os.environ['PATH']}",
)


def executor(label, provider):
    return HighThroughputExecutor(
        label=label,
        address="127.0.0.1",
        loopback_address="127.0.0.1",
        max_workers_per_node=2,
        provider=provider,
        encrypted=False,
    )


@python_app(executors=["pro"])
def square(number):
    return number * number


@python_app(executors=["torque"])
def job_id(_):
    import os

    return os.environ["PBS_JOBID"]


config = Config(
    executors=[
        executor("pro", PBSProProvider(cpus_per_node=2, **block)),
        executor("torque", TorqueProvider(queue="workq", **block)),
    ],
    run_dir="parsl",
    strategy_period=1,
)
with parsl.load(config):
    squares = [square(number) for number in range(20)]
    assert [future.result(timeout=120) for future in squares] == [number * number for number in range(20)]
    names = {future.result(timeout=120) for future in [job_id(number) for number in range(4)]}
    assert len(names) == 1 and names.pop().endswith(".alpha"), names
print("done")
