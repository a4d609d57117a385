#!/usr/bin/env python3
"""Each role in a process of its own on a real NATS server: one, two or all are killed with SIGKILL, NATS also with its
store deleted; roles are paused, cut off in one direction, and made to connect anew. With `--ledgers 3` there are three ledgers and
three NATS servers, ledgers are killed more often, and others are asked to lead."""

import sys

import cluster

WEIGHTS = {"one": 8, "two": 4, "all": 1, "nats": 2, "nats_store_deleted": 2, "pause": 2, "cut": 3, "reconnect": 4}

if __name__ == "__main__":
    sys.exit(cluster.attack_cluster(__doc__, "crash_cluster", 100, WEIGHTS))
