#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damages checkpoints and kills runs, and looks for numbers that differ without a word.

    python3 tests/damage_and_kill.py build/cpu-release/lockstep [--damaged 100] [--killed 100] [--seed 1]

Damaged: of a run killed after its first checkpoint, the checkpoint (or a part of a study) gets a flipped bit,
a zeroed span, another byte, a cut, or a span twice or not at all; the run is then resumed. It must be refused
with exit status 2 and one line, or give what the undisturbed run gives. Killed: runs get SIGKILL at random
times, some of them again while they resume, and are resumed to their end: summaries (but for times) and other
files must be those of the undisturbed run. Prints a line for each kind of run; exit status 1 if anything differed.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

STUDY = """name = "small"
replicates = 2
seed = 5
warmup = 60
chains = 2
iterations = 4000
[[setting]]
label = "pe"
target = "mixture20"
sampler = "pe"
[[setting]]
label = "hmc"
target = "banana"
sampler = "hmc"
[[setting]]
label = "st"
command = "evidence"
target = "two_modes"
method = "st"
gradients = 1e6
"""
THREADS = ["--threads", "1", "--device", "cpu"]
RUNS = {
    "sample hmc": "sample --target banana --sampler hmc --chains 16 --iterations 20000 --draws --thin 10",
    "sample pe": "sample --target mixture20 --sampler pe --chains 16 --iterations 6000 --draws --thin 10",
    "evidence auto": "evidence --target two_modes --gradients 1e7 --draws",
    "evidence st": "evidence --target two_modes --method st --gradients 1e7",
    "evidence pt": "evidence --target two_modes --method pt --gradients 4e6 --draws",
    "evidence ct-joint": "evidence --target two_modes --method ct-joint --gradients 1e7",
    "evidence pe": "evidence --target mixture20 --method pe --gradients 1e7",
    "evidence ais": "evidence --target two_modes --method ais --gradients 4e6",
    "items": "evidence --target decoder --set target.weights=weights --set target.images=simulate:200 --method "
             "bdmc --set sampler.num_leapfrog=2 --set sampler.temperatures=150",
    "study": "study study.toml",
}
DAMAGED = ["sample hmc", "sample pe", "evidence st", "evidence pt", "evidence ct-joint", "evidence pe", "items",
           "study"]


def write_npy(path, rows, columns, source):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    values = [source.gauss(0, 1) for _ in range(rows * columns)]
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                     + struct.pack(f"<{len(values)}d", *values))


class Campaign:
    def __init__(self, program, folder, seed):
        self.program, self.folder, self.random = os.path.abspath(program), folder, random.Random(seed)
        (folder / "study.toml").write_text(STUDY)
        (folder / "weights").mkdir()
        source = random.Random(1)
        layers = {"decoder_W0": (3, 8), "decoder_b0": (1, 8), "decoder_W1": (8, 12), "decoder_b1": (1, 12)}
        for name, (rows, columns) in layers.items():
            write_npy(folder / "weights" / f"{name}.npy", rows, columns, source)
        self.environment = dict(os.environ, LOCKSTEP_PYTHON="/no/python", OMP_WAIT_POLICY="passive")
        self.different = 0

    def start(self, words):
        return subprocess.Popen([self.program] + words, cwd=self.folder, env=self.environment, text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def run(self, words):
        process = self.start(words)
        said = process.communicate()[1]
        return process.returncode, said

    def result(self, out):
        """What a run's numbers are, as bytes by file."""
        found = {}
        for name in ("draws.nc", "items.csv", "results.csv"):
            if (self.folder / out / name).exists():
                found[name] = (self.folder / out / name).read_bytes()
        if (self.folder / out / "summary.json").exists():
            summary = json.loads((self.folder / out / "summary.json").read_text())
            for key in ("wall_s", "sampling_s", "gradients_per_s"):
                summary["cost"].pop(key, None)
            found["summary.json"] = json.dumps(summary)
        return found

    def whole(self, name):
        """An undisturbed run: its files, exit status and seconds."""
        out = name + " whole"
        shutil.rmtree(self.folder / out, ignore_errors=True)
        begin = time.monotonic()
        status, said = self.run(RUNS[name].split() + THREADS + ["--out", out])
        if status not in (0, 3):
            sys.exit(f"{name}: {said}")
        return self.result(out), status, time.monotonic() - begin

    def differs(self, name, what):
        self.different += 1
        print(f"DIFFERENT: {name}, {what}", flush=True)

    def saved(self, name):
        """A run killed when it had saved its state; the file that holds it."""
        out = self.folder / (name + " saved")
        more = [] if name == "study" else ["--checkpoint", "0.001"]
        file = out / ("parts/1.csv" if name == "study" else "checkpoint")
        process = self.start(RUNS[name].split() + THREADS + ["--out", str(out)] + more)
        while not file.exists() and process.poll() is None:
            time.sleep(0.002)
        process.kill()
        process.communicate()
        if not file.exists():
            sys.exit(f"{name}: over before its first checkpoint")
        return file

    def damage(self, data):
        at, size = self.random.randrange(len(data)), self.random.choice([1, 8, 64, 512])
        kind = self.random.choice(["bit", "zeros", "byte", "cut", "twice", "gone"])
        if kind == "bit":
            data[at] ^= 1 << self.random.randrange(8)
        elif kind == "zeros":
            data[at:at + size] = bytes(len(data[at:at + size]))
        elif kind == "byte":
            data[at] = (data[at] + self.random.randrange(1, 256)) % 256
        elif kind == "cut":
            del data[at:]
        elif kind == "twice":
            data[at:at] = data[at:at + size]
        else:
            del data[at:at + size]
        return f"{kind} at {at}, {size}"

    def damaged(self, count):
        for name in DAMAGED:
            wanted, status, _ = self.whole(name)
            file = self.saved(name)
            refused = same = 0
            for k in range(count // len(DAMAGED) + (DAMAGED.index(name) < count % len(DAMAGED))):
                out = self.folder / f"{name} damaged {k}"
                shutil.copytree(file.parent.parent if name == "study" else file.parent, out)
                data = bytearray(file.read_bytes())
                what = self.damage(data)
                (out / file.relative_to(self.folder / (name + " saved"))).write_bytes(data)
                words = RUNS[name].split() + THREADS + ["--out", str(out), "--resume", "--quiet"]
                got, said = self.run(words)
                if got == 2 and said.count("\n") == 1 and not (out / "summary.json").exists():
                    refused += 1
                elif got == status and self.result(out) == wanted:
                    same += 1
                else:
                    self.differs(name, f"{what}: status {got}, {said!r}")
                shutil.rmtree(out)
            print(f"damaged {name}: {refused} refused, {same} the same", flush=True)

    def kill_after(self, words, seconds):
        process = self.start(words)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate()

    def killed(self, count):
        for name in RUNS:
            wanted, status, seconds = self.whole(name)
            cold = warm = done = 0
            for k in range(count // len(RUNS) + (list(RUNS).index(name) < count % len(RUNS))):
                out = self.folder / f"{name} killed {k}"
                words = RUNS[name].split() + THREADS + ["--out", str(out)]
                saves = name not in ("study", "evidence ais") and self.random.random() < 0.7
                first = words + (["--checkpoint", self.random.choice(["0.001", "0.1"])] if saves else [])
                self.kill_after(first, self.random.uniform(0, 1.1 * seconds))
                resume = words + ["--resume", "--quiet"]
                if self.random.random() < 0.3:
                    self.kill_after(resume, self.random.uniform(0, seconds))
                if (out / "checkpoint").exists() or (out / "parts").exists():
                    warm += 1
                elif (out / "summary.json").exists():
                    done += 1
                else:
                    cold += 1
                got, said = self.run(resume)
                left = [p.name for p in out.rglob("*") if p.name.endswith(".tmp") or p.name == "checkpoint"]
                if got != status or self.result(out) != wanted or left:
                    self.differs(name, f"kill {k}: status {got}, {said!r}, left {left}")
                shutil.rmtree(out)
            print(f"killed {name} ({seconds:.1f} s): {cold} began again, {warm} went on, {done} were over",
                  flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--damaged", type=int, default=100)
    parser.add_argument("--killed", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(options.program, pathlib.Path(folder), options.seed)
        if options.damaged:
            campaign.damaged(options.damaged)
        if options.killed:
            campaign.killed(options.killed)
    print(f"{campaign.different} differ")
    return campaign.different != 0


if __name__ == "__main__":
    sys.exit(main())
