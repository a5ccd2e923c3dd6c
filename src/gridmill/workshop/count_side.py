"""What `gridmill gate` counts instructions of: one batch of the core, stepped with actions drawn ahead.

Started as a file with `-I -S`, so that nothing is loaded but NumPy and the extension: under valgrind everything else
would take minutes. The order is a JSON file; the child says `ready`, waits for a line, steps and leaves at once.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path

if __name__ == "__main__":
    order = json.loads(Path(sys.argv[1]).read_text())
    sys.path.insert(0, order["packages"])
    import numpy as np

    spec = importlib.util.spec_from_file_location("gridmill._native", order["native"])
    assert spec is not None
    assert spec.loader is not None
    native = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(native)
    batch = getattr(native, order["batch"])(order["games"], order["names"], **order["options"])
    batch.reset(order["options"]["seed"])
    actions = batch.arrays()["actions"]
    drawn = np.random.default_rng(0).integers(0, batch.num_actions, (64, len(actions))).astype(np.int32)
    for k in range(order["warmup"]):
        actions[:] = drawn[k % 64]
        batch.step()
    print("ready", flush=True)
    sys.stdin.readline()
    for k in range(order["steps"]):
        actions[:] = drawn[k % 64]
        batch.step()
    os._exit(0)  # nothing more to count
