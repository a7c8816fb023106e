"""Every setting of the service; load those of one feed or of many.

Flags take precedence over environment variables, these over the file, and the file over the
defaults. A setting has one name everywhere: `--refit-every`, `ONLINE_SVM_REFIT_EVERY`, and
`refit_every` in the file. The predictor's settings are inherited from `online_svm.config`.
"""

from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from online_svm.config import PredictorConfig, PredictorFields
from workers.config.environment import PREFIX
from workers.config.redis_url import CREDENTIAL_FILES, complete, one_line, redacted
from workers.config.retention_settings import RetentionSettings
from workers.config.setting_sources import (
    EnvironmentSource,
    FileSource,
    feed_sections,
    matching_sections,
    merged_sections,
    parsed,
    refuse_unknown,
    refuse_unknown_variables,
    settings_file,
)
from workers.config.text_values import explain
from workers.errors import BadConfiguration

LogFormat = Literal["text", "json"]

REFIT_MEMORY = 1 << 29
"""Default, in bytes. The machines of a full window of 2,000 examples take some 34 MB."""

REPLAY_BUDGET = 200_000  # default, in entries: some 22 s at 9,000 a second
SNAPSHOT_EVERY = 10_000  # entries between two snapshots of a feed: about a second of replay


class Limits(BaseModel):
    """Bounds of input entries, the window of duplicate ids, and the form of answers.

    They decide which entries are learned, and the bytes of answers. So they are fixed for the life
    of a feed, like the settings of its predictor.
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
        description="Labels of a feed that declares none. none: no limit.",
    )
    dedupe_window: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="Producers' ids to remember. An entry that repeats one is answered "
        "`duplicate` and not learned.",
    )


class WorkerSettings(PredictorFields, Limits, RetentionSettings, BaseSettings):
    """All settings of `online-svm worker`; those of predictor, limits and retention are inherited.

    Only the property `predictor` checks that the predictor's settings work together, because the
    stored settings of a feed may complete the given ones.

    Examples
    --------
    >>> settings = WorkerSettings(gamma=0.5, batch=64, redis="redis://me:secret@host/0")
    >>> settings.predictor.gamma, settings.batch
    (0.5, 64)
    >>> settings.shown()["redis"]
    'redis://host/0'
    """

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, env_prefix=PREFIX,
        hide_input_in_errors=True,
    )  # fmt: skip

    redis: SecretStr | None = Field(
        None, description="URL of Redis. Default: the embedded server of this user."
    )
    redis_password_file: Path | None = Field(
        None, description="File with the password of the user."
    )
    redis_sentinel_password_file: Path | None = Field(
        None, description="File with the password of the sentinels."
    )
    redis_ca_file: Path | None = Field(
        None, description="CA certificates (PEM) of a rediss:// server."
    )
    batch: int = Field(256, ge=1, le=65_536, description="Entries read and committed at once.")
    wait_redis: float = Field(
        0.0, ge=0, le=86_400, description="Seconds to wait for Redis at start."
    )
    wait_replicas: int = Field(
        0,
        ge=0,
        le=16,
        description="Replicas of Redis that must have a commit before it counts.",
    )
    publish_every: int = Field(
        0,
        ge=0,
        description="Learned examples between two published states, besides each new model: for "
        "`/scores` of the gateway. 0: none.",
    )
    refit_processes: int | None = Field(
        None,
        ge=1,
        le=64,
        description="Processes that compute refits; default: one less than cores.",
    )
    refit_memory: int = Field(
        REFIT_MEMORY,
        ge=1 << 20,
        le=1 << 40,
        description="Bytes of the machines of all feeds. Beyond it those refitted longest ago "
        "are rebuilt at their next refit.",
    )
    replay_budget: int = Field(
        REPLAY_BUDGET,
        ge=1,
        description="Entries, about, that the feeds of a process replay after a kill; of one "
        "feed 10,000 at most. Beyond it feeds write snapshots.",
    )
    max_feeds: int = Field(
        1000,
        ge=1,
        le=100_000,
        description="Most feeds of a process with patterns or several names.",
    )
    lease: float = Field(
        5.0, ge=0.5, le=3600, description="Seconds that a lease lasts unless renewed."
    )
    metrics: str | None = Field(
        None,
        description="Port of this machine, or host:port, that serves /metrics for Prometheus, "
        "/livez and /readyz.",
    )
    alarm_url: SecretStr | None = Field(
        None,
        description="http:// or https:// address to which incidents are posted.",
    )
    alarm_notices: bool = Field(
        False, description="Whether the beginnings and ends of notices are posted as well."
    )
    alarm_secret_file: Path | None = Field(
        None, description="File with the key of the HMAC-SHA256 signature of posts, one line."
    )
    log_format: LogFormat = Field("text", description="Form of log lines.")
    grace: float = Field(10.0, ge=0, le=3600, description="Seconds a graceful stop may take.")

    @property
    def predictor(self) -> PredictorConfig:
        """The settings of the predictor; raises BadConfiguration if they cannot work together."""
        try:
            return PredictorConfig.model_validate(self._part(PredictorConfig))
        except ValidationError as error:
            raise BadConfiguration(explain(error)) from None

    @property
    def limits(self) -> Limits:
        """The bounds on one input entry."""
        return Limits.model_validate(self._part(Limits))

    @property
    def retention(self) -> RetentionSettings:
        """The retention of input and answers."""
        return RetentionSettings.model_validate(self._part(RetentionSettings))

    @property
    def snapshot_every(self) -> int:
        """Entries between two snapshots of a feed, at most."""
        return min(SNAPSHOT_EVERY, self.replay_budget)

    @property
    def agreed(self) -> dict[str, dict[str, Any]]:
        """The settings that are fixed for a feed, by group, as JSON values; not checked."""
        values = self.model_dump(mode="json")
        return {
            group: {name: values[name] for name in model.model_fields if name in values}
            for group, model in _PINNED.items()
        }

    def over(self, *groups: BaseModel) -> Self:
        """Return these settings, with stored values of a feed for all that were not given."""
        stored = {
            name: getattr(part, name)
            for part in groups
            for name in type(part).model_fields
            if name not in self.model_fields_set
        }
        return self.model_copy(update=stored)

    @property
    def url(self) -> str | None:
        """The URL of Redis with the credentials of the files; None for the embedded server.

        Raises BadConfiguration if a file cannot be read, or is named without a URL.
        """
        given = self.redis.get_secret_value() if self.redis else None
        return complete(given, {name: getattr(self, name) for name in CREDENTIAL_FILES})

    @property
    def alarm_key(self) -> bytes | None:
        """The key that signs posts; None for no signature.

        Raises BadConfiguration if its file cannot be used.
        """
        if self.alarm_secret_file is None:
            return None
        return one_line("alarm_secret_file", self.alarm_secret_file)

    def shown(self) -> dict[str, Any]:
        """Return all settings as JSON values, without the credentials in URLs."""
        shown = dict.fromkeys(type(self).model_fields) | self.model_dump(mode="json")
        shown["redis"] = self.redis and redacted(self.redis.get_secret_value())
        shown["alarm_url"] = self.alarm_url and _shown_receiver(self.alarm_url.get_secret_value())
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


_PINNED: dict[str, type[BaseModel]] = {"predictor": PredictorConfig, "limits": Limits}
"""Groups of settings that are fixed for a feed, by the names under which they are stored."""


def _shown_receiver(url: str) -> str:
    """Return the URL of an alarm receiver without path and query, which often hold a token."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "..."
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/..."


def load(
    flags: Mapping[str, Any],
    config: Path | None = None,
    is_whole: bool = True,
    feed: str | None = None,
) -> WorkerSettings:
    """Return the settings from flags, environment, file and defaults.

    The file is `config`, or else the one that ``ONLINE_SVM_CONFIG`` names. `feed` selects the
    sections of the file for that feed. `is_whole` checks that the predictor's settings work
    together; pass False if the stored settings of a feed may complete them. BadConfiguration names
    the setting and the reason; for an unknown name also the nearest known one.
    """
    file = settings_file(config)
    sections = feed_sections(file)
    section = {} if feed is None else merged_sections(sections, matching_sections(sections, feed))
    return load_with(flags, file, is_whole, section)


def load_with(
    flags: Mapping[str, Any], file: Path | None, is_whole: bool, section: Mapping[str, Any]
) -> WorkerSettings:
    """Return the settings like `load`; `section` takes precedence over the rest of the file."""
    refuse_unknown_variables(WorkerSettings.model_fields)
    refuse_unknown(flags, WorkerSettings.model_fields, "setting")

    class Loaded(WorkerSettings):
        model_config = SettingsConfigDict(toml_file=file)
        feed_section: ClassVar[Mapping[str, Any]] = section

    try:
        loaded = Loaded(**parsed(flags, WorkerSettings.model_fields))
    except ValidationError as error:
        raise BadConfiguration(explain(error)) from None
    if is_whole:
        _ = loaded.predictor  # raises BadConfiguration
    return loaded


def origins(flags: Mapping[str, Any], config: Path | None = None) -> dict[str, str]:
    """Return the source of each setting in `load`: "option", "environment", "file" or "default"."""
    given = {
        "option": flags,
        "environment": EnvironmentSource(WorkerSettings)(),
        "file": FileSource(WorkerSettings, settings_file(config))(),
    }
    first = ChainMap(*(dict.fromkeys(values, origin) for origin, values in given.items()))
    return {name: first.get(name, "default") for name in WorkerSettings.model_fields}


class FeedSettings:
    """The settings of a process that serves many feeds: `general` ones, and those of each feed.

    BadConfiguration is raised as by `load`, for every section of the file.
    """

    def __init__(self, flags: Mapping[str, Any], config: Path | None = None) -> None:
        self._flags, self._file = flags, settings_file(config)
        self._sections = feed_sections(self._file)
        self._loaded: dict[tuple[str, ...], WorkerSettings] = {}
        self.general = load(flags, config, is_whole=False)
        self._loaded[()] = self.general
        for name in self._sections:
            self._of((name,))

    def of(self, feed: str) -> WorkerSettings:
        """Return the settings of a feed.

        The section with its name takes precedence over patterns, a later pattern over an earlier.
        """
        return self._of(matching_sections(self._sections, feed))

    def every(self) -> list[WorkerSettings]:
        """Return the general settings, those of each section, and those returned by `of`."""
        return list(self._loaded.values())

    def _of(self, names: tuple[str, ...]) -> WorkerSettings:
        if names not in self._loaded:
            given = merged_sections(self._sections, names)
            self._loaded[names] = load_with(self._flags, self._file, False, given)
        return self._loaded[names]
