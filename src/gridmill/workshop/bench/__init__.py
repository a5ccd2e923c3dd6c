"""`gridmill bench step | rollout | train`: how fast, beside what bounds it and beside others."""
