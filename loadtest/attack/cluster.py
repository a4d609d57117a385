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
import forge

CONTROL = attack.REPOSITORY / "ops/local-cluster"
NODES = 4
# Blows for several ledgers, besides those of one.
AT_LEDGERS = {"ledger": 6, "hand_over": 3}


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


class Relays:
    """The relays of one role, one to each server; what is done is done to all of them."""

    def __init__(self, ports):
        self.all = {port: Relay(port) for port in ports}
        for relay in self.all.values():
            relay.start()

    def instead_of(self, port):
        return f"127.0.0.1:{self.all[port].port}" if port in self.all else f"127.0.0.1:{port}"

    def hold(self, side):
        for relay in self.all.values():
            relay.held = side

    def end_all(self):
        for relay in self.all.values():
            relay.ending = True


class Cluster:
    """Starts, kills, pauses and cuts off the roles of a cluster."""

    def __init__(self, options, folder):
        self.folder = folder
        self.system = attack.System(options.binary, folder / "data")
        self.ledgers = options.ledgers
        self.port = free_ports(self.ledgers)
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
        several = ["--ledgers", str(self.ledgers), "--nats", str(self.ledgers)] if self.ledgers > 1 else []
        self.must("start", *several, str(NODES), "8")
        self.must("stop")
        self.put_relays_between()
        self.must("start")

    def must(self, *words):
        if self.control(*words):
            raise RuntimeError(f"local-cluster {words}: {(self.folder / 'control.out').read_text()[-500:]}")

    def put_relays_between(self):
        for file in sorted((self.folder / "etc").glob("*.toml")):
            between = self.relays[file.stem] = Relays(self.port + number for number in range(self.ledgers))
            file.write_text(re.sub(r"127\.0\.0\.1:(\d+)", lambda at: between.instead_of(int(at[1])), file.read_text()))

    def roles(self):
        return sorted(self.relays)

    def servers(self):
        return ["nats"] if self.ledgers == 1 else [f"nats{number + 1}" for number in range(self.ledgers)]

    def histories(self):
        """The folders with a log of their own."""
        return [self.folder / f"ledger{number + 1}" for number in range(self.ledgers)] if self.ledgers > 1 else []

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

    def delete_bus_store(self, server):
        store = self.folder / "nats" / server.removeprefix("nats")
        shutil.rmtree(store, ignore_errors=True)
        store.mkdir(mode=0o700)

    def wait_until_ready(self):
        """Restarts what ended by itself, and tells of it: no role should."""
        ended = []
        end = time.monotonic() + 120
        while self.system.nodes_up() < NODES:
            for role in [*self.servers(), *self.roles()]:
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


def free_ports(servers):
    """A port that is free, and with several servers those that ops/local-cluster takes besides."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            first = listener.getsockname()[1]
        more = [first + offset + number for offset in (0, 100, 200) for number in range(servers)] if servers > 1 else []
        if all(is_free(port) for port in more):
            return first


def is_free(port):
    try:
        socket.create_server(("127.0.0.1", port)).close()
        return True
    except (OSError, OverflowError):
        return False


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
        return self.kill_and_restart(self.choices.sample(self.cluster.roles() + self.cluster.servers(), 2))

    def all(self):
        return self.kill_and_restart([*self.cluster.servers(), *self.cluster.roles()])

    def kill_and_restart(self, roles):
        self.cluster.kill(*roles)
        self.gap()
        self.cluster.restart(*roles)
        return len(roles)

    def nats(self):
        return self.kill_and_restart([self.choices.choice(self.cluster.servers())])

    def nats_store_deleted(self):
        """Of several servers one loses its store; the others have what was in it."""
        server = self.choices.choice(self.cluster.servers())
        self.cluster.kill(server)
        self.cluster.delete_bus_store(server)
        self.gap()
        self.cluster.restart(server)
        return 1

    def ledger(self):
        """One of the ledgers, which may be the one that leads."""
        return self.kill_and_restart([self.choices.choice([role for role in self.cluster.roles() if role.startswith("ledger")])])

    def hand_over(self):
        """Another ledger is asked to lead, and the one that led may be killed while it does so."""
        self.cluster.system.run("ledgers", "hand-over", seconds=60)
        return self.ledger() if self.choices.random() < 0.5 else 0

    def pause(self):
        """A role, or the NATS server, stands still for a while, well below `node_lost_after_seconds`."""
        role = self.choices.choice([*self.cluster.servers(), *self.cluster.roles()])
        self.cluster.signal(role, signal.SIGSTOP)
        time.sleep(self.choices.uniform(0.3, 6))
        self.cluster.signal(role, signal.SIGCONT)
        return 0

    def cut(self):
        """One direction of a role's connection is held back; then it goes on, or the connection is ended."""
        relay = self.cluster.relays[self.choices.choice(self.cluster.roles())]
        relay.hold(self.choices.choice(["role", "nats"]))
        time.sleep(self.choices.uniform(0.3, 6))
        if self.choices.random() < 0.5:
            relay.end_all()
        self.gap(0.1)
        relay.hold(None)
        return 0

    def reconnect(self):
        """All of a role's connections end, and come back at once."""
        self.cluster.relays[self.choices.choice(self.cluster.roles())].end_all()
        return 0


def check_histories(cluster, faults):
    """Each of several ledgers has a history that verifies, and all have the same."""
    ends = {}
    for data in cluster.histories():
        answer = attack.System(cluster.system.binary, data).run("audit", "verify", "--offline")
        print(f"  {data.name}: status {answer.returncode}: {(answer.stdout + answer.stderr).strip()[:200]}", flush=True)
        bundle = cluster.folder / f"{data.name}.bundle"
        exported = attack.System(cluster.system.binary, data).run("audit", "export", str(bundle))
        if answer.returncode or exported.returncode:
            faults.append(f"{data.name}: {(answer.stdout + answer.stderr + exported.stderr)[-400:]}")
            continue
        ends[data.name] = records_of(bundle)
    shortest = min((len(records) for records in ends.values()), default=0)
    if len({tuple(records[:shortest]) for records in ends.values()}) > 1:
        faults.append(f"the ledgers' histories differ: {({name: len(records) for name, records in ends.items()})}")


def records_of(bundle):
    """The hash of each record."""
    return forge.History(bundle).hashes


def attack_cluster(description, title, rounds, weights):
    """Strikes a cluster under load as often as asked, by blows of these weights, and tells what came of it."""
    options = attack.arguments(description, rounds)
    weights = weights | AT_LEDGERS if options.ledgers > 1 else weights
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
    attack.check_history(cluster.system, folder, faults, next(iter(cluster.histories()), None))
    if cluster.control("stop"):
        faults.append("the clean stop failed")
    check_histories(cluster, faults)
    attack.check_nothing_left(folder, faults)
    attack.check_logs(folder, faults)
    print(f"{kills} processes killed")
    return attack.report(title, counts, load, story, tasks, faults)
