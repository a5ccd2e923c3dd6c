"""A sweep as Optuna keeps it: which trial is next, what is told of it, and all of them as the page needs them."""

from __future__ import annotations

import math
import socket
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from gridmill.config.text import printable
from gridmill.runs.figures import finite
from gridmill.workshop.sweep import record
from gridmill.workshop.sweep.record import DONE, FAILED, PRUNED, RUNNING, State, Sweep, Trial
from gridmill.workshop.sweep.space import Dimension
from gridmill.workshop.sweep.storage import Storage, optuna_module, without_password

LOOKS = 20  # at a run's score, evenly over its steps; what pruning compares
UNPRUNED_TRIALS, UNPRUNED_LOOKS = 4, 4  # as many are trained to their end first, and as many looks are always taken
MOST_DEATHS = 3  # a setting that ended its worker so often is not tried again
LEAST_FOR_IMPORTANCE = 6  # trials; of fewer nothing can be said
IDENTITY, HOST, BEGUN, STEPS, SCORES, SECONDS, TROUBLE = (
    "sweep", "host", "begun", "steps", "scores", "seconds", "trouble",
)  # fmt: skip


class Study:
    """The trials of a sweep in its storage; every worker has one of its own."""

    def __init__(self, sweep: Sweep, space: Sequence[Dimension], storage: Storage, url: str, seed: int) -> None:
        self.sweep, self.space, self.storage, self.url, self.seed = sweep, space, storage, url, seed
        self.optuna = optuna_module()
        self.state_of = self.optuna.trial.TrialState
        pruner = self.optuna.pruners.MedianPruner(UNPRUNED_TRIALS, UNPRUNED_LOOKS)
        with storage.claims.alone():
            self.study = self.optuna.create_study(
                storage=storage.optuna,
                study_name=sweep.name,
                direction="maximize",
                pruner=pruner,
                load_if_exists=True,
            )
            known = self.study.user_attrs.get(IDENTITY)
            if known is None:
                self.study.set_user_attr(IDENTITY, sweep.identity())
        if known is not None and known != sweep.identity():
            raise ValueError(
                f"a different sweep named `{sweep.name}` already exists ({_difference(known, sweep.identity())}); "
                "repeat its command to continue it, or choose another name with run=NAME"
            )

    # ---- which is next

    def next(self, wanted: int) -> Any | None:
        """A trial that is this worker's from now on; None if there is none left to begin.

        First those whose worker has gone, then new ones. One worker at a time chooses, so there are never more than
        were wanted and none has two workers.
        """
        with self.storage.claims.alone():
            known = self.study.get_trials(deepcopy=False)
            for frozen in known:
                if frozen.state.is_finished() or not self.storage.claims.take(frozen.number):
                    continue
                trial = self._taken_up(frozen.number)
                if trial is not None:
                    return trial
            if len(known) >= wanted:
                return None
            # Seeded by its number: what is tried depends on the trials before it, not on how often workers began.
            self.study.sampler = self._sampler(len(known))
            trial = self.study.ask()
            self.storage.claims.take(trial.number)
            self._describe(trial, 1)
            return trial

    def _taken_up(self, number: int) -> Any | None:
        """The trial of a worker that has gone; None if it ended meanwhile, or ended its workers too often."""
        trial, frozen = self._trial(number), self.study.get_trials(deepcopy=False)[number]
        if frozen.state.is_finished():  # its worker told of it and gave it back just now
            self.storage.claims.give_back(number)
            return None
        begun = frozen.user_attrs.get(BEGUN, 0)
        if begun >= MOST_DEATHS:
            self.tell(trial, FAILED, trouble=f"its worker died {MOST_DEATHS} times without an error message")
            return None
        self.study.sampler = self._sampler(number)
        self._describe(trial, begun + 1)
        return trial

    def _trial(self, number: int) -> Any:
        inside = self.storage.optuna
        study = inside.get_study_id_from_name(self.sweep.name)
        return self.optuna.trial.Trial(self.study, inside.get_trial_id_from_study_id_trial_number(study, number))

    def _sampler(self, number: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other versions call constant_liar experimental
            return self.optuna.samplers.TPESampler(seed=(self.seed * 1_000_003 + number) % 2**32, constant_liar=True)

    def _describe(self, trial: Any, begun: int) -> None:
        """Values for what is searched (those that it has stay), and where it is trained."""
        for dimension in self.space:
            try:
                dimension.suggest(trial)
            except ValueError as error:  # a storage that somebody else wrote
                raise ValueError(
                    f"trial {trial.number} in the storage belongs to another search space: {error}"
                ) from None
        trial.set_user_attr(HOST, socket.gethostname())
        trial.set_user_attr(BEGUN, begun)

    def changes(self, trial: Any) -> list[str]:
        """The trial's settings as overrides; ValueError if the storage has others than the space."""
        return [dimension.written(trial.params.get(dimension.path)) for dimension in self.space]

    # ---- what is told

    def looked(self, number: int) -> set[int]:
        """The looks that were taken at a trial before."""
        return set(self.study.get_trials(deepcopy=False)[number].intermediate_values)

    def leave(self, trial: Any) -> None:
        """Somebody stopped the worker: the trial stays as it is, for whoever continues."""
        trial.set_user_attr(BEGUN, max(0, trial.user_attrs.get(BEGUN, 1) - 1))
        self.storage.claims.give_back(trial.number)

    def tell(
        self,
        trial: Any,
        state: str,
        value: float | None = None,
        trouble: str = "",
        scores: Sequence[float] = (),
        seconds: Sequence[float] = (),
    ) -> None:
        """How a trial ended; then it is nobody's any more."""
        trial.set_user_attr(SCORES, list(scores))
        trial.set_user_attr(SECONDS, list(seconds))
        if trouble:
            trial.set_user_attr(TROUBLE, trouble[:1000])
        states = {DONE: self.state_of.COMPLETE, PRUNED: self.state_of.PRUNED, FAILED: self.state_of.FAIL}
        self.study.tell(trial.number, value if state == DONE else None, states[state], skip_if_finished=True)
        self.storage.claims.give_back(trial.number)

    # ---- what is there

    def unfinished(self) -> bool:
        return any(not trial.state.is_finished() for trial in self.study.get_trials(deepcopy=False))

    def state(self, wanted: int) -> State:
        """Everything that the page and `gridmill sweep FOLDER` show."""
        trials = [self._seen(frozen) for frozen in self.study.get_trials(deepcopy=False)]
        return State(self.sweep, wanted, without_password(self.url), trials, self._importance(trials))

    def _seen(self, frozen: Any) -> Trial:
        own = frozen.user_attrs
        names = {self.state_of.COMPLETE: DONE, self.state_of.PRUNED: PRUNED, self.state_of.FAIL: FAILED}
        settings = {}
        for dimension in self.space:
            if dimension.path in frozen.params:
                path, _, text = dimension.written(frozen.params[dimension.path]).partition("=")
                settings[path] = text
        value = frozen.value if frozen.state.is_finished() else None
        return Trial(
            frozen.number,
            names.get(frozen.state, RUNNING),
            settings,
            finite(value),
            tuple(own.get(SCORES, ())),
            math.fsum(own.get(SECONDS, ())),
            own.get(STEPS, 0),
            tuple(curve(frozen.intermediate_values, own.get(STEPS, 0))),
            printable(own.get(TROUBLE, ""), 1000),
            own.get(HOST, ""),
        )

    def _importance(self, trials: Sequence[Trial]) -> dict[str, float]:
        """How much each setting tells the best quarter of the trials from the others; shares of 1."""
        values = [trial.value for trial in trials if trial.state == DONE]
        if len(values) < LEAST_FOR_IMPORTANCE or len(set(values)) < 2:
            return {}
        evaluator = self.optuna.importance.PedAnovaImportanceEvaluator(target_quantile=0.25)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.optuna.importance.get_param_importances(self.study, evaluator=evaluator)
        return {path: share for path, share in found.items() if math.isfinite(share)}

    def save(self, folder: Any, wanted: int) -> State:
        """sweep.json and the page, as it is now; one worker at a time, so that an older state is never the last."""
        from gridmill.workshop.sweep import page

        with self.storage.claims.alone():
            state = self.state(wanted)
            record.write(folder, state)
            page.write(folder, state)
        return state


def step_of(seed: int, share: float) -> int:
    """Optuna's step for a look at the run of a seed (its place among the seeds) after a share of its steps."""
    return seed * LOOKS + min(LOOKS, int(share * LOOKS + 1e-9))


def curve(looks: Mapping[int, float], steps: int) -> list[tuple[float, float]]:
    """Agent-steps and values, a mean over the seeds that have come so far."""
    at: dict[int, list[float]] = {}
    for step, value in sorted(looks.items()):
        if math.isfinite(value):
            at.setdefault((step - 1) % LOOKS + 1, []).append(value)
    return [(steps * look / LOOKS, math.fsum(values) / len(values)) for look, values in sorted(at.items())]


def _difference(theirs: Any, ours: Mapping[str, Any]) -> str:
    theirs = theirs if isinstance(theirs, dict) else {}
    key = next(key for key in [*ours, *theirs] if theirs.get(key) != ours.get(key))
    told = [", ".join(map(str, v)) if isinstance(v, list) else str(v) for v in (theirs.get(key), ours.get(key))]
    return printable(f"its {key}: {told[0] or 'none'}; here: {told[1] or 'none'}", 300)
