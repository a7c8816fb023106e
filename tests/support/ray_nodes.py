"""A cluster of Ray on this machine, for tests: nodes that are added, removed and restarted.

It runs in a process of its own: `python ray_nodes.py CPUS,CPUS,... [REDIS]` begins a head that
takes no actors and a node for each number (one number alone: a head that takes actors), prints a
line of JSON, and then follows commands, one a line. With a Redis the head can be restarted. When
its input ends, everything that it began ends.

Ray binds to loopback if a node's address is 127.0.0.1. A client would look for an outer address of
the machine in its place; the variable is Ray's own switch for systems where that is unwanted.
"""

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from tempfile import mkdtemp

from processes import LIMIT, Process

LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
# A client of Ray in the process of a test may have set it; this script imports from its own folder.
OWN_FOLDER = {"PYTHONSAFEPATH": ""}
STORE = 80_000_000
"""Bytes of the object store of a node: about the least that Ray takes."""


class Nodes:
    """The cluster, from outside its process."""

    def __init__(self, process, notes):
        self._process, self._notes = process, notes
        self.address = self._told()["address"]

    def remove(self, number):
        """Kill a node as a machine that loses its power; nodes are numbered from 0."""
        return self._do({"do": "remove", "node": number})

    def add(self, cpus):
        return self._do({"do": "add", "cpus": cpus})

    def restart_head(self, seconds):
        """Kill what the head does for the cluster; begin it again after so many seconds."""
        return self._do({"do": "restart", "seconds": seconds})

    def _do(self, command):
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._told()

    def _told(self):
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise AssertionError(f"the cluster has ended: {self._notes.read_text()}")


@contextmanager
def cluster(cpus, notes, redis=None):
    """Run a cluster; `cpus` holds the processors of each node, `notes` takes the log of Ray."""
    command = [sys.executable, __file__, ",".join(map(str, cpus)), *([redis] if redis else [])]
    with (
        notes.open("w") as target,
        Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=target, text=True,
                env=os.environ | LOOPBACK | OWN_FOLDER) as process,
    ):  # fmt: skip
        try:
            yield Nodes(process, notes)
        finally:
            process.stdin.close()
            process.wait(LIMIT)


def serve(cpus, redis):
    """Run the cluster in a folder of its own, and follow commands on standard input."""
    place = mkdtemp(prefix="osvm-ray-", dir="/tmp")
    # A head with its files elsewhere still writes its address below Ray's default folder, and ends
    # where no Ray has made that yet. So this cluster's folder is the default.
    os.environ["RAY_TMPDIR"] = place
    if redis:
        os.environ["RAY_REDIS_ADDRESS"] = redis
    try:
        run(cpus)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def run(cpus):
    from ray.cluster_utils import Cluster

    common = {"object_store_memory": STORE, "node_ip_address": "127.0.0.1",
              "include_dashboard": False}  # fmt: skip
    alone = len(cpus) == 1
    head = common | {"num_cpus": cpus[0] if alone else 0}
    cluster = Cluster(initialize_head=True, head_node_args=head, shutdown_at_exit=True)
    try:
        nodes = [cluster.add_node(num_cpus=n, **common) for n in (() if alone else cpus)]
        print(json.dumps({"address": cluster.address}), flush=True)
        for line in sys.stdin:
            print(json.dumps(follow(cluster, nodes, common, json.loads(line))), flush=True)
    finally:
        cluster.shutdown()


def follow(cluster, nodes, common, command):
    import time

    if command["do"] == "remove":
        node = nodes[command["node"]]
        cluster.remove_node(node, allow_graceful=False)
        return {"removed": node.node_id}
    if command["do"] == "add":
        nodes.append(cluster.add_node(num_cpus=command["cpus"], **common))
        return {"added": nodes[-1].node_id}
    cluster.head_node.kill_gcs_server()
    time.sleep(command["seconds"])
    cluster.head_node.start_gcs_server()
    return {"restarted": "head"}


if __name__ == "__main__":
    serve([int(text) for text in sys.argv[1].split(",")], *sys.argv[2:] or [None])
