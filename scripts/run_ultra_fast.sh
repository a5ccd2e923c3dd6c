#!/usr/bin/env bash
# `gridmill train [RECIPE] [KEY=VALUE...] --preset ultra_fast` under the name the performance docs use; a checkout's own
# gridmill comes first.
PATH="$(dirname "${BASH_SOURCE[0]}")/../.venv/bin:$PATH"
[[ $# -gt 0 && $1 != *=* && $1 != -* ]] || set -- prospector "$@"
exec gridmill train "$@" --preset ultra_fast
