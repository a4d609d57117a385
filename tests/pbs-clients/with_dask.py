"""dask-jobqueue: workers that are jobs of PBS, more of them, fewer of them, and none at the end."""

import subprocess
import time

from dask.distributed import Client
from dask_jobqueue import PBSCluster


def jobs():
    lines = subprocess.run(["qselect"], check=True, capture_output=True, text=True)
    return lines.stdout.splitlines()


def square(number):
    return number * number


if __name__ == "__main__":
    cluster = PBSCluster(cores=1, processes=1, memory="512MiB", walltime="00:10:00", log_directory="dask-logs")
    with cluster, Client(cluster) as client:
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=90)
        assert len(jobs()) == 2, jobs()
        assert sum(client.gather(client.map(square, range(100)))) == 328350
        cluster.scale(jobs=1)
        deadline = time.monotonic() + 90
        while len(jobs()) > 1:
            assert time.monotonic() < deadline, jobs()
            time.sleep(0.1)
    print("done")
