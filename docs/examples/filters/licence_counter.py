#!/usr/bin/env python3
"""Activation filter with rollback: at most as many jobs run with a licence as there are licences.

    licence_counter.py activation filter|revert JOBXML PASS INDEX BACKFILL COUNT

A job asks for a licence by an extended term `licence`. Taken licences are files in the folder `licences` beside this
program, one for each job; the folder belongs to the filter account and has a file `count` with the number there are.
A call that is delivered twice, or for growth, finds the job's file and takes nothing. A revert has the pass and epoch of
the call that it takes back, and gives back what that call took. A node release task removes the files of ended jobs.
"""

import fcntl
import os
import sys
import xml.etree.ElementTree as xml

FOLDER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "licences")
PASS, WAIT, WRONG_USAGE = 0, 2, 64


def wants_licence(job_xml):
    names = xml.parse(job_xml).iterfind(".//{*}ExtendedTerms/{*}Term/{*}Name")
    return any((name.text or "").strip().lower() == "licence" for name in names)


def take(job_file, key):
    if os.path.exists(job_file):
        return PASS
    available = int(open(os.path.join(FOLDER, "count")).read())
    if sum(name.startswith("job-") for name in os.listdir(FOLDER)) >= available:
        with open(os.environ["MUSTER_RESULT_FILE"], "w") as result:
            result.write(f"message=all {available} licences are taken\n")
        return WAIT
    with open(job_file, "x") as file:
        file.write(f"{key}\n{os.environ['MUSTER_INVOCATION_ID']}\n")
    return PASS


def give_back(job_file, key):
    if os.path.exists(job_file) and open(job_file).readline().strip() == key:
        os.remove(job_file)
    return PASS


def main(arguments):
    if len(arguments) != 7 or arguments[0] != "activation" or arguments[1] not in ("filter", "revert"):
        print("usage: licence_counter.py activation filter|revert JOBXML PASS INDEX BACKFILL COUNT", file=sys.stderr)
        return WRONG_USAGE
    if not wants_licence(arguments[2]):
        return PASS
    with open(os.path.join(FOLDER, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        job_file = os.path.join(FOLDER, "job-" + os.environ["MUSTER_JOB_ID"])
        key = f"{os.environ['MUSTER_PLANNER_EPOCH']}.{arguments[3]}"
        return take(job_file, key) if arguments[1] == "filter" else give_back(job_file, key)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
