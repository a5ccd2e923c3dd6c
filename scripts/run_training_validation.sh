#!/usr/bin/env bash
# `gridmill validate smoke|soak|N` under the name the performance docs use; a checkout's own gridmill comes first.
PATH="$(dirname "${BASH_SOURCE[0]}")/../.venv/bin:$PATH"
exec gridmill validate "$@"
