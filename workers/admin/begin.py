"""Begin a feed with what was learned elsewhere: a saved estimator, or a backup of another feed."""

import json
from pathlib import Path

from online_svm.errors import InvalidSnapshot
from online_svm.predictor.labelled_predictor import LabelledPredictor, stored_config
from online_svm.storage.saved_model import SavedModel
from workers.admin.backup import Backup, InvalidBackup
from workers.admin.restore import restore
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration, ConfigurationChanged
from workers.feed.agreement import agreement, changes
from workers.feed.position import Position
from workers.session import snapshots
from workers.session.known_feeds import KnownFeeds
from workers.session.preflight import find


def begin(
    store: Store, file: Path, given: WorkerSettings, known: KnownFeeds | None = None
) -> int | None:
    """Begin a feed with a model, unless it exists; return how many examples that has learned.

    The feed counts these among its entries: its first answer has this number.

    Parameters
    ----------
    store : Store
    file : Path
        Of `OnlineClassifier.save`, or of `backup`.
    given : WorkerSettings
        Those that were given must be those of the model.
    known : KnownFeeds, optional
        Feeds that had a state: one that Redis lost is not begun.

    Returns
    -------
    int or None
        None for a feed that exists: nothing was done.

    Raises
    ------
    InvalidBackup
        If the file cannot be read, or holds no model that this version can go on with.
    ConfigurationChanged
        If a given setting is another one than the model's.
    StateLost
        If the feed existed before.
    """
    if find(store, known=known).state is not None:
        return None
    feed = store.keys.feed
    try:
        snapshot = SavedModel.parse(file.read_bytes()).snapshot
        config = stored_config(snapshot)
        n = LabelledPredictor.restored(config, (), snapshot).predictor.n
    except OSError as error:
        raise InvalidBackup(f"{file}: cannot be read: {error.strerror or error}") from None
    except InvalidSnapshot as error:
        raise InvalidBackup(f"{file}: {error}") from error
    agreed = agreement(config, given.limits)
    if told := changes(json.loads(agreed.config), given.over(config, given.limits).agreed):
        raise ConfigurationChanged(
            f"a feed that begins with {file} has the settings of its model: {told}. Leave such "
            "options out, or begin the feed without --from"
        )
    pointer, data = snapshots.encode(feed, agreed.config_hash, Position(seq=n, n=n), snapshot)
    try:
        restore(store, Backup(feed, 1, agreed, pointer, data))
    except BadConfiguration:
        if store.state() is None:
            raise
        return None  # another worker began it between the two looks
    return n
