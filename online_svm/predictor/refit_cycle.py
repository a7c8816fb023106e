"""The refits of a predictor: freeze examples, have a refit computed, activate its result."""

import numpy as np
from typing_extensions import override

from online_svm.predictor.active_model import ActiveModel
from online_svm.predictor.mixture import Mixture
from online_svm.predictor.pending_refit import PendingRefit
from online_svm.predictor.predictor_state import PredictorState
from online_svm.refit.task import RefitTask
from online_svm.stream.split import is_early_refit, next_refit, window_parts
from online_svm.svm.hyperparameters import given_weights


class RefitCycle(PredictorState):
    """The part of an `OnlinePredictor` that keeps its model new; the schedule goes by n alone."""

    @override
    def snapshot(self) -> bytes:
        self.activate_if_due()
        return super().snapshot()

    def _freeze_what_is_held(self) -> None:
        """Submit the refits whose examples are held; the second waits in line behind the first."""
        # What a refit is given may depend on answers where alarms are acted on.
        held = self.n if self._acts else self._examples.stop
        while self._following is None and (due := self._next_freeze()) <= held:
            self._freeze(due)

    def _next_freeze(self) -> int:
        """Return the number of learned examples at the next freeze; alarms begin the count anew."""
        config, since = self.config, self._since
        return since + next_refit(self._frozen - since, config.refit_every, self._dense_until)

    def _activation_of(self, freeze: int) -> int:
        """Return the number of learned examples at which a refit frozen at `freeze` is active."""
        config, k = self.config, freeze - self._since
        early = k < config.lags_from or is_early_refit(k, config.refit_every, config.dense_until)
        return freeze if early else freeze + config.lag

    def _begin_anew(self, n: int) -> None:
        """Let refits use only examples that follow the n-th; withdraw those under way.

        With the policy "reset" the active model is given up too, and the predictor warms up again.
        """
        self._since = self._frozen = n
        self._is_stale = True
        self._pending = self._following = None
        self._refitter.withdraw()
        self._examples.begin_anew(n)
        if self._monitors is not None:
            self._monitors.begin_anew()
        if self.config.on_drift == "reset":
            self._active, self._mixture = None, Mixture.of(self.config)

    def _freeze(self, n: int) -> None:
        """Freeze the examples available after the n-th, and submit a refit of them."""
        config, self._frozen = self.config, n
        start = max(self._since, 0 if config.window is None else n - config.window)
        if not self._has_learner and not self._can_train(start, n):
            self._forget_before(start)
            return
        view = self.labels.view(self._examples.labels_before(n))
        first, rows = self._examples.give(start, n)
        given = config.class_weight if isinstance(config.class_weight, dict) else {}
        weights = given_weights(given, view.classes[: view.n_known])
        probs = self._examples.probs(start, n).copy() if config.learner == "psvm" else None
        columns = view.columns(self._examples.codes(start, n))
        is_relabelled = self._examples.take_relabelled()
        task = RefitTask(start, n, first, rows, columns, weights, probs, is_relabelled)
        self._refitter.submit(task)
        frozen = PendingRefit(start, n, self._activation_of(n), view)
        if self._pending is None:
            self._pending = frozen
            self._examples.drop_given()
        else:
            self._following = frozen

    def _can_train(self, start: int, n: int) -> bool:
        """Return whether the proper training set of these examples has two classes.

        Labels that calibrate are not looked at: whether an answer exists would else depend on them,
        and no answer that follows would be calibrated.
        """
        config = self.config
        trains, _ = window_parts(config.split, start, n, config.training_share, config.seed)
        codes = self._examples.codes(start, n)[trains]
        return len(np.unique(codes[codes >= 0])) > 1

    @property
    def is_waiting(self) -> bool:
        """Whether the next answer needs the result of a refit, which was not taken yet."""
        pending = self._pending
        return self.is_refitting and pending is not None and pending.activation == self.n

    @property
    def is_refitting(self) -> bool:
        """Whether there is a refit whose result was not taken yet; a snapshot would wait for it."""
        return self._pending is not None and self._pending.result is None

    @property
    def until_wait(self) -> int:
        """Examples that can be learned before an answer needs the result of a refit, at least."""
        pending = self._pending
        if pending is not None and pending.result is None:
            return pending.activation - self.n
        return self._activation_of(self._next_freeze()) - self.n

    def activate_if_due(self) -> None:
        """Let the refit that is due now take effect; wait for its result where it must.

        It takes effect by itself where the next example is answered, and in a snapshot. A caller
        that has time before that may call this then.

        Raises
        ------
        Exception
            What the refitter raises if there will be no result.
        """
        pending = self._pending
        if pending is None or pending.activation != self.n:
            return
        config = self.config
        result = pending.result or self._refitter.result()
        trains, calibrates = window_parts(
            config.split, pending.start, pending.freeze, config.training_share, config.seed
        )
        codes = self._examples.codes(pending.start, self.n)
        frozen = len(trains)
        outside = np.concatenate([codes[:frozen][calibrates], codes[frozen:]])
        self._models += 1
        self._calibrations += 1
        active = ActiveModel(config, result, pending.view, self._models, codes[:frozen][trains])
        if self._active is not None and not self._is_stale:
            active.headline.follow(self._active.headline)
        since = self._examples.rows(pending.freeze, self.n)
        active.calibrate(outside, since, self._calibrations)
        self._active, self._pending, self._following = active, self._following, None
        self._is_stale = False
        if self._monitors is not None:
            self._monitors.close(pending.start)
        self._examples.drop_given()
        self._forget_before(0 if config.window is None else self.n - config.window)

    def _forget_before(self, number: int) -> None:
        """Give up what no later refit can use."""
        self._examples.drop_before(number, with_rows=not self._has_learner)
