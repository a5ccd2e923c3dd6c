"""Run: the one frozen record that says everything about a training run; a recipe returns it, a checkpoint keeps it.

Settings only, no torch: recipes, `train --dry-run` and `recipes` work without it. Those of the network stand in
policy/, those of each loss beside its arithmetic in losses/; train/ reads the rest. A number that may change over a
run is a `Number`: a plain number or a Schedule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from gridmill import losses as loss_room
from gridmill.config import Config, ConfigError, Frozen, FrozenDict, describe, user_code
from gridmill.config.base import NAME
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
    "RanksConfig",
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


def _agents(part: Any) -> Any:
    number = isinstance(part, int | float) and not isinstance(part, bool) and 0 < part <= 1
    agents = isinstance(part, list | tuple) and all(isinstance(a, int) and not isinstance(a, bool) for a in part)
    if not (number or agents or isinstance(part, str)):
        raise ConfigError(f"expected a share in (0, 1], agents such as [0, 1] or a team, got {part!r:.60}")
    return part


AgentsOf = Annotated[float | tuple[int, ...] | str, BeforeValidator(_agents), describe.Takes("share, agents or team")]


OPTIMIZERS = ("adam", "adamw", "muon", "schedule_free")


class OptimizerConfig(Config):
    """Adam, AdamW, Muon (matrices; AdamW for the rest), schedule-free AdamW, or a custom optimizer."""

    kind: Annotated[
        str,
        AfterValidator(lambda kind: user_code.one_of(kind, OPTIMIZERS)),
        describe.Takes(", ".join([*OPTIMIZERS, "FILE.py:Class"]), OPTIMIZERS),
    ] = "adam"
    """Adam, AdamW, Muon (for matrices; AdamW for the rest), schedule-free AdamW, or a torch optimizer of your own."""
    learning_rate: Number = 1e-3
    """Step size of the updates."""
    beta1: ShareNumber = 0.9
    """Decay of the running mean of gradients; Muon has its own momentum."""
    beta2: ShareNumber = 0.999
    """Decay of the running mean of squared gradients."""
    eps: PositiveNumber = 1e-5
    """Added to the denominator of an update, so that it is never 0."""
    weight_decay: NotNegativeNumber = 0.0
    """How strongly weights decay towards 0; with adam as part of the gradient (L2)."""
    max_grad_norm: NotNegativeNumber = 0.5
    """The gradients of an update are scaled down to this norm; 0 = off."""
    clip_range: NotNegativeNumber = 0.0
    """After every update all weights are clipped to +- this; 0 = off."""


class TrainerConfig(Config):
    """Sizes and the algorithm. 0 means: chosen from the others or from the machine."""

    total_timesteps: Count = 10_000_000
    """Agent-steps to train for; the run ends with the first whole epoch that reaches this number."""
    num_worlds: Count = 64
    """Worlds in the batch; rows = worlds x agents."""
    threads: Annotated[int, Field(ge=0, le=4096)] = 0
    """Threads of the core, and the same number of workers for the network; 0 = the physical cores, at most 16."""
    async_factor: Annotated[int, Field(ge=1, le=64)] = 2
    """Lanes of the batch: while one steps, the policy acts in another."""
    batch_size: Count = 65_536
    """Agent-steps per epoch, in whole segments of all rows."""
    minibatch_size: Count = 8_192
    """Agent-steps per update."""
    max_microbatch: CountOrNone = 0
    """Agent-steps whose gradients are computed at a time, to save memory; 0 = chosen automatically."""
    bptt_horizon: Count = 64
    """Ticks per segment: how far gradients go back through a recurrent core."""
    update_epochs: Annotated[int, Field(ge=1, le=100)] = 1
    """Passes over each batch."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device of the network; auto = the GPU if there is one."""
    compile: Literal["off", "default", "reduce-overhead", "max-autotune"] = "off"
    """Compile the network with torch.compile in this mode."""
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Number format of the network's matrix products; fp16, with loss scaling, is for GPUs."""
    tf32: bool = True
    """Allow TF32 in matrix products on a GPU."""
    env_impl: Literal["auto", "native", "reference"] = "auto"
    """Which implementation of the game; reference = plain Python, for games that have it."""
    experience_device: Literal["auto", "cpu"] = "auto"
    """Where a batch is stored; cpu saves GPU memory."""
    masks: bool = True
    """Whether actions that cannot succeed are masked out."""
    advantage: Literal["gae", "vtrace"] = "gae"
    """How advantages are estimated."""
    gamma: ShareNumber = 0.99
    """Discount: the weight of the next tick's value."""
    gae_lambda: ShareNumber = 0.95
    """How far advantages look ahead: 0 = one tick, 1 = the whole segment."""
    rho_clip: PositiveNumber = 1.0
    """V-trace: upper bound of the importance ratio in the temporal difference."""
    c_clip: PositiveNumber = 1.0
    """V-trace: upper bound of the importance ratio that carries differences back in time."""
    target_kl: NotNegativeNumber = 0.0
    """The remaining minibatches of an epoch are skipped above this KL divergence; 0 = off."""
    normalize_advantages: bool = True
    """Whether advantages are scaled to mean 0 and standard deviation 1."""
    signal: tuple[SignalTerm, ...] = ()
    """What to learn from instead of the game's rewards: a list of values with weights; none = the rewards."""
    reward: Literal["raw", "scaled", "centered"] = "raw"
    """How rewards are transformed: not at all, divided by the deviation of returns, or with their mean subtracted."""
    reward_time_scale: PositiveNumber = 2e6
    """Agent-steps over which the statistics of scaled and centered rewards are averaged."""
    reward_clip: NotNegativeNumber = 10.0
    """Scaled rewards are clipped to +- this; 0 = off."""
    shared_advantage: Number = 0.0
    """Weight of the advantages of all visible agents that is added to an agent's own advantage."""
    prio_alpha: ShareNumber = 0.0
    """How strongly segments with large advantages are preferred; 0 = every segment once, shuffled."""
    prio_beta0: ShareNumber = 0.2
    """How much of that preference importance weights correct at the start; 1 at the end of the run."""
    desync_episodes: bool = True
    """Whether first episodes have different lengths, so that worlds do not all reset at the same tick."""
    window_env_steps: CountOrNone = 0
    """Additional metrics for every N environment steps; 0 = off."""
    pieces: Annotated[int, Field(ge=0, le=4096)] = 0
    """Number of equal parts of worlds and minibatches whose sums are added up in order; 0 = one per process."""

    renamed: ClassVar[Mapping[str, str]] = {"sight_share": "shared_advantage"}


class RanksConfig(Config):
    """Several processes that train one run together, started by torchrun."""

    timeout: Annotated[float, Field(ge=10.0, le=86_400.0)] = 600.0
    """Seconds that processes wait for each other; then the run ends and names the one that hangs."""
    compare_epochs: CountOrNone = 10
    """Compare the weights of all processes every N epochs; 0 = never."""


class CheckpointConfig(Config):
    """When and how many; 0 = never by this clock."""

    epochs: CountOrNone = 0
    """Save every N epochs; 0 = not by epochs."""
    seconds: NotNegative = 60.0
    """Save every N seconds; 0 = not by time."""
    windows: bool = False
    """Also save whenever a window of trainer.window_env_steps is full."""
    keep: Annotated[int, Field(ge=2, le=1000)] = 3
    """How many of the newest checkpoints to keep; the best by score is kept as well."""


class EvaluationConfig(Config):
    """Evaluation while training, in a process of its own, and of the last checkpoint when the run is over."""

    enabled: bool = False
    """Whether checkpoints are evaluated during training."""
    epochs: CountOrNone = 0
    """Evaluate every N epochs; 0 = not by epochs."""
    seconds: NotNegative = 0.0
    """Evaluate every N seconds; 0 = not by time. With neither, every checkpoint is evaluated."""
    episodes: Count = 10
    """Episodes per evaluation."""
    final_seconds: NotNegative = 600.0
    """Maximum time to wait for the evaluation of the last checkpoint; 0 = do not evaluate it."""
    replays_every_epochs: CountOrNone = 0
    """Minimum epochs between replays: an evaluation after that saves its first episode; 0 = no replays."""
    replay_weights: bool = False
    """Whether such a replay also stores the policy, so that it can continue playing in the viewer."""


class AnalysisConfig(Config):
    """Statistics of gradients and weights every N epochs; 0 = off."""

    gradient_epochs: CountOrNone = 0
    """Compute gradient statistics every N epochs; 0 = off."""
    weight_epochs: CountOrNone = 0
    """Compute weight statistics every N epochs; 0 = off."""


class MonitorConfig(Config):
    """How often a thread of its own looks at memory, CPU and GPU."""

    seconds: Positive = 1.0
    """Seconds between two samples of memory, CPU and GPU use."""
    epochs: CountOrNone = 0
    """Write them to the metrics every N epochs; 0 = whenever there is a new sample."""


class ProfilerConfig(Config):
    """Traces under traces/, and the timing tree of every K-th rollout. Steps are the rollout's, and minibatches."""

    enabled: bool = False
    """Whether traces are written to traces/."""
    interval_epochs: Count = 100
    """Epochs between two traces."""
    wait_steps: CountOrNone = 1
    """Steps of the rollout, and minibatches, to wait before a trace begins."""
    warmup_steps: CountOrNone = 1
    """Steps, and minibatches, for the profiler to warm up."""
    active_steps: Count = 3
    """Steps, and minibatches, to trace."""
    record_shapes: bool = False
    """Whether tensor shapes are recorded."""
    memory: bool = False
    """Whether tensor allocations are recorded; then torch traces only the trainer's thread."""
    core: bool = True
    """Whether the trace shows which phase each thread of the core was in."""
    stacks: bool = False
    """Whether the trace contains Python call stacks; such traces are large."""
    rollout_timing: CountOrNone = 0
    """Write the timing tree of every N-th rollout to the log; 0 = off."""


class TrackConfig(Config):
    """Copies of the metrics for other tools."""

    tensorboard: bool = False
    """Whether metrics are copied for TensorBoard."""
    wandb: Literal["off", "offline", "online"] = "off"
    """Whether metrics are copied to Weights & Biases."""
    project: str = "gridmill"
    """The Weights & Biases project."""


class GuardConfig(Config):
    """When a run that goes wrong is warned about or stopped; warnings stop it only with stop = true."""

    max_kl: Positive = 0.5
    """Warn above this KL divergence between the policies before and after an epoch."""
    min_entropy: NotNegative = 1e-4
    """Warn below this entropy of the policy."""
    min_explained_variance: float = -5.0
    """Warn below this explained variance of the critic."""
    stop: bool = False
    """Whether a warning stops the run."""


class Run(Config):
    """One training run."""

    recipe: str
    """The recipe that the run was created from."""
    run: Annotated[str, Field(max_length=200, pattern=NAME)] = ""
    """Name of the run and of its folder; empty = recipe and time."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of worlds, actions, minibatches and weights."""
    game: AnyGame
    """The game to train, by name, by file or as JSON; docs/words.md lists its parts."""
    evaluation_game: AnyGame | None = None
    """The game to evaluate in, if it is not the training game."""
    curriculum: CurriculumConfig = CurriculumConfig()
    """Variants of games to learn in; evaluation plays the game."""
    score: str = ""
    """The statistic to use as the score; empty = the game's own score."""
    teacher: str = ""
    """A script of the game to imitate (losses.clone); empty = none."""
    supervised_steps: CountOrNone = 0
    """Losses that use advantages are inactive for this many agent-steps."""
    players: Frozen[str, AgentsOf] = FrozenDict()
    """Other players (a script, a run's folder, a file) and their agents: a share, numbers or a team."""
    policy: PolicyConfig = PolicyConfig()
    """The network."""
    losses: Frozen[str, Loss] = FrozenDict({"ppo": PPO(), "value": Value()})
    """The losses whose weighted sum is minimized."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """How weights are updated."""
    trainer: TrainerConfig = TrainerConfig()
    """Sizes and the algorithm."""
    ranks: RanksConfig = RanksConfig()
    """Several processes that train together."""
    checkpoint: CheckpointConfig = CheckpointConfig()
    """When the run is saved."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """When the run is evaluated."""
    analysis: AnalysisConfig = AnalysisConfig()
    """Statistics of gradients and weights."""
    monitor: MonitorConfig = MonitorConfig()
    """Looks at memory, CPU and GPU."""
    profiler: ProfilerConfig = ProfilerConfig()
    """Traces and timing trees."""
    track: TrackConfig = TrackConfig()
    """Copies of the metrics for other tools."""
    guard: GuardConfig = GuardConfig()
    """When a run that goes wrong is warned about or stopped."""

    def __repr__(self) -> str:
        named = f" {self.run}" if self.run else ""
        return f"<Run{named}: {self.recipe}, {self.game.name}, seed {self.seed}, {self.fingerprint()}>"

    @field_validator("policy", mode="before")
    @classmethod
    def _policy(cls, policy: Any) -> Any:
        """A text is a whole network of the user's own."""
        return {"network": policy} if isinstance(policy, str) else policy

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
        if self.policy.network and self.optimizer.kind == "muon":  # which takes the matrices inside of parts of ours
            raise ConfigError("expected another optimizer with your own network, got muon", "$.optimizer.kind")
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


def settings() -> list[describe.Setting]:
    """Every setting of a run, also those of losses that ship and that a run need not have."""
    found: list[describe.Setting] = []
    for setting in describe.settings(Run):
        if setting.path.startswith("losses.NAME."):
            continue
        found.append(setting)
        if setting.path == "losses":
            for name in loss_room.names():
                kind = user_code.find(name, loss_room.__name__, Loss, "loss")
                found += describe.settings(kind, f"losses.{name}")
    return found
