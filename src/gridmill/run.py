"""Run: the one frozen record that says everything about a training run; a recipe returns it, a checkpoint keeps it.

Settings only, no torch: recipes, `train --dry-run` and `recipes` work without it. Those of the network stand in
policy/, those of each loss beside its arithmetic in losses/; train/ reads the rest. A number that may change over a
run is a `Number`: a plain number or a Schedule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from gridmill import losses as loss_room
from gridmill.config import Config, ConfigError, Frozen, FrozenDict, user_code
from gridmill.config.schedule import (
    Count,
    NotNegativeNumber,
    Number,
    PositiveNumber,
    Progress,
    Schedule,
    ShareNumber,
)
from gridmill.curriculum.config import CurriculumConfig
from gridmill.env.kind import GameConfig
from gridmill.games import kinds
from gridmill.games.kinds import AnyGame
from gridmill.games.signal import SignalTerm
from gridmill.losses import Loss
from gridmill.losses.ppo import PPO
from gridmill.losses.value import Value
from gridmill.policy.config import PolicyConfig

__all__ = [
    "PPO",
    "AnalysisConfig",
    "AnyGame",
    "CheckpointConfig",
    "CurriculumConfig",
    "EvaluationConfig",
    "GuardConfig",
    "Loss",
    "MonitorConfig",
    "Number",
    "OptimizerConfig",
    "PolicyConfig",
    "ProfilerConfig",
    "Run",
    "Schedule",
    "SignalTerm",
    "TrackConfig",
    "TrainerConfig",
    "Value",
]

CountOrNone = Annotated[int, Field(ge=0, le=2**48)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0, le=1e12)]
NotNegative = Annotated[float, Field(ge=0.0, le=1e12)]


class OptimizerConfig(Config):
    """Adam, AdamW, Muon (matrices; AdamW for the rest), or schedule-free AdamW."""

    kind: Literal["adam", "adamw", "muon", "schedule_free"] = "adam"
    learning_rate: Number = 1e-3
    beta1: ShareNumber = 0.9
    beta2: ShareNumber = 0.999
    eps: PositiveNumber = 1e-5
    weight_decay: NotNegativeNumber = 0.0
    max_grad_norm: NotNegativeNumber = 0.5  # 0 = off
    clip_range: NotNegativeNumber = 0.0  # after every update all weights are kept within +- this; 0 = off


class TrainerConfig(Config):
    """Sizes and the algorithm. 0 means: chosen from the others or from the machine."""

    total_timesteps: Count = 10_000_000  # agent-steps
    num_worlds: Count = 64
    threads: Annotated[int, Field(ge=0, le=4096)] = 0
    async_factor: Annotated[int, Field(ge=1, le=64)] = 2  # lanes of the batch
    batch_size: Count = 65_536  # agent-steps per epoch
    minibatch_size: Count = 8_192
    max_microbatch: CountOrNone = 0
    bptt_horizon: Count = 64
    update_epochs: Annotated[int, Field(ge=1, le=100)] = 1
    device: Literal["auto", "cpu", "cuda"] = "auto"
    compile: Literal["off", "default", "reduce-overhead", "max-autotune"] = "off"
    precision: Literal["fp32", "bf16"] = "fp32"
    tf32: bool = True
    env_impl: Literal["auto", "native", "reference"] = "auto"
    experience_device: Literal["auto", "cpu"] = "auto"
    masks: bool = True
    advantage: Literal["gae", "vtrace"] = "gae"
    gamma: ShareNumber = 0.99
    gae_lambda: ShareNumber = 0.95
    rho_clip: PositiveNumber = 1.0  # of V-trace
    c_clip: PositiveNumber = 1.0
    target_kl: NotNegativeNumber = 0.0  # 0 = off; an epoch's remaining minibatches are skipped above it
    normalize_advantages: bool = True
    signal: tuple[SignalTerm, ...] = ()  # what is learned from in place of the game's rewards; none = those
    reward: Literal["raw", "scaled", "centered"] = "raw"
    reward_time_scale: PositiveNumber = 2e6  # agent-steps that statistics of scaled and centered rewards are means over
    reward_clip: NotNegativeNumber = 10.0  # scaled rewards are kept within +- this; 0 = off
    shared_advantage: Number = 0.0  # share of the advantages of all agents that an agent sees, added to its own
    prio_alpha: ShareNumber = 0.0  # 0 = every segment once, shuffled
    prio_beta0: ShareNumber = 0.2
    desync_episodes: bool = True
    window_env_steps: CountOrNone = 0  # metrics per so many steps of single worlds; 0 = off

    renamed: ClassVar[Mapping[str, str]] = {"sight_share": "shared_advantage"}


class CheckpointConfig(Config):
    """When and how many; 0 = never by this clock."""

    epochs: CountOrNone = 0
    seconds: NotNegative = 60.0
    windows: bool = False  # also whenever a window of trainer.window_env_steps is full
    keep: Annotated[int, Field(ge=2, le=1000)] = 3


class EvaluationConfig(Config):
    """Evaluation while training, in a process of its own, and of the last checkpoint when the run is over."""

    enabled: bool = False
    epochs: CountOrNone = 0
    seconds: NotNegative = 0.0
    episodes: Count = 10
    final_seconds: NotNegative = 600.0  # how long to wait at most for the evaluation of the last checkpoint; 0 = none
    replays_every_epochs: CountOrNone = 0  # an evaluation so long after the last one saves its first episode; 0 = none
    replay_weights: bool = False  # such a replay holds the policy too, so that it can play on in the viewer


class AnalysisConfig(Config):
    """Statistics of gradients and weights every so many epochs; 0 = off."""

    gradient_epochs: CountOrNone = 0
    weight_epochs: CountOrNone = 0


class MonitorConfig(Config):
    """How often a thread of its own looks at memory, CPU and GPU."""

    seconds: Positive = 1.0
    epochs: CountOrNone = 0  # in the metrics of every so many epochs; 0 = whenever there was a look since the last


class ProfilerConfig(Config):
    """Traces under traces/, and the timing tree of every K-th rollout. Steps are the rollout's, and minibatches."""

    enabled: bool = False
    interval_epochs: Count = 100
    wait_steps: CountOrNone = 1
    warmup_steps: CountOrNone = 1
    active_steps: Count = 3
    record_shapes: bool = False
    core: bool = True  # what phases the core's threads were in
    stacks: bool = False  # where in Python they were called; such traces are large
    rollout_timing: CountOrNone = 0


class TrackConfig(Config):
    """Copies of the metrics for other tools."""

    tensorboard: bool = False
    wandb: Literal["off", "offline", "online"] = "off"
    project: str = "gridmill"


class GuardConfig(Config):
    """When a run that goes wrong is warned about or stopped; warnings stop it only with stop = true."""

    max_kl: Positive = 0.5
    min_entropy: NotNegative = 1e-4
    min_explained_variance: float = -5.0
    stop: bool = False


class Run(Config):
    """One training run."""

    recipe: str
    run: Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$|^$")] = ""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    game: AnyGame
    evaluation_game: AnyGame | None = None  # what evaluation plays, if not the game that is learned in
    curriculum: CurriculumConfig = CurriculumConfig()  # variants of games to learn in; evaluation plays the game
    score: str = ""  # the statistic a table calls the score; empty = the game's own
    teacher: str = ""  # a script of the game whose actions are imitated (losses.clone); empty = none
    supervised_steps: CountOrNone = 0  # agent-steps before which losses that learn from advantages do not count
    players: Frozen[str, Share] = FrozenDict()  # who else plays: a script or a run's folder, and its share of the rows
    policy: PolicyConfig = PolicyConfig()
    losses: Frozen[str, Loss] = FrozenDict({"ppo": PPO(), "value": Value()})  # what is minimised: their sum
    optimizer: OptimizerConfig = OptimizerConfig()
    trainer: TrainerConfig = TrainerConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    analysis: AnalysisConfig = AnalysisConfig()
    monitor: MonitorConfig = MonitorConfig()
    profiler: ProfilerConfig = ProfilerConfig()
    track: TrackConfig = TrackConfig()
    guard: GuardConfig = GuardConfig()

    @field_validator("losses", mode="before")
    @classmethod
    def _losses(cls, losses: Any) -> Any:
        return loss_room.read(losses)

    @model_validator(mode="after")
    def _fits_together(self) -> Run:
        known = ("auto", *self.game.implementations())
        if self.trainer.env_impl not in known:
            raise ConfigError(
                f"expected {' or '.join(known)} for {self.game.name}, got {self.trainer.env_impl}", "$.trainer.env_impl"
            )
        for name, tasks in self.curriculum.sets.items():
            self._refuse_unlike(tasks.game or self.game, f"$.curriculum.sets.{name}.game")
        if self.curriculum.sets and self.trainer.env_impl == "reference":
            raise ConfigError("expected auto or native with a curriculum, got reference", "$.trainer.env_impl")
        if self.teacher:
            try:
                self.game.expect_script(self.teacher, "teacher")
            except ValueError as error:
                raise ConfigError(str(error).removeprefix("teacher: "), "$.teacher") from None
        for name, loss in self.losses.items():
            try:
                loss.check(self)
            except ConfigError as error:
                raise ConfigError(error.what, f"$.losses.{name}{error.path[1:]}") from None
        taught = [name for name, loss in self.losses.items() if loss.teaches()]
        if self.supervised_steps and not taught:
            raise ConfigError(
                "expected a loss that learns from a teacher, got none; add one: losses.clone.weight=1",
                "$.supervised_steps",
            )
        return self

    def _refuse_unlike(self, other: GameConfig, path: str) -> None:
        """Games that one batch plays have one kind and one number of agents."""
        for field in ("kind", "num_agents"):
            ours, theirs = getattr(self.game, field), getattr(other, field)
            if ours != theirs:
                raise ConfigError(f"expected {ours} as in the run's game, got {theirs}", f"{path}.{field}")

    @property
    def trained_games(self) -> tuple[GameConfig, ...]:
        """The games that a batch for training is made of: the run's own, and those whose variants are learned in."""
        own = [tasks.game for tasks in self.curriculum.sets.values() if tasks.game is not None]
        return (self.game, *(game for i, game in enumerate(own) if game != self.game and game not in own[:i]))

    def active_losses(self, now: Progress) -> dict[str, Loss]:
        """The losses that count now; those that learn from advantages wait until the supervised steps are over."""
        waiting = now.steps < self.supervised_steps
        active = {name: loss for name, loss in self.losses.items() if loss.active(now)}
        return {name: loss for name, loss in active.items() if not waiting or "advantages" not in loss.reads}

    @property
    def played_game(self) -> GameConfig:
        """The game that evaluation plays."""
        return self.game if self.evaluation_game is None else self.evaluation_game

    @classmethod
    def upgraded(cls, tree: Any) -> Any:
        return _with_kind_of_game(super().upgraded(tree))


# Games of the first format said nothing of their score; it went by their names.
_OLD_SCORES = {
    "arena": {"score": {"stat": "heart.get"}, "beside": ["battery.get", "ore.get"]},
    "navigation": {
        "score": {"stat": "heart.get", "per": "supply", "title": "hearts taken"},
        "beside": ["heart.get", "cell.visited"],
    },
    "cogsguard": {
        "score": {"stat": "cogs/aligned.junction.held", "per": "tick", "title": "junctions held"},
        "beside": ["cogs/aligned.junction.gained", "cogs/aligned.junction.lost", "heart.get"],
    },
}


def _with_kind_of_game(tree: Any) -> Any:
    """A saved run whose game says its kind and its score."""
    if not isinstance(tree, dict) or not isinstance(tree.get("game"), dict) or "kind" in tree["game"]:
        return tree
    game = tree["game"]
    if "time_max" in game:
        # Prospector was always evaluated in its public form.
        public = kinds.load({"kind": "prospector"}).tree()
        return tree | {"game": _whole({"kind": "prospector"} | game), "evaluation_game": public}
    family = next((name for name in _OLD_SCORES if str(game.get("name", "")).startswith(name)), "")
    return tree | {"game": _whole({"kind": "grid"} | _OLD_SCORES.get(family, {}) | game)}


def _whole(game: dict[str, Any]) -> dict[str, Any]:
    """A game with the settings it did not have yet; one that cannot be read is left for whoever reads it."""
    try:
        return kinds.load(game).tree()
    except ConfigError:
        return game


def own_code_in(tree: Any) -> list[str]:
    """The user's own code that plain data of a run names: to read the run, or to build its policy, executes it.

    Nothing is loaded here, so whoever was given a run by a stranger can refuse it first.
    """
    run = tree if isinstance(tree, dict) else {}
    losses, policy = (part if isinstance(part, dict) else {} for part in (run.get("losses"), run.get("policy")))
    named = [loss.get("kind") for loss in losses.values() if isinstance(loss, dict)]
    named += [policy.get("encoder"), policy.get("core")]
    return [text for text in named if isinstance(text, str) and user_code.is_own(text)]
