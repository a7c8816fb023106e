"""The definition of a fleet, in one key of Redis: its feeds, its shards and their settings."""

from collections.abc import Collection, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from workers.broker.connection import Connection
from workers.config.redis_url import CREDENTIAL_FILES, redacted
from workers.config.settings import WorkerSettings
from workers.config.text_values import explain
from workers.errors import BadConfiguration, EmbeddedFailed
from workers.feed.keys import fleet_key
from workers.feed.selection import MAX_SHARDS

_MAX_DEFINITION_BYTES = 1 << 20  # largest definition in bytes


class FleetDefinition(BaseModel):
    """The stored form of a fleet; its actors follow changes."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    v: Literal[1] = 1
    patterns: tuple[str, ...] = Field(min_length=1, max_length=10_000)
    shards: int = Field(ge=0, le=MAX_SHARDS, description="0: the fleet is being stopped.")
    settings: dict[str, JsonValue] = Field(
        default_factory=dict, description="Given as options or by the environment."
    )
    file: dict[str, JsonValue] = Field(
        default_factory=dict, description="Given by the file, for all feeds."
    )
    feeds: dict[str, dict[str, JsonValue]] = Field(
        default_factory=dict, description="Sections of the file, by names and patterns of feeds."
    )
    cpus: float = Field(1.0, ge=0, le=1024, description="Processors that Ray reserves a shard.")
    resources: dict[str, float] = Field(
        default_factory=dict, description="Further resources of Ray that a shard needs."
    )


class FleetStore:
    """The stored definition of one fleet. Raises InvalidFeedName for an invalid name."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection, self._name, self._key = connection, name, fleet_key(name)

    def get(self) -> FleetDefinition | None:
        """Return the definition, if any. Raises BadConfiguration if it is invalid."""
        text = self._connection.value(self._key, limit=_MAX_DEFINITION_BYTES)
        if text is None:
            return None
        try:
            return FleetDefinition.model_validate_json(text)
        except ValidationError as error:
            raise BadConfiguration(
                f"{self._key} is no fleet that this version knows ({explain(error)}); "
                "`online-svm fleet 'PATTERN'` with the same --name writes it anew"
            ) from None

    def require(self) -> FleetDefinition:
        """Return the definition. Raises BadConfiguration if it is missing or invalid."""
        found = self.get()
        if found is None:
            raise BadConfiguration(
                f"no fleet {self._name!r}: start it with online-svm fleet 'PATTERN' --name "
                f"{self._name}"
            )
        return found

    def put(self, definition: FleetDefinition) -> None:
        """Store the definition; running actors follow within a second."""
        self._connection.put_value(self._key, definition.model_dump_json())

    def delete(self) -> None:
        """Delete the definition."""
        self._connection.delete(self._key)


def changes(before: FleetDefinition, now: FleetDefinition) -> str:
    """Return a text with the differences of two definitions, except shards; empty if none.

    Examples
    --------
    >>> begun = FleetDefinition(patterns=["a-*"], shards=3, settings={"window": 500})
    >>> changes(begun, FleetDefinition(patterns=["a-*"], shards=1))
    "settings: {'window': 500}, from now on {}"
    """
    old, new = (one.model_dump(mode="json", exclude={"shards"}) for one in (before, now))
    return "; ".join(
        f"{name}: {old[name]}, from now on {new[name]}" for name in old if old[name] != new[name]
    )


def access_of(settings: WorkerSettings) -> dict[str, str]:
    """Return the settings that an actor needs to connect to Redis, which Ray stores.

    Raises EmbeddedFailed without a URL; BadConfiguration if the URL contains a password.
    """
    if settings.redis is None:
        raise EmbeddedFailed(
            "a fleet needs a Redis that every machine reaches: give --redis URL (the embedded one "
            "is this user's on this machine)"
        )
    url = settings.redis.get_secret_value()
    # `redacted` also drops the user name, which is allowed here.
    is_secret = "password" in urlsplit(url).query
    if is_secret or ":" in url.partition("://")[2].rpartition("@")[0]:
        raise BadConfiguration(
            f"the URL {redacted(url)!r} holds a password, which Ray would store: leave it out, and "
            "give each machine --redis-password-file, or ONLINE_SVM_REDIS_PASSWORD_FILE"
        )
    files = {name: getattr(settings, name) for name in CREDENTIAL_FILES}
    return {"redis": url} | {name: str(path) for name, path in files.items() if path is not None}


def check_stored(given: Collection[str]) -> None:
    """Raise BadConfiguration if a given setting may contain a secret."""
    if "alarm_url" in given:
        raise BadConfiguration(
            "setting alarm_url: a fleet stores its settings in Redis, and this may be a secret; "
            "give it to the machines of Ray as ONLINE_SVM_ALARM_URL"
        )


def given_settings(
    settings: WorkerSettings, origins: Mapping[str, str]
) -> dict[str, dict[str, JsonValue]]:
    """Return the given settings as JSON, without the settings of the connection to Redis.

    `file` has those of the file; `settings` has the others, which take precedence over sections of
    the file. See `loading.origins`. Raises BadConfiguration if one may contain a secret.
    """
    given = settings.model_fields_set
    check_stored(given)
    of_connection = {"redis", *CREDENTIAL_FILES}
    values: dict[str, Any] = settings.model_dump(mode="json", include=set(given) - of_connection)
    of_file = {name: values.pop(name) for name in sorted(values) if origins.get(name) == "file"}
    return {"settings": dict(sorted(values.items())), "file": of_file}
