#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives the whole program files with some bytes changed, and reports what it must never do with them: end by a signal
or with a status other than 0, 2 and 3, compute 5 seconds longer than on the unchanged file (more on a slower machine),
or wait for a minute, take 1 GiB more memory, or print a line of more than 300 characters on standard error.

    python3 tests/mutate/run.py build/cpu-release/lockstep --rounds 10000

The same rounds make the same files. Those that found something are kept in --keep. Exit status 1: something was found.
"""

import argparse
import ast
import concurrent.futures
import gzip
import io
import json
import math
import os
import pathlib
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
MORE_SECONDS, LONGEST_WAIT, MORE_MIB, LONGEST_LINE = 5, 60, 1024, 300
USUAL_SECONDS = 11  # that the unchanged files take together, where they were measured
EXTREMES = [b"0", b"-1", b"3", b"1e-8", b"1e6", b"1e308", b"-1e308", b"1e999", b"1e-320", b"0.1", b"4294967296",
            b"2147483647", b"9223372036854775807", b"18446744073709551616", b"9" * 400, b"true", b'"7"', b"nan"]
PIECES = [b"\n", b'"', b"'", b",", b"\\", b"nan", b"-inf", b"\xff", b"\0", b'"""', b"null", b"{}", b"[]", b"x" * 5000]
NESTS = [(b"[", b"]"), (b'{"a":', b"}"), (b"{a=", b"}"), (b"a.", b"a"), (b"(", b")")]


def mutant(seeds, r):
    """One of the seeds: in half of the mutants one bit or number is another, so that much remains valid."""
    b = r.choice(seeds)
    if r.randrange(2):
        return changed(b, seeds, r, r.choice([0, 4]), 1)
    for _ in range(r.randrange(1, 4)):
        b = changed(b, seeds, r, r.randrange(8), 8)
    return b


def changed(b, seeds, r, kind, flips):
    at, length = r.randrange(len(b) + 1), r.randrange(1, 65)
    if kind == 0:
        b = bytearray(b)
        for _ in range(r.randrange(1, flips + 1)):
            if b:
                b[r.randrange(len(b))] ^= 1 << r.randrange(8)
        return bytes(b)
    if kind == 1:
        return b[:at]
    if kind == 2:
        begin = r.randrange(len(b) + 1)
        return b[:at] + b[begin:begin + length] + b[at:]
    if kind == 3:
        other = r.choice(seeds)
        return b[:at] + other[r.randrange(len(other) + 1):]
    if kind == 4:
        digits = [i for i in range(len(b)) if b[i:i + 1].isdigit() and not b[i - 1:i].isdigit()]
        if digits and r.randrange(2):
            begin = end = r.choice(digits)
            while b[end:end + 1].isdigit():
                end += 1
            return b[:begin] + r.choice(EXTREMES) + b[end:]
        width = r.choice([1, 2, 4, 8])
        return b[:at] + r.choice([b"\0", b"\xff", b"\x7f", b"\x80"]) * width + b[at + width:]
    if kind == 5:
        left, right = r.choice(NESTS)
        count = r.choice([70, 100000])
        return b[:at] + left * count + r.choice([b"", b"1" + right * count]) + b[at:]
    if kind == 6:
        return b[:at] + b[at + length:]
    return b[:at] + r.choice(PIECES) + b[at:]


def npy(descr, shape, data):
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def npz(arrays, method):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in arrays.items():
            archive.writestr(name + ".npy", content)
    return file.getvalue()


def safetensors(arrays):
    """Of .npy files of float32."""
    header, data = {}, b""
    for name, content in arrays.items():
        length = int.from_bytes(content[8:10], "little")
        values = content[10 + length:]
        header[name] = {"dtype": "F32", "shape": ast.literal_eval(content[10:10 + length].decode())["shape"],
                        "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def cases():
    """Name, the mutated file, its seeds, files beside it, the commands that read it, and, of packed files, seeds of
    what is in them and how it is packed."""
    floats = lambda *values: struct.pack(f"<{len(values)}d", *values)
    mixture = {"means": npy("<f8", (2, 2), floats(0, 0, 8, 8)), "weights": npy("|u1", (2,), b"\1\3"),
               "sds": npy("<f2", (2,), b"\0\x3c\0\x38")}
    text = [b'{"means": [[0, 0], [8, 8]],\n "weights": [0.3, 0.7], "sds": [1, 0.5]}', b'{"means": [[1]], "sds": [2e0]}']
    matrices = [b"x,y\n0,0\n8,8\n", b"0,1\r\n1,0\r\n", b'"a","b"\n1,2\n3.5,-4e3\n']
    schools = [b"y,sigma\n28,15\n8,10\n-3,16\n", b'sigma,"y"\r\n1e1,+2\r\n\r\n3,4']
    few = ["--chains", "4", "--warmup", "5", "--iterations", "5"]
    start = few + ["--init", "uniform:2"]
    sample = lambda target, *more: ["sample", "--target", target, "--sampler", "pe", *start, *more]
    evidence = lambda target, *more: ["evidence", "--target", target, "--method", "ais", "--gradients", "1e4", *more]
    check = lambda target, *more: ["check", "--target", target, *more]
    data = lambda target, file: [f(target, "--data", file) for f in (check, sample, evidence)]
    yield "json", "m.json", text, {}, data("mixture", "m.json")
    yield "csv", "s.csv", schools, {}, data("eight_schools", "s.csv")
    packed = [npz(mixture, zipfile.ZIP_DEFLATED), npz(mixture, zipfile.ZIP_STORED)]
    anew = [mixture["means"]], lambda means: npz({**mixture, "means": means}, zipfile.ZIP_DEFLATED)
    yield "npz", "m.npz", packed, {}, data("mixture", "m.npz"), anew
    rest = {"d/weights.npy": mixture["weights"], "d/sds.csv": b"1\n2\n"}
    yield "folder of csv", "d/means.csv", matrices, rest, data("mixture", "d")
    yield "folder of npy", "d/means.npy", list(mixture.values()), rest, data("mixture", "d")
    yield "npy", "y.npy", [npy(">i2", (3,), b"\0\1\0\2\0\3")], {}, data("eight_schools", "y.npy")
    init = lambda file: [["sample", "--target", "mixture20", "--sampler", "hmc", *few, "--init", file]]
    yield "init json", "x.json", [b'{"x": [[1, 2], [3, 4]]}'], {}, init("x.json")
    yield "init csv", "x.csv", matrices, {}, init("x.csv")
    yield "init npy", "x.npy", [mixture["means"]], {}, init("x.npy")
    config = b'target = "mixture20"\nsampler = \'pe\'\nchains = 4\nwarmup = 5\niterations = 5\ninit = "uniform:2"\n' \
             b'seed = 7\n[target_settings]\nscenario = "b"\n[sampler_settings]\npseudo_samples = 2\n'
    yield "config", "run.toml", [config], {}, [["sample", "--config", "run.toml"]]
    study = b'name = "s"\nreplicates = 2\nseed = 5\nchains = 4\nwarmup = 5\niterations = 5\n' \
            b'quantities = ["mean[0]"]\n[[setting]]\nlabel = "a {method}"\ntarget = "mixture20"\ntarget_settings = { scenario = "a" }\n' \
            b'sampler = ["hmc", "pe"]\ninit = "uniform:2"\npublished = { "mean[0]" = [4.3, 0.04] }\n' \
            b'[plot]\npanels = ["rmse"]\ngroups = { a = "A" }\n'
    yield "study", "study.toml", [study], {}, [["study", "study.toml", "--out", "out"]]
    with zipfile.ZipFile(DATA / "small_decoder.npz") as archive:
        weights = {n[:-4]: archive.read(n) for n in archive.namelist()}
    images = (DATA / "small_images.npy").read_bytes()
    length = int.from_bytes(images[8:10], "little")
    header, values = ast.literal_eval(images[10:10 + length].decode()), images[10 + length:]
    idx = b"\0\0" + {"|u1": b"\x08", "<f4": b"\x0d", "<f8": b"\x0e"}[header["descr"]] + bytes([len(header["shape"])])
    idx += b"".join(n.to_bytes(4, "big") for n in header["shape"])
    width = int(header["descr"][2:])
    idx += b"".join(values[i:i + width][::-1] for i in range(0, len(values), width))
    settings = ["target.items=2", "sampler.runs=2", "sampler.temperatures=10", "sampler.num_leapfrog=2"]
    decoder = lambda w, i: [["evidence", "--target", "decoder", "--method", "ais"] + [
        word for one in (f"target.weights={w}", f"target.images={i}", *settings) for word in ("--set", one)]]
    (weights_file, images_file) = {"w.npz": npz(weights, zipfile.ZIP_STORED)}, {"i.npy": images}
    first = next(iter(weights))
    anew = [weights[first]], lambda array: npz({**weights, first: array}, zipfile.ZIP_DEFLATED)
    yield "weights", "w.npz", [npz(weights, zipfile.ZIP_DEFLATED)], images_file, decoder("w.npz", "i.npy"), anew
    yield "safetensors", "w.safetensors", [safetensors(weights)], images_file, decoder("w.safetensors", "i.npy")
    yield "images", "i.npy", [images], weights_file, decoder("w.npz", "i.npy")
    yield "idx", "i-idx3-ubyte", [idx], weights_file, decoder("w.npz", "i-idx3-ubyte")
    yield "idx.gz", "i.gz", [gzip.compress(idx, mtime=0)], weights_file, decoder("w.npz", "i.gz"), \
        ([idx], lambda content: gzip.compress(content, mtime=0))


def numbers(value, place=""):
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return {k: v for key, part in items for k, v in numbers(part, f"{place}/{key}").items()}
    return {place: value} if isinstance(value, (int, float)) else {}


def asks_for_more(mutant, seed):
    """Whether a study or config lacks a number that keeps the run short, or has a larger one."""
    if len(mutant) > 5000:  # nested or filled, which asks for nothing, and Python's own reader takes ages
        return False
    try:
        new, old = (numbers(tomllib.loads(t.decode())) for t in (mutant, seed))
    except (UnicodeDecodeError, ValueError, RecursionError):
        return False
    return any(not new.get(key, float("inf")) <= value for key, value in old.items()) or \
        any(not value <= 1000 for value in new.values())


def run(program, args, folder, most_seconds):
    """Status (negative: a signal; None: beyond the seconds of computing, or of waiting), seconds of computing, MiB,
    standard error."""
    command = [program, *args, "--threads", "1"] + ([] if args[0] == "check" else ["--quiet"])
    environment = dict(os.environ, OMP_WAIT_POLICY="passive", LOCKSTEP_PLOT_DIR="/nowhere")
    begin = time.monotonic()
    with open(folder / ".err", "wb") as err:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err,
                                   env=environment)
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (math.ceil(most_seconds),) * 2)
        done = 0
        while not done:
            waits = time.monotonic() - begin > LONGEST_WAIT
            if waits:
                process.kill()
            done, code, usage = os.wait4(process.pid, 0 if waits else os.WNOHANG)
            time.sleep(0 if done else 0.005)
        process.returncode = 0  # wait4 has reaped it
    status = os.waitstatus_to_exitcode(code)
    late = waits or status in (-signal.SIGXCPU, -signal.SIGKILL)
    seconds = usage.ru_utime + usage.ru_stime
    return None if late else status, seconds, usage.ru_maxrss / 1024, (folder / ".err").read_bytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first round")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", help="a case, such as json")
    parser.add_argument("--keep", default="mutants-found")
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    all_cases = [c for c in cases() if options.only in (None, c[0])]
    base = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-mutants-"))

    def prepared(folder, case, content):
        _, name, _, beside, *_ = case
        for file, bytes_ in {**beside, name: content}.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(bytes_)
        return folder

    usual, computed = {}, 0
    for case in all_cases:
        for k, args in enumerate(case[4]):
            folder = prepared(base / f"seed-{len(usual)}", case, case[2][0])
            status, seconds, mib, err = run(program, args, folder, 120)
            if status not in (0, 3) and case[0] != "npy":
                sys.exit(f"{case[0]}: the unchanged file ends with status {status}: {err.decode(errors='replace')}")
            usual[case[0], k] = seconds, mib
            computed += seconds
    more_seconds = MORE_SECONDS * max(1, computed / USUAL_SECONDS)

    def one(number):
        case = all_cases[number % len(all_cases)]
        r = random.Random(f"{case[0]}/{number}")
        if len(case) > 5 and r.randrange(2):
            seeds, pack = case[5]
            content = pack(mutant(seeds, r))
        else:
            content = mutant(case[2], r)
        k = r.randrange(len(case[4]))
        seconds, mib = usual[case[0], k]
        folder = prepared(base / str(number), case, content)
        status, took, had, err = run(program, case[4][k], folder, seconds + more_seconds)
        more = case[1].endswith(".toml") and asks_for_more(content, case[2][0])
        faults = []
        if status is None and not more:
            faults.append("hang")
        if status is not None and status not in (0, 2, 3):
            faults.append("crash" if status < 0 else f"status {status}")
        if had > mib + MORE_MIB and not more:
            faults.append("memory")
        if max(map(len, err.decode(errors="replace").split("\n"))) > LONGEST_LINE:
            faults.append("long line")
        if faults:
            kept = pathlib.Path(options.keep) / f"{case[0].replace(' ', '-')}-{number}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept)
            print(f"{kept}: {', '.join(faults)}: lockstep {' '.join(case[4][k])}: "
                  f"{err.decode(errors='replace')[:400]!r}", flush=True)
        shutil.rmtree(folder)
        return faults + (["longer by request"] if status is None and more else []), status, took - seconds

    counts, statuses, longest = {}, {}, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for faults, status, took in pool.map(one, range(options.first, options.first + options.rounds)):
            statuses[status] = statuses.get(status, 0) + 1
            longest = max(longest, took)
            for fault in faults:
                counts[fault] = counts.get(fault, 0) + 1
    shutil.rmtree(base)
    print(f"{options.rounds} mutants: exit statuses {statuses}, longest {longest:.1f} s beyond the unchanged run, "
          f"found {counts or 'nothing'}")
    return 1 if set(counts) - {"longer by request"} else 0


if __name__ == "__main__":
    sys.exit(main())
