"""Every setting of the service, and where its value comes from.

Flags take precedence over environment variables, these over the file, and the file over the
defaults. A setting has one name everywhere: `--refit-every`, `ONLINE_SVM_REFIT_EVERY`, and
`refit_every` in the file.
The predictor's settings are inherited from the one model that declares them.
"""

import tomllib
from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from online_svm.config import PredictorConfig
from workers.config import feed_sections
from workers.config.credentials import FILES, complete, shown_receiver, signing_key
from workers.config.environment import PREFIX
from workers.config.explain import explain
from workers.config.redis_url import redacted
from workers.config.retention_settings import RetentionSettings
from workers.config.setting_sources import (
    EnvironmentSource,
    FileSource,
    parsed,
    refuse_unknown,
    refuse_unknown_variables,
    settings_file,
)
from workers.errors import BadConfiguration

LogFormat = Literal["text", "json"]
Payload = Literal["full", "compact"]

REFIT_MEMORY = 1 << 29
"""Bytes, by default. The machines of a full window of 2,000 examples take some 34 MB."""

REPLAY_BUDGET = 200_000
"""Entries, by default: at 9,000 a second some 22 s."""

SNAPSHOT_EVERY = 10_000
"""Entries between two snapshots of a feed: a replay takes a second or so."""


class Limits(BaseModel):
    """Bounds on one input entry, which is rejected beyond them; unique ids; the form of answers.

    They decide which entries are learned, and what an answer's bytes are. So they are fixed for the
    life of a feed, as are the settings of its predictor.
    """

    max_entry_bytes: int = Field(
        1 << 20, ge=1024, le=1 << 27, description="Bytes of an input entry, names and values."
    )
    max_features: int = Field(
        10_000, ge=1, le=100_000, description="Features that a feed may adopt undeclared."
    )
    max_classes: int | None = Field(
        100,
        ge=2,
        description="Labels of a feed that declares none: a new one is rejected when there are as "
        "many. none: not counted.",
    )
    dedupe_window: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="Number of producers' ids to remember. An entry that repeats one of them is "
        "answered `duplicate` and not learned. 0 remembers none.",
    )
    payload: Payload = Field(
        "full",
        description="Form of an answer: `full`, or `compact`, about a sixth of the bytes: six "
        "decimals, and no maps.",
    )


class WorkerSettings(PredictorConfig, Limits, RetentionSettings, BaseSettings):
    """All settings of `online-svm worker`; some are inherited: of predictor, limits and retention.

    Examples
    --------
    >>> settings = WorkerSettings(gamma=0.5, batch=64, redis="redis://me:secret@host/0")
    >>> settings.predictor.gamma, settings.batch
    (0.5, 64)
    >>> settings.shown()["redis"]
    'redis://host/0'
    """

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        env_prefix=PREFIX,
        hide_input_in_errors=True,
    )

    redis: SecretStr | None = Field(
        None, description="URL of Redis. Default: the embedded server of this user."
    )
    redis_password_file: Path | None = Field(
        None, description="File with the password of the user in the URL."
    )
    redis_sentinel_password_file: Path | None = Field(
        None, description="File with the password that the sentinels of a redis+sentinel:// ask."
    )
    redis_ca_file: Path | None = Field(
        None, description="CA certificates, PEM, that vouch for a rediss:// server."
    )
    redis_cert_file: Path | None = Field(
        None, description="Certificate, PEM, that this client shows to a rediss:// server."
    )
    redis_key_file: Path | None = Field(None, description="Private key, PEM, of that certificate.")
    batch: int = Field(256, ge=1, le=65_536, description="Entries read and committed at once.")
    wait_redis: float = Field(
        0.0, ge=0, le=86_400, description="Seconds to wait at start for a Redis that is not up."
    )
    wait_replicas: int = Field(
        0,
        ge=0,
        le=16,
        description="Replicas of Redis that must have a commit before it counts as done.",
    )
    publish_every: int = Field(
        0,
        ge=0,
        description="Learned examples between two states published for scorers; each new model is "
        "published as well. 0 publishes none.",
    )
    refit_processes: int | None = Field(
        None,
        ge=1,
        le=64,
        description="Processes that compute the refits of all feeds; by default one less than "
        "there are cores. The answers are the same.",
    )
    refit_memory: int = Field(
        REFIT_MEMORY,
        ge=1 << 20,
        le=1 << 40,
        description="Bytes that the machines of all feeds of a process take between refits, at "
        "most, where it answers several. Beyond it those refitted longest ago are built anew for "
        "their next refit, which takes longer; the answers are the same.",
    )
    replay_budget: int = Field(
        REPLAY_BUDGET,
        ge=1,
        description="The largest replay that a kill may cost: entries that the next start answers "
        "again, of all feeds of a process together, about; of one feed 10,000 at most. Beyond it "
        "the feed whose newest snapshot lacks the most leaves one; the answers are the same.",
    )
    max_feeds: int = Field(
        1000,
        ge=1,
        le=100_000,
        description="Feeds that one process answers, at most, where patterns or several are named.",
    )
    lease: float = Field(5.0, ge=0.5, le=3600, description="Seconds a lease lasts unrenewed.")
    metrics: str | None = Field(
        None,
        description="Address that serves /metrics for Prometheus, /livez and /readyz: a port of "
        "this machine, or host:port.",
    )
    alarm_url: SecretStr | None = Field(
        None,
        description="http:// or https:// address to which incidents are posted, at least once.",
    )
    alarm_secret: SecretStr | None = Field(
        None, description="Key of the signature of what is posted, HMAC-SHA256."
    )
    alarm_secret_file: Path | None = Field(
        None, description="File with the key of the signature of what is posted, one line."
    )
    log_format: LogFormat = Field(
        "text", description="Log lines as `text` for people, or as `json` objects."
    )
    grace: float = Field(10.0, ge=0, le=3600, description="Seconds a graceful stop may take.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """Check nothing yet: stored settings of the feed may complete the given ones."""
        return self

    @property
    def predictor(self) -> PredictorConfig:
        """The settings of the predictor.

        Raises
        ------
        BadConfiguration
            If they cannot work together.
        """
        try:
            return PredictorConfig.model_validate(self._part(PredictorConfig))
        except ValidationError as error:
            raise BadConfiguration(explain(error)) from None

    @property
    def limits(self) -> Limits:
        """The bounds on one input entry."""
        return Limits.model_validate(self._part(Limits))

    @property
    def snapshot_every(self) -> int:
        """Entries between two snapshots of a feed, at most.

        Examples
        --------
        >>> WorkerSettings().snapshot_every, WorkerSettings(replay_budget=300).snapshot_every
        (10000, 300)
        """
        return min(SNAPSHOT_EVERY, self.replay_budget)

    @property
    def agreed(self) -> dict[str, dict[str, Any]]:
        """The settings that are fixed for a feed, by group, as JSON; they are not checked."""
        values = self.model_dump(mode="json")
        return {
            group: {name: values[name] for name in model.model_fields}
            for group, model in _AGREED.items()
        }

    def over(self, predictor: PredictorConfig, limits: Limits) -> Self:
        """Return these settings; those that were not given have the values of the feed.

        Examples
        --------
        >>> settings = WorkerSettings(C=4.0).over(PredictorConfig(C=2.0, window=60), Limits())
        >>> settings.C, settings.window
        (4.0, 60)
        """
        stored = {
            name: getattr(part, name)
            for part in (predictor, limits)
            for name in type(part).model_fields
            if name not in self.model_fields_set
        }
        return self.model_copy(update=stored)

    @property
    def url(self) -> str | None:
        """The URL of Redis with the credentials of the files; None for the embedded server.

        Raises
        ------
        BadConfiguration
            If a file cannot be read, or a file is named and no URL.
        """
        given = self.redis.get_secret_value() if self.redis else None
        return complete(given, {name: getattr(self, name) for name in FILES})

    @property
    def alarm_key(self) -> bytes | None:
        """The key that signs what is posted; None signs nothing.

        Raises
        ------
        BadConfiguration
            If it is given twice, or its file cannot be used.
        """
        given = self.alarm_secret.get_secret_value() if self.alarm_secret else None
        return signing_key(given, self.alarm_secret_file)

    def shown(self) -> dict[str, Any]:
        """Return the settings as plain JSON values, without the credentials in the URL."""
        shown = self.model_dump(mode="json")
        shown["redis"] = self.redis and redacted(self.redis.get_secret_value())
        shown["alarm_url"] = self.alarm_url and shown_receiver(self.alarm_url.get_secret_value())
        return shown

    def _part(self, model: type[BaseModel]) -> dict[str, Any]:
        return {name: getattr(self, name) for name in model.model_fields}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003  (the library fixes these names)
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources: flags, environment, file."""
        file = FileSource(settings_cls, section=getattr(settings_cls, "feed_section", {}))
        return init_settings, EnvironmentSource(settings_cls), file


_AGREED: dict[str, type[BaseModel]] = {"predictor": PredictorConfig, "limits": Limits}
"""Groups of settings that are fixed for a feed, by the names they are stored under."""


def load(
    flags: Mapping[str, Any],
    config: Path | None = None,
    is_whole: bool = True,
    feed: str | None = None,
) -> WorkerSettings:
    """Return the settings from flags, environment, file and defaults.

    Parameters
    ----------
    flags : mapping from the name of a setting to its value, or its text
    config : path, optional
        TOML file; without it the one that ``ONLINE_SVM_CONFIG`` names, if any.
    is_whole : bool
        Whether these settings are complete, and must work together. If not, the stored settings
        of the feed may complete them.
    feed : str, optional
        Whose sections of the file are taken too; none without it.

    Raises
    ------
    BadConfiguration
        The message names the setting and what is wrong; for an unknown name, also the nearest
        known one.
    """
    chosen = settings_file(config)
    found = feed_sections.sections(chosen)
    given = {} if feed is None else feed_sections.merged(found, feed_sections.matching(found, feed))
    return load_with(flags, chosen, is_whole, given)


def load_with(
    flags: Mapping[str, Any], chosen: Path | None, is_whole: bool, section: Mapping[str, Any]
) -> WorkerSettings:
    """Return the settings as `load`, with those of a section over the rest of the file."""
    refuse_unknown_variables(WorkerSettings.model_fields)
    refuse_unknown(flags, WorkerSettings.model_fields, "setting")

    class Loaded(WorkerSettings):
        model_config = SettingsConfigDict(toml_file=chosen)
        feed_section: ClassVar[Mapping[str, Any]] = section

    try:
        loaded = Loaded(**parsed(flags, WorkerSettings.model_fields))
    except ValidationError as error:
        raise BadConfiguration(explain(error)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfiguration(f"{chosen}: not TOML: {error}") from None
    if is_whole:
        _ = loaded.predictor
    return loaded


def origins(flags: Mapping[str, Any], config: Path | None = None) -> dict[str, str]:
    """Return where the value of each setting comes from: option, environment, file or default.

    Parameters
    ----------
    flags, config : as for `load`, which took them

    Examples
    --------
    >>> found = origins({"batch": 3})
    >>> found["batch"], found["lease"]
    ('option', 'default')
    """
    given = {
        "option": flags,
        "environment": EnvironmentSource(WorkerSettings)(),
        "file": FileSource(WorkerSettings, settings_file(config))(),
    }
    first = ChainMap(*(dict.fromkeys(values, origin) for origin, values in given.items()))
    return {name: first.get(name, "default") for name in WorkerSettings.model_fields}
