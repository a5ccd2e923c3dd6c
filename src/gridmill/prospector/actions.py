"""The sizes of Prospector's interface, and its 69 actions by name, in the order of their ids."""

from __future__ import annotations

OBS_SIZE, NUM_ACTIONS = 260, 69
COMMODITIES = ("iron", "nickel", "water_ice", "pge", "rare_isotopes", "volatiles")

ACTION_NAMES: tuple[str, ...] = (
    *(f"travel_{slot}" for slot in range(6)),
    "hold",
    "emergency_burn",
    "wide_scan",
    "focused_scan",
    "deep_scan",
    "threat_listen",
    *(f"select_{slot}" for slot in range(16)),
    "mine_conservative",
    "mine_standard",
    "mine_aggressive",
    "stabilize",
    "refine",
    "active_cooldown",
    "tool_maintenance",
    "hull_patch",
    *(f"jettison_{name}" for name in COMMODITIES),
    "dock",
    *(f"sell_{name}_{share}" for name in COMMODITIES for share in (25, 50, 100)),
    "buy_fuel_small",
    "buy_fuel_medium",
    "buy_fuel_large",
    "buy_repair_kit",
    "buy_stabilizer",
    "buy_decoy",
    "overhaul",
    "cash_out",
)
