"""An external planner for muster: the shortest job first, on the first nodes that have room."""
import json
import sys


def length(job):
    walltimes = [alternative["walltime_seconds"] for part in job["components"] for alternative in part["alternatives"]]
    return max(float("inf") if seconds is None else seconds for seconds in walltimes)


def place(job, nodes):
    """What a plain job gets of which nodes, or None if there is no room for it now."""
    least = job["components"][0]["alternatives"][0]["least"]
    tasks, shares = least["tasks"], []
    cores, memory = -(-least["cores"] // tasks), -(-least["memory_bytes"] // tasks)
    for node in nodes:
        room = node["free_cores"] // cores if node["available"] and not node["exclusive"] else 0
        if memory:
            room = min(room, node["free_memory_bytes"] // memory)
        # The nodes still wanted get at least a task each.
        here = min(room, tasks - max(0, least["nodes"] - len(shares) - 1))
        if here > 0:
            amounts = {"cores": here * cores, "memory_bytes": here * memory, "tasks": here}
            shares.append((node, {"name": node["name"], **amounts}))
            tasks -= here
    if tasks > 0 or len(shares) < least["nodes"]:
        return None
    for node, share in shares:
        node["free_cores"] -= share["cores"]
        node["free_memory_bytes"] -= share["memory_bytes"]
    return [share for _, share in shares]


def plan(cycle):
    starts, reasons = [], []
    for job in sorted(cycle["waiting"], key=length):
        alternative = job["components"][0]["alternatives"][0]
        if job["tasks"] or len(job["components"]) > 1 or alternative["exclusive"] or alternative["least"]["gpus"]:
            reasons.append({"job": job["job"], "text": "only plain jobs are planned here"})
        elif shares := place(job, cycle["nodes"]):
            starts.append({"job": job["job"], "components": [{"nodes": shares}]})
        else:
            reasons.append({"job": job["job"], "text": "no room on the nodes for it now"})
    return {"type": "plan", "seen": cycle["seen"], "starts": starts, "reasons": reasons}


for line in sys.stdin:
    message = json.loads(line)
    answer = plan(message) if message["type"] == "cycle" else {"type": "hello", "protocol": 1}
    print(json.dumps(answer), flush=True)
