"""A Redis Cluster of three primaries, each with a replica, and a Redis watched by sentinels.

All servers listen on loopback, keep their data in a directory of the test, and end with it.
"""

import os
import signal
import subprocess
from contextlib import closing

import redis
from fault_redis import ServerProcess, is_up
from processes import Process, free_port
from redis.crc import key_slot
from system_tools import redis_server
from world import wait_until

SLOTS = 16_384


class Node(ServerProcess):
    """A server on loopback TCP with a directory of its own."""

    def __init__(self, directory, port, *options, tls=None):
        directory.mkdir(exist_ok=True)
        self._tls = tls
        self.port, self.directory, self.options = port, directory, options
        self.program = redis_server(7)
        secured = {"ssl": True, "ssl_ca_certs": str(tls / "ca.pem")} if tls else {}
        self.client = redis.Redis(port=port, protocol=2, decode_responses=True, **secured)
        self.ask = self.client.execute_command
        self.launch()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def launch(self):
        self.begin(
            self.program, *self._listens(), "--bind", "127.0.0.1", "--dir", self.directory,
            "--save", "", "--appendonly", "yes", "--appendfsync", "no",
            "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
            "--enable-debug-command", "yes", *self.options,
        )  # fmt: skip
        return self

    def _listens(self):
        if self._tls is None:
            return ["--port", str(self.port)]
        return [
            "--port", "0", "--tls-port", str(self.port), "--tls-auth-clients", "no",
            "--tls-cluster", "yes", "--tls-replication", "yes",
            "--tls-cert-file", str(self._tls / "server.pem"),
            "--tls-key-file", str(self._tls / "server.key"),
            "--tls-ca-cert-file", str(self._tls / "ca.pem"),
            "--cluster-announce-hostname", "localhost",
            "--cluster-preferred-endpoint-type", "hostname",
        ]  # fmt: skip

    def wait_until_up(self):
        wait_until(lambda: is_up(self.client), why=f"{self.address} answers")

    def role(self):
        try:
            return self.ask("ROLE")[0]
        except redis.RedisError:
            return None

    def kill(self):
        super().kill()
        self.process = None
        self.client.connection_pool.disconnect()


def feed_on(place, prefix="clustered"):
    """Return a name of a feed whose slot is on a primary of any cluster, by its place."""
    begin, end = place * SLOTS // 3, (place + 1) * SLOTS // 3 - 1
    names = (f"{prefix}-{i}" for i in range(10_000))
    return next(name for name in names if begin <= key_slot(name.encode()) <= end)


class Cluster:
    """Three primaries, each with `replicas` replicas.

    A node counts as failed after `node_timeout` milliseconds of silence: by default longer than a
    busy machine may keep a node that works from answering.
    """

    def __init__(self, directory, *options, replicas=1, node_timeout=30_000, tls=None):
        ports = [free_port() for _ in range(3 * (1 + replicas))]
        self.nodes = [
            Node(directory / str(port), port, "--cluster-enabled", "yes",
                 "--cluster-port", str(free_port()), "--cluster-node-timeout", str(node_timeout),
                 "--cluster-replica-validity-factor", "0", *options, tls=tls)
            for port in ports
        ]  # fmt: skip
        for node in self.nodes:
            node.wait_until_up()
        self._form(replicas)

    def _form(self, replicas):
        """Make the cluster as `redis-cli --cluster create` does, which takes seconds longer."""
        first, *others = self.nodes
        for i, node in enumerate(self.nodes):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for i, node in enumerate(self.primaries):
            begin, end = i * SLOTS // 3, (i + 1) * SLOTS // 3 - 1
            node.ask("CLUSTER", "ADDSLOTSRANGE", begin, end)
        for node in others:
            bus = node.client.config_get("cluster-port")["cluster-port"]
            first.ask("CLUSTER", "MEET", "127.0.0.1", node.port, bus)
        count = len(self.nodes)
        wait_until(lambda: all(len(node_ids(node)) == count for node in self.nodes), why="they met")
        for i, node in enumerate(self.nodes[3:]):
            node.ask("CLUSTER", "REPLICATE", my_id(self.nodes[i % 3]))
        wait_until(lambda: all(map(self._is_ok, self.nodes)), why="the cluster is ok")
        for node in self.primaries:
            is_linked = lambda n=node: len(n.ask("ROLE")[2]) == replicas  # noqa: E731
            wait_until(is_linked, why="the replicas are linked")

    def _is_ok(self, node):
        ranges = node.ask("CLUSTER", "SLOTS")
        known = {one[1] for line in ranges for one in line[2:]}
        info = str(node.ask("CLUSTER", "INFO"))
        return "cluster_state:ok" in info and len(known) == len(self.nodes)

    @property
    def primaries(self):
        return self.nodes[:3]

    @property
    def url(self):
        return f"redis+cluster://{self.nodes[0].address},{self.nodes[-2].address}"

    def node_of(self, key):
        slot = key_slot(key.encode())
        for node in self.nodes:
            if node.process is None:
                continue
            for first, last, primary, *_ in node.ask("CLUSTER", "SLOTS"):
                if first <= slot <= last:
                    found = next(one for one in self.nodes if one.port == primary[1])
                    if found.role() == "master":
                        return found
        return None

    def replica_of(self, node):
        ports = {int(port) for _, port, _ in node.ask("ROLE")[2]}
        return next(one for one in self.nodes if one.port in ports)

    feed_on = staticmethod(feed_on)

    def keys_of(self, feed):
        """Return the keys of a feed, and the primary that holds each."""
        held = {}
        for node in self.nodes:
            if node.process is not None and node.role() == "master":
                for key in node.client.scan_iter(f"osvm:{{{feed}}}:*"):
                    held[key] = node
        return held

    def close(self):
        for node in self.nodes:
            node.kill()


def my_id(node):
    return node.ask("CLUSTER", "MYID")


def start_move(slot, source, target):
    """Begin to move a slot; its keys are moved by MIGRATE then."""
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", my_id(source))
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", my_id(target))


def finish_move(slot, source, target):
    """Give a slot without keys left on its source to the target."""
    identity = my_id(target)
    for node in (target, source):
        node.ask("CLUSTER", "SETSLOT", slot, "NODE", identity)


class Move:
    """The move of a feed's slot to the next primary, first the keys asked for, then the rest."""

    def __init__(self, cluster, feed):
        self._slot = key_slot(feed.encode())
        self.source = cluster.node_of(f"{{{feed}}}")
        self.target = next(node for node in cluster.primaries if node is not self.source)
        start_move(self._slot, self.source, self.target)

    def keys(self, part=""):
        """Move the keys with this text in their names."""
        source = self.source.ask
        for key in source("CLUSTER", "GETKEYSINSLOT", self._slot, 1000):
            if part in key:
                source("MIGRATE", "127.0.0.1", self.target.port, key, 0, 5000)
        return self

    def finish(self):
        self.keys()
        finish_move(self._slot, self.source, self.target)


def node_ids(node):
    """Return the ids of the nodes that a node knows and has a connection to."""
    found = node.ask("CLUSTER", "NODES")
    lines = found.values() if isinstance(found, dict) else found.splitlines()
    if isinstance(found, dict):
        return [one["node_id"] for one in lines if one["connected"]]
    return [line.split()[0] for line in lines if line.split()[7] == "connected"]


def running_cluster(*given, **options):
    return closing(Cluster(*given, **options))


class Watched:
    """A primary, replicas of it, and three sentinels that watch them under the name `main`.

    The primary counts as failed after `down_after` milliseconds of silence, as in a `Cluster`.
    """

    def __init__(self, directory, *options, replicas=1, down_after=30_000):
        self._down_after = down_after
        ports = [free_port() for _ in range(1 + replicas + 3)]
        first, rest = ports[0], ports[1 : 1 + replicas]
        self.nodes = [Node(directory / str(first), first, *options)]
        for port in rest:
            follows = ("--replicaof", f"127.0.0.1 {first}")
            self.nodes.append(Node(directory / str(port), port, *follows, *options))
        for node in self.nodes:
            node.wait_until_up()
        self.sentinels = [self._sentinel(directory, at, first) for at in ports[1 + replicas :]]
        for sentinel in self.sentinels:
            wait_until(lambda s=sentinel: self._knows_all(s), why="the sentinels know each other")

    def _sentinel(self, directory, port, first):
        place = directory / f"sentinel-{port}"
        place.mkdir()
        settings = place / "sentinel.conf"
        settings.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {place}\n"
            f"sentinel monitor main 127.0.0.1 {first} 2\n"
            f"sentinel down-after-milliseconds main {self._down_after}\n"
            "sentinel failover-timeout main 3000\n"
        )
        command = [redis_server(7), str(settings), "--sentinel"]
        process = Process(command, stdout=subprocess.DEVNULL)
        return redis.Redis(port=port, protocol=2, decode_responses=True), process

    def _knows_all(self, sentinel):
        try:
            found = sentinel[0].execute_command("SENTINEL", "MASTER", "main")
        except redis.RedisError:
            return False
        told = dict(zip(found[::2], found[1::2], strict=True))
        replicas = len(self.nodes) - 1
        return (told["num-other-sentinels"], told["num-slaves"]) == ("2", str(replicas))

    @property
    def url(self):
        ports = [client.connection_pool.connection_kwargs["port"] for client, _ in self.sentinels]
        return f"redis+sentinel://{','.join(f'127.0.0.1:{port}' for port in ports)}/main"

    def primary(self):
        return next((node for node in self.nodes if node.process and node.role() == "master"), None)

    def close(self):
        for client, process in self.sentinels:
            process.kill()
            process.wait()
            client.connection_pool.disconnect()
        for node in self.nodes:
            node.kill()


def running_watched(*given, **options):
    return closing(Watched(*given, **options))


def cut_off(primary, replica):
    """Let a replica learn nothing more of its primary, until it is `let_go`."""
    os.kill(replica.process.pid, signal.SIGSTOP)
    # What is on the way to it is dropped; and it cannot connect again.
    primary.ask("CLIENT", "KILL", "TYPE", "replica")


def let_go(node):
    os.kill(node.process.pid, signal.SIGCONT)
