"""dask-jobqueue: workers that are jobs of OAR, more of them, fewer of them, and none at the end."""

import json
import subprocess
import time

from dask.distributed import Client
from dask_jobqueue import OARCluster


def jobs():
    text = subprocess.run(["oarstat", "-J"], check=True, capture_output=True, text=True).stdout
    return [job for job in json.loads(text).values() if job["state"] == "Running"]


def square(number):
    return number * number


if __name__ == "__main__":
    cluster = OARCluster(
        cores=1,
        processes=1,
        memory="512MiB",
        walltime="00:10:00",
        queue="default",
        project="bio",
        log_directory="dask-logs",
        memory_per_core_property_name="not_applicable",
    )
    with cluster, Client(cluster) as client:
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=90)
        assert {job["name"] for job in jobs()} == {"dask-worker"}, jobs()
        assert len(jobs()) == 2, jobs()
        assert sum(client.gather(client.map(square, range(100)))) == 328350
        cluster.scale(jobs=1)
        deadline = time.monotonic() + 90
        while len(jobs()) > 1:
            assert time.monotonic() < deadline, jobs()
            time.sleep(0.1)
    print("done")
