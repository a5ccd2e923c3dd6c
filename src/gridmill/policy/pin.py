"""A policy by its folder, or by its folder and its hash: `runs/x#0123456789ab` is that policy or none.

Whoever is given a policy by somebody is given its hash beside it: what was changed on the way is refused.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from gridmill.config.text import clipped

SHOWN = 12  # digits that are shown; eight are enough to name one


def split(text: str) -> tuple[Path, str]:
    """The folder, and the digits that its sha256 begins with; empty if none are said."""
    folder, hash_sign, digits = text.rpartition("#")
    if not hash_sign or os.path.exists(text):  # a folder may have the sign in its name
        return Path(text), ""
    if not re.fullmatch(r"[0-9a-f]{8,64}", digits):
        raise ValueError(f"expected 8 to 64 hex digits of a sha256 after #, got `{clipped(text, 400)}`")
    return Path(folder), digits
