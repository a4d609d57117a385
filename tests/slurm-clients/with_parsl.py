"""Parsl: blocks of one and of two nodes, on which workers run functions of this program."""

import parsl
from parsl import python_app
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SingleNodeLauncher, SrunLauncher
from parsl.providers import SlurmProvider


def executor(label, launcher, nodes):
    provider = SlurmProvider(
        nodes_per_block=nodes,
        cores_per_node=2,
        exclusive=False,
        init_blocks=1,
        max_blocks=1,
        walltime="00:10:00",
        launcher=launcher,
    )
    return HighThroughputExecutor(
        label=label,
        address="127.0.0.1",
        loopback_address="127.0.0.1",
        max_workers_per_node=2,
        provider=provider,
        encrypted=False,
    )


@python_app(executors=["alone"])
def square(number):
    return number * number


@python_app(executors=["together"])
def node(_):
    import os
    import time

    time.sleep(0.2)
    return os.environ["SLURMD_NODENAME"]


config = Config(
    executors=[executor("alone", SingleNodeLauncher(), 1), executor("together", SrunLauncher(), 2)],
    run_dir="parsl",
    strategy_period=1,
)
with parsl.load(config):
    squares = [square(number) for number in range(20)]
    assert [future.result(timeout=120) for future in squares] == [number * number for number in range(20)]
    names = set()
    while len(names) < 2:
        names |= {future.result(timeout=120) for future in [node(number) for number in range(8)]}
print("done")
