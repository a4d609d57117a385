"""A cluster of processes on a real NATS server, with a relay of our own between each role and the server.

A relay can hold back what one side sends and let the other's through, or end its connections: cuts that no firewall is
needed for.
"""

import os
import random
import re
import selectors
import shutil
import signal
import socket
import subprocess
import threading
import time

import attack

CONTROL = attack.REPOSITORY / "ops/local-cluster"
NODES = 4


class Relay(threading.Thread):
    """Passes bytes between a role and the NATS server. `held` names the side whose bytes wait: "role", "nats" or none."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.target, self.held, self.ending = port, None, False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.pairs = {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)

    def run(self):
        while True:
            for ready, _ in self.selector.select(0.05):
                self.serve(ready.fileobj)
            if self.ending:
                self.ending = False
                self.end_all()

    def serve(self, connection):
        if connection is self.listener:
            self.accept()
        elif connection in self.pairs:
            self.pass_on(connection)

    def accept(self):
        near, _ = self.listener.accept()
        try:
            far = socket.create_connection(("127.0.0.1", self.target), timeout=5)
        except OSError:
            near.close()
            return
        for one, other, side in ((near, far, "role"), (far, near, "nats")):
            one.settimeout(5)
            self.pairs[one] = (other, side)
            self.selector.register(one, selectors.EVENT_READ)

    def pass_on(self, connection):
        other, side = self.pairs[connection]
        if self.held == side:
            time.sleep(0.005)
            return
        try:
            data = connection.recv(1 << 16)
            if data:
                other.sendall(data)
                return
        except OSError:
            pass
        self.end(connection)

    def end(self, connection):
        for one in (connection, self.pairs[connection][0]):
            self.selector.unregister(one)
            del self.pairs[one]
            one.close()

    def end_all(self):
        while self.pairs:
            self.end(next(iter(self.pairs)))


class Cluster:
    """Starts, kills, pauses and cuts off the roles of a cluster."""

    def __init__(self, options, folder):
        self.folder = folder
        self.system = attack.System(options.binary, folder / "data")
        self.port = free_port()
        nats = shutil.which("nats-server") or str(options.nats_server)
        programs = {"MUSTER_BINARY": str(options.binary), "MUSTER_NATS_SERVER": nats, "MUSTER_NATS_PORT": str(self.port)}
        self.environment = os.environ | programs
        self.relays = {}

    def control(self, verb, *words):
        """Runs ops/local-cluster; its output goes to a file, because what it starts would keep a pipe open."""
        with open(self.folder / "control.out", "a+") as out:
            command = [CONTROL, verb, self.folder, *words]
            return subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out).returncode

    def start(self):
        """The first start writes the configuration; the second one takes the roles through their relays."""
        self.must("start", str(NODES), "8")
        self.must("stop")
        self.put_relays_between()
        self.must("start")

    def must(self, *words):
        if self.control(*words):
            raise RuntimeError(f"local-cluster {words}: {(self.folder / 'control.out').read_text()[-500:]}")

    def put_relays_between(self):
        for file in sorted((self.folder / "etc").glob("*.toml")):
            relay = self.relays[file.stem] = Relay(self.port)
            relay.start()
            file.write_text(re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{relay.port}", file.read_text()))

    def roles(self):
        return sorted(self.relays)

    def pid(self, role):
        return int((self.folder / "run" / f"{role}.pid").read_text())

    def signal(self, role, number):
        try:
            os.kill(self.pid(role), number)
        except ProcessLookupError:
            pass

    def kill(self, *roles):
        """All of them at once, as far as there is such a thing, and then waits until they are gone."""
        for role in roles:
            self.signal(role, signal.SIGKILL)
        for role in roles:
            attack.until(lambda role=role: is_gone(self.pid(role)), f"{role} is gone")

    def restart(self, *roles):
        for role in roles:
            self.must("restart", role)

    def delete_bus_store(self):
        shutil.rmtree(self.folder / "nats", ignore_errors=True)
        (self.folder / "nats").mkdir(mode=0o700)

    def wait_until_ready(self):
        """Restarts what ended by itself, and tells of it: no role should."""
        ended = []
        end = time.monotonic() + 120
        while self.system.nodes_up() < NODES:
            for role in ["nats", *self.roles()]:
                if is_gone(self.pid(role)):
                    ended.append(role)
                    self.restart(role)
            if time.monotonic() > end:
                raise TimeoutError(f"not ready: {self.system.run('nodes')}")
            time.sleep(0.2)
        return ended


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


# ----------------------------------------------------------------------------------------------------------------- blows


class Blows:
    """What can be done to a cluster. Each returns how many processes it killed."""

    def __init__(self, cluster, seed):
        self.cluster, self.choices = cluster, random.Random(seed)

    def gap(self, longest=0.4):
        time.sleep(self.choices.uniform(0, longest))

    def one(self):
        return self.kill_and_restart([self.choices.choice(self.cluster.roles())])

    def two(self):
        return self.kill_and_restart(self.choices.sample(self.cluster.roles() + ["nats"], 2))

    def all(self):
        return self.kill_and_restart(["nats", *self.cluster.roles()])

    def kill_and_restart(self, roles):
        self.cluster.kill(*roles)
        self.gap()
        self.cluster.restart(*roles)
        return len(roles)

    def nats(self):
        return self.kill_and_restart(["nats"])

    def nats_store_deleted(self):
        self.cluster.kill("nats")
        self.cluster.delete_bus_store()
        self.gap()
        self.cluster.restart("nats")
        return 1

    def pause(self):
        """A role, or the NATS server, stands still for a while, well below `node_lost_after_seconds`."""
        role = self.choices.choice(["nats", *self.cluster.roles()])
        self.cluster.signal(role, signal.SIGSTOP)
        time.sleep(self.choices.uniform(0.3, 6))
        self.cluster.signal(role, signal.SIGCONT)
        return 0

    def cut(self):
        """One direction of a role's connection is held back; then it goes on, or the connection is ended."""
        relay = self.cluster.relays[self.choices.choice(self.cluster.roles())]
        relay.held = self.choices.choice(["role", "nats"])
        time.sleep(self.choices.uniform(0.3, 6))
        relay.ending = self.choices.random() < 0.5
        self.gap(0.1)
        relay.held = None
        return 0

    def reconnect(self):
        """All of a role's connections end, and come back at once."""
        self.cluster.relays[self.choices.choice(self.cluster.roles())].ending = True
        return 0


def attack_cluster(description, title, rounds, weights):
    """Strikes a cluster under load as often as asked, by blows of these weights, and tells what came of it."""
    options = attack.arguments(description, rounds)
    folder = attack.new_folder(options.folder)
    cluster, faults = Cluster(options, folder), []
    cluster.start()
    blows, counts, kills = Blows(cluster, options.seed), attack.Counter(), 0
    load = attack.Load(cluster.system, folder / "marks", options.seed, options.clients, options.batch_clients)
    load.start()
    for number in range(1, options.rounds + 1):
        time.sleep(blows.choices.uniform(0.1, 0.8))
        sort = blows.choices.choices(list(weights), list(weights.values()))[0]
        counts[sort] += 1
        kills += getattr(blows, sort)()
        if number % 5 == 0:
            faults += [f"{role} ended by itself after blow {number} ({sort})" for role in cluster.wait_until_ready()]
        if number % 10 == 0:
            print(f"{number} blows, {kills} kills, {load.requests} requests acknowledged", flush=True)
    faults += [f"{role} ended by itself" for role in cluster.wait_until_ready()]
    load.stop()
    story = attack.wait_until_finished(load, cluster.system)
    found, tasks = attack.compare(load, story)
    faults += found
    attack.check_usage(cluster.system, story, faults)
    attack.check_history(cluster.system, folder, faults)
    if cluster.control("stop"):
        faults.append("the clean stop failed")
    attack.check_nothing_left(folder, faults)
    attack.check_logs(folder, faults)
    print(f"{kills} processes killed")
    return attack.report(title, counts, load, story, tasks, faults)
