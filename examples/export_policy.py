"""A trained policy in a program without gridmill's trainer: exported as ONNX, played by onnxruntime (extra `export`).

gridmill policy export first policy.onnx
"""

import json

import numpy as np
import onnxruntime

import gridmill
from gridmill import policy, recipes
from gridmill.runs import overrides, train


def main(ticks: int = 20) -> None:
    run = overrides.apply(recipes.build("ci"), ["run=exported", "trainer.total_timesteps=9_216"])
    policy.export(train(run, panel=False, fresh=True).folder, "policy.onnx")

    session = onnxruntime.InferenceSession("policy.onnx", providers=["CPUExecutionProvider"])
    known = json.loads(session.get_modelmeta().custom_metadata_map["gridmill"])
    env = gridmill.make(run.game, num_worlds=2, seed=0, masks=True)
    assert known["actions"] == env.action_names
    env.reset()
    state = np.zeros((env.num_rows, known["inputs"]["state"][1][1]), np.float32)
    starts = np.ones(env.num_rows, np.uint8)  # 1 where an episode begins: the state is forgotten there
    for _ in range(ticks):
        inputs = {"obs": env.obs, "state": state, "episode_starts": starts, "masks": env.masks}
        logits, value, state = session.run(["logits", "value", "next_state"], inputs)
        env.step(logits.argmax(-1))
        starts = (env.terminals | env.truncations).astype(np.uint8)
    print(f"{known['game']}: {ticks * env.num_rows} actions by {known['sha256'][:12]}, mean value {value.mean():.3f}")


if __name__ == "__main__":
    main()
