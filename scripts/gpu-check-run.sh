#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh of the folder that `./lockstep.sh gpu-check --pack` makes: checks lockstep on this machine's GPU,
# without compilers and without network.
#
#   bash run.sh                  everything; logs, figures and summary.txt go to $OUT, or to ./results
#   bash run.sh PART...          some parts: tests, throughput, profile, peers, sizes, sanitizer
#   bash run.sh --device-only    only looks whether a GPU is there
#   bash run.sh --unpack         only unpacks programs and lib/, for running one by hand:
#                                LD_LIBRARY_PATH=lib ./lockstep ... (and where cuBLAS is)
#
# results.tar.gz beside the logs has all of them, as they are after each step: some machines return few files.
# Exit status: 0 all passed, 1 something failed, 2 no GPU. STEP_LIMIT_S bounds each step (240 seconds).
set -uo pipefail  # no -e: a failing step must not hide those after it

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
results=$(realpath -m "${OUT:-results}")
all_parts=(tests throughput profile peers sizes sanitizer)
step_limit=${STEP_LIMIT_S:-240}

# The programs and their libraries travel compressed, at half their size. Some machines lack xz.
unpack() {
  local file=$here/programs.tar.xz
  tar -xJf "$file" -C "$here" 2>/dev/null ||
    python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$file" "$here"
}

if [[ ${1:-} == --unpack ]]; then
  unpack
  exit
fi
devices=$(command -v nvidia-smi >/dev/null && nvidia-smi -L 2>&1)
if ! grep -q '^GPU ' <<<"$devices"; then
  printf 'gpu-check: no NVIDIA GPU here: %s (nothing was checked). Run this on a machine with one\n' \
    "${devices:-there is no nvidia-smi}" >&2
  exit 2
fi
[[ ${1:-} != --device-only ]] || exit 0
parts=("$@")
((${#parts[@]})) || parts=("${all_parts[@]}")
for part in "${parts[@]}"; do
  [[ " ${all_parts[*]} " == *" $part "* ]] && continue
  printf 'gpu-check: there is no part %s (nothing was checked). The parts are: %s\n' "$part" "${all_parts[*]}" >&2
  exit 2
done

{ cd "$here" && unpack; } || exit 1

# cuBLAS is the machine's own: of the CUDA toolkit, of a Python package, or known to the loader.
library_path=$here/lib
python_cuda='import site; print(*(f"{folder}/nvidia/*/lib" for folder in site.getsitepackages()))'
for folder in /usr/local/cuda*/{lib64,lib,targets/*/lib} \
  $("${LOCKSTEP_PEER_PYTHON:-python3}" -c "$python_cuda" 2>/dev/null); do
  [[ ! -d $folder ]] || library_path+=:$folder
done
# Where there is no such folder the driver may be found by what the machine itself says.
library_path+=:/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
missing=$(LD_LIBRARY_PATH=$library_path ldd ./lockstep | grep -F 'not found')
# It is loaded when it is called, so that no program lists it.
if [[ -z $missing ]] && ! ldconfig -p 2>/dev/null | grep -qF libcublas.so. &&
  ! (IFS=: && ls $library_path 2>/dev/null) | grep -qF libcublas.so.; then
  missing=libcublas.so
fi
if [[ -n $missing ]]; then
  printf 'gpu-check: the program lacks %s (nothing was checked). Install the CUDA libraries\n' \
    "$(xargs <<<"$missing")" >&2
  exit 2
fi
mkdir -p "$results" || exit 1
logs=({tests-{0,1,2,3},sanitizer,bench,profile,sizes,jax-hmc,jax-hmc-double,jax-decoder}.log)
# A whole run begins anew; parts add to what there is.
(($#)) || rm -f "${logs[@]/#/$results/}" "$results"/bench-*.json "$results/summary.txt"

failures=0

# record NAME STATUS SECONDS NOTE: one line of the closing table, in the file at once lest we be cut short.
record() {
  local verdict=PASS
  if (($2 != 0)); then
    verdict=FAIL
    failures=$((failures + 1))
  fi
  printf '%-4s  %-22s %6s s  %s\n' "$verdict" "$1" "$3" "$4" | tee -a "$results/summary.txt"
  tar -C "$results" --exclude results.tar.gz --exclude table1 -czf "$results/results.tar.gz" . || true
}

# What an exit status means where it is not the program's own.
explain() {
  case $1 in
    124 | 137) echo "stopped after $step_limit s (STEP_LIMIT_S) or killed for memory" ;;
    126 | 127) echo "could not be started" ;;
    132) echo "illegal instruction: built for another processor; pack again with LOCKSTEP_ISA=v3" ;;
    134 | 139) echo "crashed (status $1)" ;;
    *) echo "exit status $1" ;;
  esac
}

# step NAME LOG COMMAND...: runs the command with the pack's libraries, logs it, records the outcome.
step() {
  local name=$1 log=$results/$2 start=$SECONDS offset status note
  shift 2
  printf '== %s: %s\n' "$name" "$*" >>"$log"
  offset=$(stat -c %s "$log")
  timeout --kill-after=10 "$step_limit" env LD_LIBRARY_PATH="$library_path" "$@" >>"$log" 2>&1 </dev/null
  status=$?
  note=$(tail -c "+$((offset + 1))" "$log" |
    grep -aE '^\[  (PASSED|FAILED|SKIPPED)  ?\] [0-9]+ test|(ERROR|RACECHECK) SUMMARY' |
    sed -E 's/^=+ //; s/^\[ +([A-Z]+) +\]/\L\1/; s/(, listed below)?[.:]?$//' | paste -sd ';')
  # A program whose tests are all skipped or filtered out reports success; nothing was checked then.
  [[ $note != *'passed 0 tests'* ]] || ((status)) || status=1
  if ((status != 0)); then
    note="$(explain "$status")${note:+; $note}"
    tail -c "+$((offset + 1))" "$log" | tail -n 25 | sed 's/^/    /'
  fi
  record "$name" "$status" "$((SECONDS - start))" "$note"
}

# Prints the path of one of CUDA's tools; fails where there is none.
find_tool() {
  local candidate
  command -v "$1" && return
  for candidate in /usr/local/cuda*/bin/"$1"; do
    [[ -x $candidate ]] && echo "$candidate" && return
  done
  return 1
}

# not_here NAME WHY: one line for what this machine or the pack lacks. No failure: a GPU does not come with it.
not_here() { printf 'SKIP  %-22s           %s\n' "$1" "$2" | tee -a "$results/summary.txt"; }

# bench NAME ARG...: throughput on the GPU, figures to bench-NAME.json.
bench() {
  local name=$1
  shift
  step "bench $name" bench.log ./lockstep-bench --device cuda --seconds 1 --json "$results/bench-$name.json" "$@"
}

# with_data NAME FOLDER COMMAND...: runs the command where the pack has the folder.
with_data() {
  local name=$1 folder=$2
  shift 2
  if [[ -d $folder ]]; then "$@"; else not_here "$name" "$folder is not in the pack: pack with LOCKSTEP_DATA set"; fi
}

# Four shards, one after another: each says what it is about, and loads its kernels anew.
tests() {
  local shard
  for shard in 0 1 2 3; do
    GTEST_TOTAL_SHARDS=4 GTEST_SHARD_INDEX=$shard step "gpu-tests $shard" "tests-$shard.log" ./lockstep-gpu-tests
  done
}

# The sanitizers make kernels very much slower, so the GPU tests mark the small cases meant for them by name. Threads share
# nothing that they write: races are not looked for.
sanitizer() {
  local sanitizer tool
  for tool in memcheck initcheck; do
    if sanitizer=$(find_tool compute-sanitizer); then
      GTEST_FILTER='*Sanitize*' \
        step "$tool" sanitizer.log "$sanitizer" --tool "$tool" --error-exitcode 9 ./lockstep-gpu-tests
    else
      record "$tool" 1 0 "no compute-sanitizer on PATH or in /usr/local/cuda*/bin"
    fi
  done
}

throughput() {
  local n d sweep=1024,4096,16384,65536,262144,1048576
  for n in 2 5; do bench "mixture20-n$n" --target mixture20 --pseudo-samples "$n" --chains "$sweep"; done
  for n in mixed double; do
    bench "gaussian-$n" --target gaussian --dim 10 --sampler hmc --precision "$n" --chains "$sweep"
  done
  for d in 10 100; do bench "two_modes-$d" --target two_modes --dim "$d" --sampler hmc --chains "$sweep"; done
  with_data boltzmann data/boltzmann \
    bench boltzmann --target boltzmann --data data/boltzmann --sampler hmc --chains "$sweep"
  with_data decoder data/decoder \
    bench decoder --target decoder --weights data/decoder --sampler hmc --chains 1024,4096,16384,65536
}

# What limits each hot kernel: registers, occupancy, issue slots, memory. One launch of each, of those that are timed.
profile() {
  local ncu
  if ! ncu=$(find_tool ncu); then
    not_here profile "no ncu on PATH or in /usr/local/cuda*/bin"
    return
  fi
  profiled() {
    local kernel=$1
    shift
    step "profile $kernel" profile.log "$ncu" --clock-control none --profile-from-start off \
      --kernel-name regex:advance_ --launch-count 1 --section SpeedOfLight --section ComputeWorkloadAnalysis \
      --section MemoryWorkloadAnalysis --section Occupancy --section LaunchStats --section WarpStateStats --section InstructionStats \
      ./lockstep-bench --device cuda --seconds 0.01 --chains 65536 "$@"
  }
  profiled mixture20-n2 --target mixture20 --pseudo-samples 2
  profiled mixture20-n5 --target mixture20 --pseudo-samples 5
  profiled gaussian --target gaussian --dim 10 --sampler hmc
  profiled two_modes --target two_modes --dim 100 --sampler hmc
  with_data "profile boltzmann" data/boltzmann profiled boltzmann --target boltzmann --data data/boltzmann --sampler hmc
}

# The same work by JAX, where python3 has it; with its own libraries instead of the pack's.
peers() {
  local python=${LOCKSTEP_PEER_PYTHON:-python3} more=()
  if ! "$python" -c 'import jax' 2>/dev/null; then
    not_here peers "$python has no jax (LOCKSTEP_PEER_PYTHON names another)"
    return
  fi
  python=(env -u LD_LIBRARY_PATH "$python")
  [[ ! -d data/boltzmann ]] || more=(--boltzmann data/boltzmann)
  step "jax hmc" jax-hmc.log "${python[@]}" bench/peers/hmc_jax.py --chains 4096 65536 --seconds 2 \
    --rounds 3 "${more[@]}"
  step "jax hmc in double" jax-hmc-double.log \
    "${python[@]}" bench/peers/hmc_jax.py --x64 --targets normal --chains 4096 65536 --seconds 2 --rounds 3
  with_data "jax decoder" data/decoder step "jax decoder" jax-decoder.log \
    "${python[@]}" bench/peers/decoder_jax.py data/decoder --gradients 10000000 --chains 1536 16384
}

# The largest runs that are promised: 1000 replicates of Table 1, a million chains, 1000 images.
sizes() {
  step "table1 x 1000" sizes.log ./lockstep study bench/studies/table1.toml --replicates 1000 --device cuda \
    --out "$results/table1" --force
  step "a million chains" sizes.log ./lockstep sample --target gaussian --sampler hmc --chains 1000000 \
    --warmup 200 --iterations 200 --device cuda
  with_data "1000 images" data/decoder step "1000 images" sizes.log ./lockstep evidence --target decoder \
    --set target.weights=data/decoder --set target.images=simulate:1000 --method ais --set sampler.runs=16 \
    --set sampler.temperatures=10000 --set sampler.num_leapfrog=10 --device cuda
}

printf 'lockstep %s\n%s\n' "$(cat commit 2>/dev/null || echo unknown)" "$devices" | tee -a "$results/summary.txt"
export LOCKSTEP_REQUIRE_GPU=1  # a GPU test that finds no GPU must fail here instead of being skipped
for part in "${parts[@]}"; do "$part"; done

printf '\ngpu-check, results in %s\n' "$results"
cat "$results/summary.txt"
((failures == 0))
