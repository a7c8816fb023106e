"""A Redis Cluster over TLS: every node is verified, under the name that the cluster announces."""

import pytest
from certificates import make_certificates, server_with_tls
from redis_cluster import running_cluster
from threaded_feed import lone_outcome
from world import drain, outcome, push, rows, session

from workers.broker.store import Store
from workers.config.credentials import complete
from workers.errors import BadConfiguration

pytestmark = pytest.mark.scale

COUNT = 60


def test_every_node_of_a_cluster_is_verified(tmp_path):
    server_with_tls()
    make_certificates(tmp_path)
    with running_cluster(tmp_path, replicas=0, tls=tmp_path) as cluster:
        plain = f"rediss+cluster://localhost:{cluster.nodes[0].port}"
        url = complete(plain, {"redis_ca_file": tmp_path / "ca.pem"})
        for place in range(3):
            with Store(url, cluster.feed_on(place), block_ms=20) as store:
                push(store, rows(COUNT))
                drain(session(store), COUNT)
                assert outcome(store) == lone_outcome(COUNT)
        for ca, host, complaint in (
            ("other-ca.pem", "localhost", "certificate verify failed"),
            ("ca.pem", "127.0.0.1", "certificate is not valid for '127.0.0.1'"),
        ):
            other = complete(plain.replace("localhost", host), {"redis_ca_file": tmp_path / ca})
            with (
                Store(other, "f") as store,
                pytest.raises(BadConfiguration, match=complaint),
            ):
                store.state()
