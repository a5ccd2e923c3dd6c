#!/usr/bin/env bash
# The native tests, golden hashes included, compiled for aarch64 and run under qemu: the same episodes on another kind of CPU.
# Installs nothing: what is missing is one line and exit 2.
set -euo pipefail
cd "$(dirname "$0")/.."
missing=()
command -v aarch64-linux-gnu-g++ > /dev/null || missing+=(g++-aarch64-linux-gnu)
command -v qemu-aarch64 > /dev/null || missing+=(qemu-user)
if [ ${#missing[@]} -gt 0 ]; then
  echo "test-aarch64 needs: apt-get install ${missing[*]}" >&2
  exit 2
fi
cmake --preset aarch64 > /dev/null
cmake --build --preset aarch64
run=(qemu-aarch64 -L /usr/aarch64-linux-gnu build/aarch64/native_tests)
"${run[@]}"
"${run[@]}" long_golden
