#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Set-up, build and checks of lockstep on Debian 12 and later; `./lockstep.sh help` lists what it does.
# It wraps the CMake presets, which also work by themselves.
set -euo pipefail

caller_dir=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"

build_packages=(
  g++ cmake ninja-build libeigen3-dev libhwy-dev librandom123-dev libcli11-dev libtomlplusplus-dev
  nlohmann-json3-dev libfmt-dev libnetcdf-dev libzip-dev zlib1g-dev libgtest-dev libgmock-dev
  python3 python3-numpy python3-matplotlib python3-netcdf4
)
# For runs by several processes; a machine that cannot have them builds without.
mpi_packages=(libopenmpi-dev openmpi-bin)
lint_packages=(clang-format clang-tidy)
pack_dir=build/gpu-check
pack_limit_mib=64

# Pictures are drawn by the distribution's Python, which has matplotlib from a package; the first python3 on
# PATH may be another one that has not.
export LOCKSTEP_PYTHON=${LOCKSTEP_PYTHON:-/usr/bin/python3}

# One compiler a processor: two more, as ninja has it, share caches and memory, and take a fifth longer for all.
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

say() { printf 'lockstep.sh: %s\n' "$*" >&2; }

# fail STATUS TEXT: one line, then out.
fail() {
  say "$2"
  exit "$1"
}

usage() {
  cat <<'TEXT'
./lockstep.sh COMMAND

  demo                install what is missing, build that part of the program which the demonstration needs (for the
                      CPU alone where there is no GPU), run the replicate study of the 20-component mixture, show its
                      table and say where its picture is; `build lockstep` then compiles the rest
  test [ARG...]       install what is missing, build, run every test that this machine can run;
                      ARGs go to ctest
  build [TARGET...]   install what is missing, configure and build everything, or these (lockstep: the program, which
                      where there is no GPU is then for the CPU alone)
  bench [ARG...]      build, then measure throughput: lockstep-bench ARG...
  gpu-check           run the GPU's tests, throughput, profiles, peers, the largest runs and compute-sanitizer on this
                      machine's GPU; the results go to $OUT, or to out/gpu-check
  gpu-check --pack    build build/gpu-check, a folder that runs the same on a GPU machine without compilers or
                      network, but with cuBLAS: bash build/gpu-check/run.sh
  lint                clang-format and clang-tidy, changing nothing
  format              apply clang-format to the tracked sources
  clean               remove build/ and out/
  help                this text

Missing Debian packages are named before they are installed (as root, or through sudo); nothing is ever
removed, and no network is used once they are there. With nvcc (on PATH or in /usr/local/cuda/bin) both back
ends are built, without it the CPU's.

Environment:
  LOCKSTEP_PRESET     another CMake preset: cpu-release, cpu-debug, cuda-release, strict
  LOCKSTEP_ISA        another instruction set than this machine's: v3 (AVX2) or v4 (AVX-512)
  LOCKSTEP_DATA       folder with published data; tests that need it are skipped without it
  LOCKSTEP_PYTHON     Python with numpy, matplotlib and netCDF4 (/usr/bin/python3)
  CMAKE_BUILD_PARALLEL_LEVEL, CTEST_PARALLEL_LEVEL   processes at a time
TEXT
}

# --- packages -----------------------------------------------------------------------------------------------

# Prints those of the named Debian packages that are not installed.
missing_packages() {
  local status installed package
  # dpkg-query fails where a name is unknown to it; such a name is missing, which is what is asked.
  status=$(dpkg-query --show --showformat '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  installed=$'\n'$status$'\n'
  for package in "$@"; do
    [[ $installed == *$'\n'"$package installed"$'\n'* ]] || printf '%s\n' "$package"
  done
}

# Installs those of the named packages that are missing, and does nothing at all where none is.
install_missing() {
  local -a missing as_root=()
  if ! command -v dpkg-query >/dev/null; then
    say "this is not Debian or Ubuntu: packages are not checked. Needed here under their Debian names: $*"
    return
  fi
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0

  say "will install from the distribution: ${missing[*]}"
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      fail 1 "cannot install (not root, and no sudo). Run as root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  # A broken list of some other source must not stop us: the install itself says what is not to be had.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q ||
    say "apt-get update failed; going on with the package lists that are there"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends --no-remove "${missing[@]}" ||
    fail 1 "apt-get could not install ${missing[*]} (see above). Install them by hand, then run this again"
}

# --- build --------------------------------------------------------------------------------------------------

# Prints the path of nvcc; fails where there is none.
find_nvcc() {
  command -v nvcc && return
  [[ -x /usr/local/cuda/bin/nvcc ]] && echo /usr/local/cuda/bin/nvcc
}

# Sets `preset`, and says in one line what will be built. For the program alone, the CUDA back end only where there is
# a GPU to run it.
choose_preset() {
  local nvcc
  if [[ -n ${LOCKSTEP_PRESET:-} ]]; then
    preset=$LOCKSTEP_PRESET
    say "building preset $preset, as LOCKSTEP_PRESET asks"
  elif nvcc=$(find_nvcc) && [[ -n ${1:-} && ! -e /dev/nvidiactl ]]; then
    preset=cpu-release
    say "no GPU here: building the program for the CPU only (preset $preset; LOCKSTEP_PRESET=cuda-release has both)"
  elif [[ -n $nvcc ]]; then
    preset=cuda-release
    say "building the CPU and CUDA back ends (preset $preset, $nvcc)"
  else
    preset=cpu-release
    say "no nvcc on PATH or in /usr/local/cuda/bin: building the CPU back end only (preset $preset)"
  fi
}

# configure PRESET [ARG...]: ARGs go to cmake.
configure() {
  # Without LOCKSTEP_ISA the project's default holds again, whatever an earlier run left in the cache.
  local -a isa=(-U LOCKSTEP_ISA) architectures=(-U LOCKSTEP_CUDA_ARCHITECTURES)
  local -a part=(-D "LOCKSTEP_TARGETS=${part_targets:-}" -D "LOCKSTEP_SAMPLERS=${part_samplers:-}")
  [[ -z ${LOCKSTEP_ISA:-} ]] || isa=(-D "LOCKSTEP_ISA=$LOCKSTEP_ISA")
  # Where no GPU will run it, the instructions of one architecture show that it compiles (cmake/cuda.cmake).
  [[ -n ${packing:-} || -e /dev/nvidiactl ]] || architectures=(-D LOCKSTEP_CUDA_ARCHITECTURES=80-virtual)
  cmake --preset "$@" "${isa[@]}" "${architectures[@]}" "${part[@]}"
}

# build [TARGET...]: everything, or those targets alone.
build() {
  install_missing "${build_packages[@]}"
  # Another MPI than the distribution's will do as well.
  { command -v mpicxx && command -v mpirun; } >/dev/null || (install_missing "${mpi_packages[@]}") ||
    say "going on without MPI: all commands work, each as one process"
  choose_preset "${1:-}"
  configure "$preset"
  cmake --build --preset "$preset" ${1:+--target "$@"}
}

# --- commands -----------------------------------------------------------------------------------------------

run_tests() {
  build
  # One more than processors: some tests wait for other processes.
  ctest --preset "$preset" --parallel "${CTEST_PARALLEL_LEVEL:-$(($(nproc) + 1))}" "$@"
}

demo() {
  local part_targets=mixture20 part_samplers=hmc  # what the picture needs, and no more: half of compiling all
  build lockstep
  # The demonstration always shows a whole run; a study would otherwise be free to resume an old one.
  rm -rf out/demo
  "build/$preset/lockstep-part" study bench/studies/demo.toml --out out/demo
  printf '\n'
  cat out/demo/table.md
  printf '\nPicture: %s\nReport:  %s\n' "$PWD/out/demo/demo.png" "$PWD/out/demo/report.html"
  printf 'Next:    ./lockstep.sh build lockstep   (every target and sampler: build/%s/lockstep)\n' "$preset"
}

bench() {
  local program
  build
  program=$PWD/build/$preset/lockstep-bench
  cd "$caller_dir"  # so that `--json FILE` means what it meant where it was typed
  exec "$program" "$@"
}

lint() {
  local -a sources
  local status=0
  install_missing "${build_packages[@]}" "${lint_packages[@]}"
  mapfile -t sources < <(git ls-files '*.hpp' '*.cpp' '*.cu' '*.cuh')
  clang-format --dry-run -Werror "${sources[@]}" || status=1
  # clang-tidy reads how each file is compiled, and needs nothing built; g++'s precompiled headers it cannot read.
  configure cpu-release -B build/lint -D CMAKE_DISABLE_PRECOMPILE_HEADERS=ON -D LOCKSTEP_UNITE=OFF >/dev/null
  git ls-files -z 'host/*.cpp' 'targets/*.cpp' |
    xargs -0 -r -n 1 -P "$(nproc)" \
      clang-tidy --quiet -p build/lint --extra-arg=-Wno-unknown-warning-option || status=1
  ((status == 0)) || fail 1 "lint found something (above). ./lockstep.sh format mends what is only layout"
  say "lint: nothing found"
}

format() {
  install_missing clang-format
  git ls-files -z '*.hpp' '*.cpp' '*.cu' '*.cuh' | xargs -0 -r clang-format -i
}

# --- GPU check ----------------------------------------------------------------------------------------------

# Prints the shared libraries that the given programs load, without glibc and the driver: those belong to the machine
# where the programs run.
libraries_of() {
  local own='^(ld-linux.*|lib(c|m|mvec|dl|rt|pthread|resolv|util|anl|thread_db|nss_.*|cuda|nvidia-.*))[.]so'
  local listing
  listing=$(ldd "$@")
  if grep -F 'not found' <<<"$listing" >&2; then
    fail 1 "a shared library is missing (above; the pack would not start). Install it, then pack again"
  fi
  awk -v own="$own" '$2 == "=>" && $3 ~ /^\// && $1 !~ own { print $3 }' <<<"$listing" | sort -u
}

# pack_data FOLDER TO: a folder of published data, where it is there; what is run on it is skipped otherwise.
pack_data() {
  [[ -d ${LOCKSTEP_DATA:-}/$1 ]] || return 0
  mkdir -p "$2"
  cp "${LOCKSTEP_DATA}/$1"/* "$2"
}

pack_gpu_check() {
  local programs=(lockstep lockstep-bench lockstep-gpu-tests)
  local new=$pack_dir.new mib libraries
  local -a built
  find_nvcc >/dev/null ||
    fail 2 "no nvcc on PATH or in /usr/local/cuda/bin (the pack is for the GPU). Install the CUDA toolkit"
  packing=yes LOCKSTEP_PRESET=cuda-release build "${programs[@]}"
  built=("${programs[@]/#/build/cuda-release/}")

  rm -rf "$new"
  mkdir -p "$new/lib" "$new/bench"
  cp "${built[@]}" "$new/"
  libraries=$(libraries_of "${built[@]}")
  xargs -r -d '\n' cp -L -t "$new/lib" <<<"$libraries"
  strip --strip-unneeded "${programs[@]/#/$new/}" "$new/lib"/*
  XZ_OPT=-T0 tar -C "$new" -cJf "$new/programs.tar.xz" --remove-files lib "${programs[@]}"
  cp -R bench/studies bench/peers "$new/bench/"
  pack_data boltzmann-28/sys101 "$new/data/boltzmann"
  pack_data iwae-mnist "$new/data/decoder"
  cp scripts/gpu-check-run.sh "$new/run.sh"
  chmod +x "$new/run.sh"
  { git describe --always --dirty --abbrev=40 --exclude '*' 2>/dev/null || echo unknown; } >"$new/commit"

  mib=$(($(du -s --apparent-size --block-size=1M "$new" | cut -f1)))
  if ((mib > pack_limit_mib)); then
    du -a --apparent-size --block-size=1M "$new" | sort -rn | head -n 8 >&2
    fail 1 "$new has $mib MiB (the limit is $pack_limit_mib, to be carried easily). Make what is largest smaller (above)"
  fi
  rm -rf "$pack_dir"
  mv "$new" "$pack_dir"
  say "$pack_dir is ready ($mib MiB, $(<"$pack_dir/commit")). On the GPU machine: bash $pack_dir/run.sh"
}

# Whether this machine could make a pack without installing anything.
can_build() {
  find_nvcc >/dev/null && command -v dpkg-query >/dev/null &&
    [[ -z $(missing_packages "${build_packages[@]}") ]]
}

gpu_check() {
  if [[ ${1:-} == --pack ]]; then
    pack_gpu_check
    return
  fi
  bash scripts/gpu-check-run.sh --device-only || exit
  # A pack that was carried here runs as it is where it cannot be made anew; elsewhere it is made again.
  if [[ ! -f $pack_dir/run.sh ]] || can_build; then
    pack_gpu_check
  fi
  OUT=${OUT:-$PWD/out/gpu-check} exec bash "$pack_dir/run.sh"
}

# --- command line -------------------------------------------------------------------------------------------

no_arguments() {
  (($# == 1)) || fail 2 "$1 takes no '$2' (nothing was done). See ./lockstep.sh help"
}

command=${1:-help}
(($# == 0)) || shift
case $command in
  demo | lint | format)
    no_arguments "$command" "$@"
    "$command"
    ;;
  build) build "$@" ;;
  test) run_tests "$@" ;;
  bench) bench "$@" ;;
  gpu-check)
    [[ ${1:---pack} == --pack && $# -le 1 ]] ||
      fail 2 "gpu-check takes no '$*' but only --pack (nothing was done). See ./lockstep.sh help"
    gpu_check "$@"
    ;;
  clean)
    no_arguments "$command" "$@"
    rm -rf build out
    ;;
  help | -h | --help) usage ;;
  *) fail 2 "there is no command '$command' (nothing was done). See ./lockstep.sh help" ;;
esac
