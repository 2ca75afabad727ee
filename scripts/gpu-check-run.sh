#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh of the folder that `./lockstep.sh gpu-check --pack` makes: checks lockstep on this machine's GPU,
# without compilers and without network.
#
#   bash run.sh                  everything; logs, figures and summary.txt go to $OUT, or to ./results
#   bash run.sh --device-only    only looks whether a GPU is there
#   bash run.sh --unpack         only unpacks lib/, for running one of the programs by hand:
#                                LD_LIBRARY_PATH=lib ./lockstep ...
#
# Exit status: 0 all passed, 1 something failed, 2 no GPU. STEP_LIMIT_S bounds each step (900 seconds).
set -uo pipefail  # no -e: a failing step must not hide those after it

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
results=$(realpath -m "${OUT:-results}")
step_limit=${STEP_LIMIT_S:-900}

# The programs' own libraries travel compressed, at less than half their size.
unpack() { tar -xzf "$here/lib.tar.gz" -C "$here"; }

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

{ cd "$here" && unpack; } || exit 1
mkdir -p "$results" || exit 1
rm -f "$results"/{tests,sanitizer,bench}.log "$results"/bench-*.json "$results/summary.txt"
programs=(lockstep lockstep-bench lockstep-unit-tests lockstep-statistical-tests lockstep-gpu-tests)
chmod u+x "${programs[@]}" 2>/dev/null || true  # some ways of copying a folder lose the mark

failures=0

# record NAME STATUS SECONDS NOTE: one line of the closing table, in the file at once lest we be cut short.
record() {
  local verdict=PASS
  if (($2 != 0)); then
    verdict=FAIL
    failures=$((failures + 1))
  fi
  printf '%-4s  %-18s %6s s  %s\n' "$verdict" "$1" "$3" "$4" | tee -a "$results/summary.txt"
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
  timeout --kill-after=10 "$step_limit" env LD_LIBRARY_PATH="$here/lib" "$@" >>"$log" 2>&1 </dev/null
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

# Prints the path of compute-sanitizer; fails where there is none.
find_sanitizer() {
  local candidate
  command -v compute-sanitizer && return
  for candidate in /usr/local/cuda*/bin/compute-sanitizer; do
    [[ -x $candidate ]] && echo "$candidate" && return
  done
  return 1
}

# The sanitizers make kernels very much slower, so the GPU tests mark the small cases meant for them by name.
sanitize() {
  local sanitizer tool
  for tool in memcheck racecheck; do
    if sanitizer=$(find_sanitizer); then
      GTEST_FILTER='*Sanitize*' \
        step "$tool" sanitizer.log "$sanitizer" --tool "$tool" --error-exitcode 9 ./lockstep-gpu-tests
    else
      record "$tool" 1 0 "no compute-sanitizer on PATH or in /usr/local/cuda*/bin"
    fi
  done
}

printf 'lockstep %s\n%s\n' "$(cat commit 2>/dev/null || echo unknown)" "$devices" | tee "$results/summary.txt"
export LOCKSTEP_REQUIRE_GPU=1  # a GPU test that finds no GPU must fail here instead of being skipped

step gpu-tests tests.log ./lockstep-gpu-tests
# Some unit tests start the built program or read the source tree: where that is not (a pack alone), they have
# been run by the machine that built it.
elsewhere='ArrayFiles.*:Check.*:Resume.*:Command*:ConfigFiles.ShippedStudiesLoad:Diagnostics.*:DrawsFileTest.*:*Interrupt.*:Programs.*:StudyRuns.*:FusedMultiplyAdd.*:Layout*'
step unit-tests tests.log ./lockstep-unit-tests "--gtest_filter=-$elsewhere"
sanitize
for target in gaussian mixture20; do
  json=$results/bench-$target.json
  step "bench $target" bench.log ./lockstep-bench --device cuda --target "$target" --json "$json"
done
step statistical-tests tests.log ./lockstep-statistical-tests  # last: by far the longest

printf '\ngpu-check, results in %s\n' "$results"
cat "$results/summary.txt"
((failures == 0))
