#!/usr/bin/env bash
# The commands of docs/numbers.md and docs/lab/, each once; what it printed goes to bench/results/NAME.txt. Several
# minutes; run it on a quiet machine. A benchmark that calls itself unstable (exit code 1) is kept as such. The page is
# made of bench/results/tables/*.json and train_*.json: put the new figures there, then run scripts/numbers_page.py.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
mkdir -p bench/results
measure() {
  local name=$1; shift
  echo "== $name: $*"
  { echo "\$ $*"; "$@"; echo "exit code $?"; } 2>&1 | tee "bench/results/$name.txt"
}
measure peers_20 gridmill bench step --peers --worlds 64 --agents 20 --iterations 1000 --rounds 15 --warmup 1000
measure peers_100 gridmill bench step --peers --worlds 64 --agents 100 --iterations 200 --rounds 15 --warmup 200
measure peers_20_one_world gridmill bench step --peers --agents 20 --iterations 5000 --rounds 10 --warmup 5000
measure worlds gridmill bench step --sweep worlds=64,256,1024,4096 --iterations 1500 --rounds 15 --warmup 200
measure agents gridmill bench step --sweep agents=4,20,100,1000 --worlds 16 --map-size 100 --iterations 1000 --rounds 10 --warmup 100
measure threads gridmill bench step --sweep threads=1,2 --worlds 512 --iterations 400 --rounds 20 --warmup 100
measure overhead_64 gridmill bench step --overhead --worlds 64 --iterations 1500 --rounds 20 --warmup 500
measure overhead_1 gridmill bench step --overhead --worlds 1 --iterations 40000 --rounds 20 --warmup 5000
measure instructions gridmill bench step --instructions --worlds 64 --window disc --iterations 500 --rounds 10 --warmup 500
measure games gridmill bench step --sweep game=toy,arena,arena_basic_easy_shaped,navigation,extractor_hub,cogsguard_arena,cogsguard --worlds 64 --iterations 400 --rounds 15 --warmup 300
measure games_threads gridmill bench step --game arena --sweep threads=1,2 --worlds 512 --iterations 200 --rounds 15 --warmup 50
measure games_profile gridmill profile step --game arena --game cogsguard --worlds 64 --steps 3000 --warmup 300
measure profile gridmill profile step --game toy --worlds 64 --steps 4000 --warmup 500
measure validation env GRIDMILL_OBS_VALIDATION=1 gridmill bench step --worlds 64 --iterations 160 --rounds 5 --warmup 0
measure prospector_worlds gridmill bench step --game prospector --sweep worlds=64,256,1024,4096 --iterations 1000 --rounds 12 --warmup 300
measure prospector_threads gridmill bench step --game prospector --sweep threads=1,2 --worlds 1024 --iterations 300 --rounds 20 --warmup 100
measure prospector_profile gridmill profile step --game prospector --worlds 64 --steps 20000 --warmup 2000
measure prospector_native gridmill throughput --mode env_only --worlds 1024 --target-steps-per-sec 1000000
measure prospector_reference gridmill throughput --mode env_only --env-impl reference --worlds 16 --steps 5000 --warmup 500 --repeats 5
measure prospector_bots gridmill eval prospector --policy script:greedy_miner --policy script:cautious_scanner --policy script:market_timer --episodes 200 --seed 7
measure prospector_shuttle gridmill eval prospector --policy script:shuttle --policy random --episodes 200 --seed 1000000
measure prospector_instructions gridmill bench step --game prospector --instructions --worlds 64 --iterations 500 --rounds 5 --warmup 500
measure train_lstm gridmill bench train --peers --threads 1,2 --rounds 9 --output bench/results/train_lstm.json trainer.async_factor=1
measure train_mlp gridmill bench train --peers --threads 1,2 --rounds 9 --output bench/results/train_mlp.json trainer.async_factor=1 policy.core=none
measure rollout gridmill bench rollout --peers --threads 1,2 --rounds 15
measure prospector_train gridmill throughput --mode trainer --worlds 1024 --threads 2 --steps 655360 --target-steps-per-sec 100000
