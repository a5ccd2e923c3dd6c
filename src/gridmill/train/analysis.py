"""Statistics of gradients and weights, every k epochs when asked for: is anything dead, flat or exploding?"""

from __future__ import annotations

import torch
from torch import Tensor

from gridmill.run import AnalysisConfig
from gridmill.train.trainer import Trainer

SAMPLE = 1024  # rows that dead units are looked for in


def analyse(config: AnalysisConfig, trainer: Trainer) -> dict[str, float]:
    """The metrics that are due after this epoch."""
    found: dict[str, float] = {}
    if config.gradient_epochs and trainer.epochs % config.gradient_epochs == 0 and trainer.learned is not None:
        found |= gradients(trainer.policy, trainer.learned.gradients)
    if config.weight_epochs and trainer.epochs % config.weight_epochs == 0:
        found |= weights(trainer.policy)
        if not trainer.run.policy.network:  # one of the user's own has no part that is known to be the encoder
            found |= dead_units(trainer)
    return found


def gradients(policy: torch.nn.Module, newest: list[Tensor]) -> dict[str, float]:
    """Mean, variance and norm of the last update's gradients, per module."""
    found: dict[str, float] = {}
    for name, parts in _by_module(policy, newest).items():
        flat = torch.cat([part.flatten() for part in parts])
        figures = {"mean": flat.mean(), "variance": flat.var(), "norm": flat.norm()}
        found |= {f"gradient/{name}.{kind}": float(value) for kind, value in figures.items()}
    return found


def weights(policy: torch.nn.Module) -> dict[str, float]:
    """Norms of modules, and of each matrix its effective rank: e to the entropy of its singular values' shares."""
    found: dict[str, float] = {}
    with torch.no_grad():
        for name, parts in _by_module(policy, list(policy.parameters())).items():
            found[f"weight/{name}.norm"] = float(torch.cat([part.flatten() for part in parts]).norm())
        for name, matrix in policy.named_parameters():
            if matrix.ndim == 2 and min(matrix.shape) > 1:
                found[f"weight/{name}.rank"] = effective_rank(matrix)
    return found


def effective_rank(matrix: Tensor) -> float:
    """Roy and Vetterli 2007. Of a tall matrix the small square one has the same singular values, squared."""
    tall = matrix.double() if matrix.shape[0] >= matrix.shape[1] else matrix.double().t()
    values = torch.linalg.eigvalsh(tall.t() @ tall).clamp(min=0).sqrt()
    share = values / values.sum().clamp(min=1e-12)
    return float(torch.exp(-(share * share.clamp(min=1e-12).log()).sum()))


@torch.no_grad()
def dead_units(trainer: Trainer) -> dict[str, float]:
    """The share of the encoder's units that are zero for every one of some stored observations."""
    x = trainer.experience
    obs = x.obs.reshape(-1, *x.obs.shape[2:])[:SAMPLE].to(trainer.device)
    active = (trainer.policy.encoder(obs) != 0).any(0)
    return {"weight/encoder.dead": float((~active).float().mean())}


def _by_module(policy: torch.nn.Module, tensors: list[Tensor]) -> dict[str, list[Tensor]]:
    grouped: dict[str, list[Tensor]] = {}
    for (name, _), tensor in zip(policy.named_parameters(), tensors, strict=True):
        grouped.setdefault(name.split(".")[0], []).append(tensor.detach())
    return grouped
