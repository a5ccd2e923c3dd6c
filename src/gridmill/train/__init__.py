"""Training in memory: `trainer.Trainer` is a run without files; `gridmill.runs` runs it with logs and checkpoints.

What oneDNN may use is settled before torch comes.
"""

from gridmill.policy import onednn

onednn.settle()
