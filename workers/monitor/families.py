"""How our metrics are named."""

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

PREFIX = "online_svm"


def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    """Return an empty family of gauges with the label `feed` and further ones.

    Examples
    --------
    >>> gauge("lag_entries", "Input entries without an answer.").name
    'online_svm_lag_entries'
    """
    return GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=["feed", *labels])


def counted(name: str, text: str, *labels: str) -> CounterMetricFamily:
    """Return an empty family of counters, likewise."""
    return CounterMetricFamily(f"{PREFIX}_{name}", text, labels=["feed", *labels])
