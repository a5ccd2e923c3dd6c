#!/usr/bin/env bash
# The Python tests of the engine on an extension built with ASan and UBSan. The base interpreter runs it with the venv's packages on
# its path but not the venv's editable install, and with a copy of the package around the instrumented extension.
# Arguments, if any, are what pytest runs instead: scripts/test_asan_python.sh -m long tests/grid/test_fuzz.py
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/asan-python
.venv/bin/cmake -S . -B $out -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGRIDMILL_PYTHON=ON -DGRIDMILL_NATIVE_TESTS=OFF \
  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" -DGRIDMILL_SANITIZE=address,undefined -DPython_EXECUTABLE="$PWD/.venv/bin/python" > /dev/null
.venv/bin/cmake --build $out | tail -n 1
copy=$(mktemp -d "$out/site.XXXXXX")  # its own: several of these may run at once
trap 'rm -rf "$copy"' EXIT
cp -r src/gridmill "$copy/gridmill"
cp $out/_native*.so "$copy/gridmill/"
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
base=$(.venv/bin/python -c 'import sys; print(sys._base_executable)')
# Leaks are looked for by row S3; the interpreter itself leaks too much to tell here. Forked children and child
# processes of the command-line tests keep the preload, so they are checked as well.
export LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so)"
export ASAN_OPTIONS=detect_leaks=0 PYTHONPATH="$copy:$site" PYTHONMALLOC=malloc
"$base" -c "import gridmill._native as n; assert 'asan-python' in n.__file__, n.__file__"
[ $# -gt 0 ] || set -- tests/env tests/adapters tests/grid tests/contracts/test_buffers.py tests/reliability/test_seeds.py \
  tests/reliability/test_forks_and_exits.py tests/reliability/test_threads_and_lanes.py tests/reliability/test_observations_equal_reference.py \
  tests/reliability/test_world_faults.py tests/reliability/test_random_configs.py tests/reliability/test_random_maps.py \
  tests/reliability/test_bad_actions.py tests/reliability/test_api_misuse.py tests/prospector \
  tests/reliability/test_threads_and_lanes_prospector.py
"$base" -m pytest -p no:cacheprovider "$@"
