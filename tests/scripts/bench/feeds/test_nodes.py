"""`bench nodes`, small: figures of feeds at rest on a Redis Cluster, which it leaves empty."""

import pytest
from redis_cluster import running_cluster

from scripts.bench.feeds.nodes import run
from workers.errors import BadConfiguration


def test_a_url_that_names_no_cluster_is_refused():
    with pytest.raises(BadConfiguration, match="redis\\+cluster://"):
        next(run("redis://localhost/0", [3], 1.0))


@pytest.mark.scale
def test_feeds_at_rest_are_measured_and_deleted(tmp_path):
    with running_cluster(tmp_path, replicas=0) as cluster:
        (rest,) = run(cluster.url, [80], 1.0)
        assert rest.feeds == 80
        assert 0 < rest.median <= rest.longest < 5.0
        assert 0 < rest.connections < 150
        assert "80 feeds" in str(rest)
        assert [node.client.dbsize() for node in cluster.primaries] == [0, 0, 0]
