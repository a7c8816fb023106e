"""`bench nodes`, small: figures of feeds at rest on a Redis Cluster, which it leaves empty."""

import pytest
from redis_cluster import running_cluster

from scripts.bench.commands import app
from scripts.bench.feeds.nodes import run
from scripts.command_line import main
from workers.errors import BadConfiguration


def test_a_url_that_names_no_cluster_is_refused():
    with pytest.raises(BadConfiguration, match="redis\\+cluster://"):
        next(run("redis://localhost/0", [3], 1.0))


@pytest.mark.parametrize("feeds", ["", "200,", "0", "many", "20000", "-5"])
def test_a_number_of_feeds_that_cannot_be_is_named(capsys, feeds):
    with pytest.raises(SystemExit) as ended:
        main(app, "bench", ["nodes", "--redis", "redis+cluster://localhost:1", "--feeds", feeds])
    assert ended.value.code == 2
    assert "numbers from 1 to 10,000" in capsys.readouterr().err


@pytest.mark.scale
def test_feeds_at_rest_are_measured_and_deleted(tmp_path):
    with running_cluster(tmp_path, replicas=0) as cluster:
        (rest,) = run(cluster.url, [80], 1.0)
        assert rest.feeds == 80
        assert 0 < rest.median <= rest.longest < 5.0
        assert 0 < rest.connections < 150
        assert "80 feeds" in str(rest)
        assert [node.client.dbsize() for node in cluster.primaries] == [0, 0, 0]
