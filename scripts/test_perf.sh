#!/usr/bin/env bash
# Rebuilds the native core in release mode, checks that the core that runs is the one just built, then measures:
#   scripts/test_perf.sh ARGS   is   gridmill bench step ARGS
# Relative paths in ARGS are those of the caller.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="$root/.venv/bin/python"

make --no-print-directory -C "$root" build

"$python" - "$root/build/Release" <<'CHECK'
import hashlib
import sys
from pathlib import Path

from gridmill import _native

loaded = Path(_native.__file__)
built = Path(sys.argv[1]) / loaded.name
if not built.is_file():
    sys.exit(f"test_perf.sh: the build left no {loaded.name} in build/Release")
if _native.build_info()["build_type"] != "Release":
    sys.exit(f"test_perf.sh: expected a Release build, got {_native.build_info()['build_type']}")
digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in (built, loaded)]
if digests[0] != digests[1]:
    sys.exit("test_perf.sh: the core that runs is not the one just built; remove .venv and try again")
print(f"core {digests[0][:12]}: built and running are the same")
CHECK

exec "$python" -m gridmill.cli bench step "$@"
