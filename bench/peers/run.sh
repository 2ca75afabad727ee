#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything in this folder beside lockstep, in turn, in half an hour on two processors without other work:
#
#     PYTHON=/tmp/peers/bin/python LOCKSTEP_DATA=FOLDER bash bench/peers/run.sh build/cpu-release OUT
#
# OUT gets the figures of each script, and results.json: all of them, with the machine, compiler and commit.
# Without LOCKSTEP_DATA (boltzmann-28, iwae-mnist) only targets that need no data are measured.
set -euo pipefail

fail() {
  echo "run.sh: $*" >&2
  exit 2
}
(($# == 2)) || fail "give two arguments: the folder of lockstep's programs, and one for the figures"
here=$(dirname "${BASH_SOURCE[0]}")
build=$1 out=$2 python=${PYTHON:-python3} data=${LOCKSTEP_DATA:-}
rounds=${ROUNDS:-5} seconds=${SECONDS_EACH:-0.3} seeds=${SEEDS:-10}
[[ -x $build/lockstep-bench ]] || fail "$build has no lockstep-bench (it is what is compared). Build it first"
"$python" -c 'import jax' 2>/dev/null || fail "$python has no jax (PYTHON names another). See bench/peers/README.md"
mkdir -p "$out"

# measure NAME CPUS COMMAND...: its figures to OUT/NAME.json.
measure() {
  local name=$1 cpus=$2 start=$SECONDS
  shift 2
  taskset -c "$cpus" "$@" >"$out/$name.json.new"
  mv "$out/$name.json.new" "$out/$name.json"
  echo "$name: $((SECONDS - start)) s" >&2
}
# hmc NAME CPUS ARG...
hmc() {
  local name=$1 cpus=$2 machine=()
  shift 2
  [[ -z $data ]] || machine=(--boltzmann "$data/boltzmann-28/sys101")
  measure "$name" "$cpus" "$python" "$here/hmc_jax.py" --lockstep "$build/lockstep-bench" --rounds "$rounds" \
    --seconds "$seconds" "${machine[@]}" "$@"
}

cut -d' ' -f1 /proc/loadavg >"$out/load-before"
hmc hmc-1 0
hmc hmc-2 0,1 --peers
measure mixtures 0 "$python" "$here/smc_mixtures.py" --lockstep "$build/lockstep" --seeds "$seeds"
if [[ -n $data ]]; then
  measure evidence 0 "$python" "$here/smc_blackjax.py" "$data/boltzmann-28/sys101" --lockstep "$build/lockstep" \
    --seeds "$seeds"
  for turn in 1 2 3; do
    "$build/lockstep-bench" --target decoder --weights "$data/iwae-mnist" --sampler hmc --chains 1536 --threads 2 \
      --seconds 2 --json "$out/decoder-$turn-lockstep.json" >/dev/null
    measure "decoder-$turn-jax" 0,1 "$python" "$here/decoder_jax.py" "$data/iwae-mnist" --chains 384 1600 \
      --gradients 150000
  done
fi
cut -d' ' -f1 /proc/loadavg >"$out/load-after"
"$python" "$here/table.py" "$build" "$out"
