"""Submits a job and follows it to its end with a client that was generated from the gateway's own document."""

import json
import pathlib
import sys
import time

import muster_client
from muster_client.api.jobs import cancel, list_jobs, show, submit_jobs
from muster_client.models import CommandAnswer, ErrorBody, JobDetail, JobsRequest, SubmitRequest

server, token, example = sys.argv[1:]


def spec(name, script):
    """The example of the document with another script."""
    request = json.loads(pathlib.Path(example).read_text())
    job = request["jobs"][0]
    job.update(name=name, working_directory="/")
    component = job["components"][0]
    component["launch"]["program"]["script"]["text"] = script
    component["launch"]["stdout"] = "/dev/null"
    return SubmitRequest.from_dict(request)


client = muster_client.AuthenticatedClient(base_url=server, token=token)

answer = submit_jobs.sync(client=client, body=spec("generated", "#!/bin/sh\nexit 3\n"))
assert isinstance(answer, CommandAnswer), answer
[job] = answer.jobs

deadline = time.monotonic() + 60
while True:
    detail = show.sync(job, client=client)
    assert isinstance(detail, JobDetail), detail
    if detail.job.outcome:
        break
    assert time.monotonic() < deadline, detail
    time.sleep(0.05)
assert detail.job.name == "generated"
assert detail.job.outcome.exit_status.to_dict() == {"code": 3}, detail.job.outcome

listed = list_jobs.sync(client=client, id=job)
assert [view.id for view in listed.jobs] == [job], listed

# What is refused is told by its code.
refused = cancel.sync(client=client, body=JobsRequest.from_dict({"jobs": {"ids": ["999999"]}}))
assert isinstance(refused, ErrorBody) and refused.code.value == "not_found", refused
unknown = show.sync(job, client=muster_client.AuthenticatedClient(base_url=server, token="x" * 16))
assert isinstance(unknown, ErrorBody) and unknown.code.value == "unauthenticated", unknown
print("done")
