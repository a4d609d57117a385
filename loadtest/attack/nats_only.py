#!/usr/bin/env python3
"""Only the NATS server of a cluster is killed with SIGKILL: the roles stay and have to find each other again."""

import sys

import cluster

if __name__ == "__main__":
    sys.exit(cluster.attack_cluster(__doc__, "nats_only", 60, {"nats": 1}))
