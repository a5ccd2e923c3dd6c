"""Run: the one frozen record that says everything about a training run; a recipe returns it, a checkpoint keeps it.

Settings only, no torch: recipes, `train --dry-run` and `recipes` work without it. What reads a setting is named beside
it: policy/ builds networks from PolicyConfig, train/ does the rest. A number that may change over a run is a `Number`:
a plain number or a Schedule.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from gridmill.config import Config, ConfigError
from gridmill.env.kind import GameConfig
from gridmill.games.kinds import AnyGame

Count = Annotated[int, Field(ge=1, le=2**48)]
CountOrNone = Annotated[int, Field(ge=0, le=2**48)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0, le=1e12)]
NotNegative = Annotated[float, Field(ge=0.0, le=1e12)]


class Schedule(Config):
    """A number on its way from `start` to `end` while something goes from `begin` to `until`; still before and after.

    `over` is agent steps, epochs, or the name of a metric (`metric:score`); until = 0 is the end of the run. With
    shape `stairs` it moves in `stairs` equal steps.
    """

    start: float
    end: float
    shape: Literal["linear", "cosine", "stairs"] = "linear"
    over: Annotated[str, Field(pattern=r"^(steps|epochs|metric:.+)$")] = "steps"
    begin: float = 0.0
    until: float = 0.0
    stairs: Count = 10

    @model_validator(mode="after")
    def _has_an_end(self) -> Schedule:
        if self.over.startswith("metric:") and self.until == self.begin:
            raise ConfigError("expected begin and until to differ for a metric", "$.until")
        return self


def _number_kind(value: Any) -> str:
    return "schedule" if isinstance(value, Schedule | dict) else "number"


Number = Annotated[Annotated[float, Tag("number")] | Annotated[Schedule, Tag("schedule")], Discriminator(_number_kind)]


class PolicyConfig(Config):
    """The network: encoder -> core -> actor and critic. Sizes of inputs and outputs come from the environment."""

    encoder: Literal["bag", "cnn", "attend", "mlp"] = "bag"
    core: Literal["none", "scan", "lstm", "gru"] = "scan"
    hidden: Annotated[int, Field(ge=16, le=4096, multiple_of=16)] = 128
    layers: Annotated[int, Field(ge=0, le=8)] = 1  # dense layers after the encoder's first
    latents: Annotated[int, Field(ge=1, le=64)] = 8  # of the encoder `attend`
    heads: Annotated[int, Field(ge=1, le=64)] = 4  # of the encoder `attend`
    actor_gain: Positive = 0.01  # of the initial weights
    start: str = ""  # a run or checkpoint whose weights a new run begins with; words of another game are found by name

    @model_validator(mode="after")
    def _divides(self) -> PolicyConfig:
        if self.encoder == "attend" and self.hidden % self.heads:
            raise ConfigError(
                f"expected hidden to be a multiple of heads = {self.heads}, got {self.hidden}", "$.hidden"
            )
        return self


class PPO(Config):
    """The clipped surrogate and the entropy bonus (Schulman et al. 2017)."""

    weight: Number = 1.0
    clip: Number = 0.2
    entropy_weight: Number = 0.01


class Value(Config):
    """The critic's squared error; clip > 0 keeps it near the value it had when the step was taken."""

    weight: Number = 0.5
    clip: NotNegative = 0.0


class Losses(Config):
    """What is minimised: the sum of these."""

    ppo: PPO = PPO()
    value: Value = Value()


class OptimizerConfig(Config):
    """Adam, AdamW, Muon (matrices; AdamW for the rest), or schedule-free AdamW."""

    kind: Literal["adam", "adamw", "muon", "schedule_free"] = "adam"
    learning_rate: Number = 1e-3
    beta1: Share = 0.9
    beta2: Share = 0.999
    eps: Positive = 1e-5
    weight_decay: NotNegative = 0.0
    max_grad_norm: NotNegative = 0.5  # 0 = off


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
    gamma: Share = 0.99
    gae_lambda: Share = 0.95
    rho_clip: Positive = 1.0  # of V-trace
    c_clip: Positive = 1.0
    target_kl: NotNegative = 0.0  # 0 = off; an epoch's remaining minibatches are skipped above it
    normalize_advantages: bool = True
    reward: Literal["raw", "scaled", "centered"] = "raw"
    sight_share: Number = 0.0  # of the advantages of all agents that an agent sees, added to its own
    prio_alpha: Share = 0.0  # 0 = every segment once, shuffled
    prio_beta0: Share = 0.2
    desync_episodes: bool = True
    window_env_steps: CountOrNone = 0  # metrics per so many steps of single worlds; 0 = off


class CheckpointConfig(Config):
    """When and how many; 0 = never by this clock."""

    epochs: CountOrNone = 0
    seconds: NotNegative = 60.0
    keep: Annotated[int, Field(ge=2, le=1000)] = 3


class EvaluationConfig(Config):
    """In-training evaluation, in a process of its own."""

    enabled: bool = False
    epochs: CountOrNone = 0
    seconds: NotNegative = 0.0
    episodes: Count = 10
    replays_every_epochs: CountOrNone = 0  # an evaluation so long after the last one saves its first episode; 0 = none


class AnalysisConfig(Config):
    """Statistics of gradients and weights every so many epochs; 0 = off."""

    gradient_epochs: CountOrNone = 0
    weight_epochs: CountOrNone = 0


class MonitorConfig(Config):
    """How often memory, CPU and GPU are looked at."""

    seconds: Positive = 5.0


class ProfilerConfig(Config):
    """Traces of torch's profiler under traces/, and the timing tree of every K-th rollout."""

    enabled: bool = False
    interval_epochs: Count = 100
    wait_steps: CountOrNone = 1
    warmup_steps: CountOrNone = 1
    active_steps: Count = 3
    record_shapes: bool = False
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
    score: str = ""  # the statistic a table calls the score; empty = the game's own
    policy: PolicyConfig = PolicyConfig()
    losses: Losses = Losses()
    optimizer: OptimizerConfig = OptimizerConfig()
    trainer: TrainerConfig = TrainerConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    analysis: AnalysisConfig = AnalysisConfig()
    monitor: MonitorConfig = MonitorConfig()
    profiler: ProfilerConfig = ProfilerConfig()
    track: TrackConfig = TrackConfig()
    guard: GuardConfig = GuardConfig()

    @model_validator(mode="after")
    def _fits_together(self) -> Run:
        vector = self.game.obs_kind == "vector"
        if vector != (self.policy.encoder == "mlp"):
            fits = "mlp" if vector else "bag, cnn or attend"
            raise ConfigError(
                f"expected encoder {fits} for {self.game.name}, got {self.policy.encoder}", "$.policy.encoder"
            )
        known = ("auto", *self.game.implementations())
        if self.trainer.env_impl not in known:
            raise ConfigError(
                f"expected {' or '.join(known)} for {self.game.name}, got {self.trainer.env_impl}", "$.trainer.env_impl"
            )
        return self

    @property
    def played_game(self) -> GameConfig:
        """The game that evaluation plays."""
        return self.game if self.evaluation_game is None else self.evaluation_game

    @classmethod
    def load(cls, data: Any) -> Self:
        return super().load(upgrade(data))


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


def upgrade(data: Any) -> Any:
    """The plain data of a run as it is written today, from whatever version wrote it."""
    if not isinstance(data, dict) or not isinstance(data.get("game"), dict) or "kind" in data["game"]:
        return data
    game = data["game"]
    if "time_max" in game:
        # Prospector was always evaluated in its public form.
        return data | {"game": {"kind": "prospector"} | game, "evaluation_game": {"kind": "prospector"}}
    family = next((name for name in _OLD_SCORES if str(game.get("name", "")).startswith(name)), "")
    return data | {"game": {"kind": "grid"} | _OLD_SCORES.get(family, {}) | game}
