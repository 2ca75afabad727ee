#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what `lockstep` says of its own answers to known truths, over many seeds, exact draws withheld.

    python3 bench/trust.py false_alarms --lockstep build/cpu-release/lockstep --out alarms.json
    python3 bench/trust.py planted      --lockstep P [--hint init|modes] [--only TEXT]
    python3 bench/trust.py sweep        --lockstep P
    python3 bench/trust.py coverage     --lockstep P --seeds 85
    python3 bench/trust.py equal        --lockstep P --before OLD --seeds 40

false_alarms  every shipped target at default settings, `evidence` and `sample`
planted       targets on which one mode or the scale is hard to find, five methods
sweep         random mixtures of four normals in 2 to 20 dimensions; --generator 2: weights by Dirichlet(2), full covariances, one of
              the four a Student t with nu = 4
coverage      how often 95 % intervals of log Z and of three means hold the truth, half of the runs stopped by --se, the others at 3e6
              gradients, or at 3e5 on mixtures, where draws of the base leave no error at 3e6
equal         RMSE of log Z, means and second moments beside another version's at as many gradients, with bootstrap intervals

A run is *right* (false_alarms) if log Z, means, second moments and the target's own quantities are within 3.5 of their errors and
probabilities within 0.1; elsewhere *wrong* if a mode's share is off by over 0.1, or log Z by over 0.3 where it has no shares (where
it has no log Z either, if anything is off by over 3.5 errors). Data
sets are looked for in --data-dir or $LOCKSTEP_DATA; targets that need one are left out without. One thread a run, --jobs runs
at a time. Every run is kept in --out (JSON lines), where runs that are there already are not made again: told apart by kind,
target, method and seed, so that another program or --gradients needs a file of its own.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

METHODS = ("pe", "st", "pt", "smc", "ais")
WITHHELD = ["--set", "sampler.exact_draws=none"]


def mixture(weights, means, widths):
    """widths: [K] standard deviations, or [K][d][d] covariances."""
    widths = np.asarray(widths, float)
    return {"weights": np.asarray(weights, float).tolist(), "means": np.asarray(means, float).tolist(),
            "sds" if widths.ndim == 1 else "covariances": widths.tolist()}


def turned(random, dim):
    axes = np.linalg.qr(random.normal(size=(dim, dim)))[0]
    matrix = (axes * random.uniform(0.5, 1.5, dim) ** 2) @ axes.T
    return (matrix + matrix.T) / 2


def student(weight, mean, covariance, nu, normals=12):
    """A Student t as a mixture of normals: scales at midpoints of the quantiles of nu / chi^2, by their own draws."""
    draws = np.sort(nu / np.random.default_rng(0).chisquare(nu, 120_000)).reshape(normals, -1).mean(axis=1)
    return [(weight / normals, mean, covariance * s) for s in draws]


def four_modes(dim, seed, generator=1):
    random = np.random.default_rng([dim, seed, generator])
    means = random.normal(size=(4, dim)) * 4
    if generator == 1:
        return mixture([0.25] * 4, means, random.uniform(0.5, 1.5, 4))
    weights = random.dirichlet([2] * 4)
    parts = [(weights[k], means[k], turned(random, dim)) for k in range(3)]
    return mixture(*zip(*(parts + student(weights[3], means[3], turned(random, dim), 4))))


def spread(random, number, dim):
    return random.normal(size=(number, dim)) * 20 / np.sqrt(2 * dim)


def planted():
    """{case: (target, mixture or None, options)}."""
    ten, axes = np.zeros((2, 10)), 10.0 ** np.arange(-3, 4)
    ten[1] = 12 / np.sqrt(10)
    five, seven, fifty = np.zeros((2, 5)), np.zeros((2, 7)), np.zeros((3, 50))
    five[1, 0], seven[1, 0] = 60, 3000
    fifty[1, 0] = fifty[2, 1] = 6
    return {
        "1 10-d, narrow": ("mixture", mixture([.7, .3], ten, [1, .05]), []),
        "2 5-d, at 60": ("mixture", mixture([.7, .3], five, [1, 1]), []),
        "3 10-d, sds over 1e4": ("mixture", mixture([1], np.zeros((1, 10)), [np.diag(np.logspace(-2, 2, 10) ** 2)]), []),
        "4 7-d, axes over 1e6": ("mixture", mixture([.8, .2], seven, [np.diag(axes**2), np.diag(axes[::-1] ** 2)]),
                                 ["--init-scale", "1000"]),
        "5 eight_schools": ("eight_schools", None, []),
        "6 50-d, sds 1 .5 .25": ("mixture", mixture([.4, .3, .3], fifty, [1, .5, .25]), []),
        "7 mixture20, short": ("mixture20", None, []),
    }


def shipped(runner):
    """{name: (target, mixture, options)} of all targets but `horseshoe`, of which no truth is known and which does not converge
    by default; data as published, where they are there. Of `sensors`, without a truth, every run counts as right. The decoder is
    a linear one, whose log Z is known."""
    cases = {name: (name, None, []) for name in
             ("gaussian", "bimodal", "bimodal_ct", "two_modes", "scattered", "banana", "flower", "eight_schools",
              "welling_teh", "boltzmann", "radon", "ark", "gp_regr", "sensors")}
    cases["decoder"] = ("decoder", None, runner.linear_decoder())
    cases |= {f"mixture20 {s}": ("mixture20", None, ["--set", f"target.scenario={s}"]) for s in "ab"}
    cases["mixture"] = ("mixture", four_modes(5, 1), [])
    data = runner.data
    if data and (data / "radon-mn").is_dir():
        cases["radon"] = ("radon", None, runner.radon())
    for system in ("sys101", "sys102", "sys103"):
        if data and (data / "boltzmann-28" / system).is_dir():
            cases[system] = ("boltzmann", None, ["--data", str(data / "boltzmann-28" / system)])
    return cases


def compared():
    """Those of `equal` that are not shipped."""
    random = np.random.default_rng(16)
    ten = np.full(10, 0.1)
    cases = {"ten modes, 10-d": ("mixture", mixture(ten, spread(random, 10, 10), [turned(random, 10) for _ in ten]), []),
             "ten modes, 40-d": ("mixture", mixture(ten, spread(random, 10, 40), random.uniform(.9, 1.1, 10)), [])}
    parts = [part for mean in spread(random, 5, 10) for part in student(0.2, mean, np.eye(10), 5)]
    cases["five Student t, 10-d"] = ("mixture", mixture(*zip(*parts)), [])
    return cases


class Runner:
    """Runs the program, keeps each summary's figures, and takes up what is there."""

    def __init__(self, options):
        self.options, self.kept, self.folder = options, {}, tempfile.TemporaryDirectory()
        self.data = Path(options.data_dir) if options.data_dir else None
        if options.out and os.path.exists(options.out):
            with open(options.out, encoding="utf-8") as lines:
                for line in map(json.loads, lines):
                    self.kept[line["key"]] = line

    def radon(self):
        """Its published data, as the target reads them."""
        target = Path(self.folder.name) / "radon.json"
        script = Path(__file__).parent / "data" / "radon.py"
        subprocess.run([sys.executable, script, self.data / "radon-mn" / "radon.csv", target], check=True)
        return ["--data", str(target)]

    def linear_decoder(self):
        weights = Path(self.folder.name) / "linear.npz"
        np.savez(weights, decoder_W0=np.random.default_rng(1).normal(size=(5, 20)) / np.sqrt(5), decoder_b0=np.zeros(20))
        return ["--set", f"target.weights={weights}", "--set", "target.likelihood=gaussian", "--set", "target.images=simulate:1"]

    def arguments(self, command, case, extra, seed):
        target, data, options = case
        found = [command, "--target", target, "--threads", "1", "--seed", str(seed), "--json", "--quiet", *extra, *options]
        if data:
            path = Path(self.folder.name) / f"{abs(hash(json.dumps(data)))}.json"
            if not path.exists():
                path.write_text(json.dumps(data), encoding="utf-8")
            found += ["--data", str(path)]
        return found

    def run(self, job):
        key, program, arguments = job
        if key in self.kept:
            return self.kept[key]
        done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode not in (0, 3):  # 3: a gate failed, which the summary says
            sys.exit(f"{' '.join(arguments)} ended with status {done.returncode}: {done.stderr.strip()}")
        summary = json.loads(done.stdout)
        line = {"key": key} | {k: summary.get(k) for k in ("verdict", "failed_gates", "log_z", "truth")} | {
            "estimates": {k: v for k, v in summary.get("estimates", {}).items() if "covariance" not in k and "quantiles" not in k},
            "wall_s": summary["cost"]["wall_s"], "found": summary["diagnostics"].get("modes", {}).get("found")}
        if line["truth"]:
            line["truth"].pop("covariance", None)
        if self.options.out:
            with open(self.options.out, "a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")
        return line

    def all(self, jobs):
        with ThreadPoolExecutor(self.options.jobs) as pool:
            for count, line in enumerate(pool.map(self.run, jobs), 1):
                print(f"\r{count} of {len(jobs)} runs", end="", file=sys.stderr, flush=True)
                yield line
        print(file=sys.stderr)


def off(line):
    """[(name, error, standard error or None)] of all that has a truth."""
    truth, found = line["truth"] or {}, line["estimates"]
    log_z = line.get("log_z") or {}
    out = []
    if truth.get("log_z") is not None and log_z.get("estimate") is not None:
        out.append(("log_z", log_z["estimate"] - truth["log_z"], log_z.get("se", log_z.get("mc_se"))))
    for name in ("mean", "second_moment"):
        for i, (value, true, se) in enumerate(zip(found.get(name) or [], truth.get(name) or [], found.get(name + "_se") or [])):
            if None not in (value, true):
                out.append((f"{name}[{i}]", value - true, se))
    for name, true in (truth.get("quantities") or {}).items():
        value = (found.get("quantities") or {}).get(name)
        if None not in (value, true):
            out.append((name, value - true, (found.get("quantities_se") or {}).get(name)))
    return out


def worst(line):
    return max(((abs(error) / se, name) for name, error, se in off(line) if se), default=(0, ""))


def is_right(line):
    return worst(line)[0] <= 3.5 and all(abs(e) <= 0.1 for name, e, _ in off(line) if name.startswith("probability"))


def is_wrong(line):
    errors = {name: abs(error) for name, error, _ in off(line)}
    shares = [e for name, e in errors.items() if name.startswith("probability_mode")]
    return max(shares) > 0.1 if shares else errors["log_z"] > 0.3 if "log_z" in errors else worst(line)[0] > 3.5


def tally(lines):
    """Right and pass, right and not established, right and another alarm, caught, silent."""
    keys = ("right", "not established", "alarm", "caught", "silent")
    count = dict.fromkeys(keys, 0)
    for line in lines:
        passed, wrong = line["verdict"] == "pass", is_wrong(line)
        count["silent" if wrong and passed else "caught" if wrong else "right" if passed else
              "not established" if line["verdict"] == "not established" else "alarm"] += 1
    return count


def show(rows, head):
    rows = [head, *[[str(c) for c in row] for row in rows]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def method_arguments(method, gradients, short=False):
    """(command, options): of `pe` and `hmc` the samplers."""
    if method in ("pe", "hmc"):
        budget = ["--warmup", "50", "--iterations", "50"] if short else ["--gradients", gradients]
        return "sample", ["--sampler", method, "--chains", "64", *budget]
    budget = ["--iterations", "50"] if short and method in ("st", "pt") else ["--gradients", "1e6" if short else gradients]
    return "evidence", ["--method", method, *budget, *WITHHELD]


def false_alarms(runner, options):
    cases = {n: c for n, c in shipped(runner).items() if options.only in n}
    rows = []
    for command in options.command.split(","):
        jobs = [(f"{command} {name} {seed}", options.lockstep,
                 runner.arguments(command, case, WITHHELD if command == "evidence" and name != "decoder" else [], seed))
                for name, case in cases.items() for seed in options.range]
        lines = list(runner.all(jobs))
        for name in cases:
            own = [line for line in lines if line["key"].rsplit(" ", 1)[0] == f"{command} {name}"]
            right = [line for line in own if is_right(line)]
            alarms = [line for line in right if line["verdict"] != "pass"]
            silent = [worst(line) for line in own if not is_right(line) and line["verdict"] == "pass"]
            rows.append((command, name, len(own), len(right), len(alarms),
                         " ".join(sorted(g for line in alarms for g in line["failed_gates"])),
                         " ".join(f"{z:.1f} ({n})" for z, n in sorted(silent, reverse=True)[:4])))
    show(rows, ("command", "target", "runs", "right", "alarms", "gates", "wrong and pass: errors"))


def planted_cases(runner, options):
    rows = []
    for name, case in planted().items():
        if options.only not in name or (options.hint != "none" and not case[1]):
            continue
        hint = []
        if options.hint != "none":
            path = Path(runner.folder.name) / f"hint {name[0]}.json"
            places = case[1]["means"]
            path.write_text(json.dumps({"x": places} if options.hint == "init" else {"modes": [{"place": p} for p in places]}),
                            encoding="utf-8")
            hint = [f"--{options.hint}", str(path)]
        jobs = []
        for method in METHODS:
            command, extra = method_arguments(method, options.gradients, "short" in name)
            jobs += [(f"planted {options.hint} {name} {method} {seed}", options.lockstep,
                      runner.arguments(command, case, extra + hint, seed)) for seed in options.range]
        lines = list(runner.all(jobs))
        rows.append((name, options.hint, *tally(lines).values()))
        for method in METHODS:
            rows.append(("", method, *tally([n for n in lines if n["key"].split()[-2] == method]).values()))
    show(rows, ("case", "hint", "right", "not established", "alarm", "caught", "silent"))


def sweep(runner, options):
    rows = []
    for dim in map(int, options.dims.split(",")):
        for method in options.methods.split(","):
            jobs = []
            for seed in options.range:
                case = ("mixture", four_modes(dim, seed, options.generator), [])
                command, extra = method_arguments(method, options.gradients)
                jobs.append((f"sweep {options.generator} {dim} {method} {seed}", options.lockstep,
                             runner.arguments(command, case, extra, seed)))
            lines = list(runner.all(jobs))
            lacking = sum(is_wrong(n) and (n["found"] or 0) < 4 for n in lines)
            rows.append((dim, method, *tally(lines).values(), lacking))
    show(rows, ("d", "method", "right", "not established", "alarm", "caught", "silent", "wrong, mode not found"))


def coverage(runner, options):
    known = shipped(runner) | compared()
    cases = {n: known[n] for n in ("mixture20 a", "two_modes", "eight_schools", "banana", "ten modes, 10-d", "radon")}
    rows, all_held = [], []
    for name, case in cases.items():
        if options.only not in name:
            continue
        gradients = "3e5" if name in ("mixture20 a", "two_modes", "ten modes, 10-d") else "3e6"
        for budget in (["--gradients", gradients], ["--se", "0.02"]):
            jobs = [(f"coverage {name} {' '.join(budget)} {seed}", options.lockstep,
                     runner.arguments("evidence", case, ["--method", "st", *budget], seed)) for seed in options.range]
            held = []
            for line in runner.all(jobs):
                pairs = [(line["log_z"].get("interval95"), line["truth"]["log_z"])]
                pairs += list(zip(line["estimates"]["mean_interval95"], line["truth"]["mean"]))[:3]
                held.append([low_high[0] <= true <= low_high[1] for low_high, true in pairs if low_high])
            rows.append((name, budget[0], f"{np.mean(sum(held, [])):.3f}", sum(map(len, held)),
                         *(f"{np.mean([h[i] for h in held]):.3f}" for i in range(min(map(len, held))))))
            all_held += sum(held, [])
    rows.append(("pooled", "", f"{np.mean(all_held):.3f}", len(all_held)))
    rows = [tuple(row) + ("",) * (8 - len(row)) for row in rows]
    show(rows, ("target", "by", "held", "intervals", "log Z", "mean 0", "mean 1", "mean 2"))


def equal(runner, options):
    ours = shipped(runner)
    names = ("mixture20 a", "mixture20 b", "two_modes", "banana", "flower", "eight_schools", "radon", "sys101", "sys102",
             "sys103")
    cases = {n: ours[n] for n in names if n in ours} | compared()
    if "sys101" in cases:
        target, data, extra = cases["sys101"]
        cases["sys101, scout's base"] = (target, data, extra + ["--set", "sampler.base=scout"])
    rows, logs = [], []
    random = np.random.default_rng(1)
    for name, case in cases.items():
        if options.only not in name:
            continue
        squares = {}
        for which, program in (("before", options.before), ("now", options.lockstep)):
            jobs = [(f"equal {which} {name} {seed}", program,
                     runner.arguments("evidence", case, ["--method", "st", "--gradients", options.gradients], seed))
                    for seed in options.range]
            table = []
            for line in runner.all(jobs):
                errors = {n: e for n, e, _ in off(line)}
                scale = [math.sqrt(max(s - m * m, 1e-300)) for m, s in zip(line["truth"]["mean"], line["truth"]["second_moment"])]
                table.append((errors["log_z"] ** 2,
                              np.mean([(errors[f"mean[{i}]"] / s) ** 2 for i, s in enumerate(scale)]),
                              np.mean([(errors[f"second_moment[{i}]"] / s**2) ** 2 for i, s in enumerate(scale)])))
            squares[which] = np.array(table)
        now, before = squares["now"], squares["before"]
        ratio = np.sqrt(now.mean(0) / before.mean(0))
        again = [np.sqrt(now[random.integers(len(now), size=len(now))].mean(0) /
                         before[random.integers(len(before), size=len(before))].mean(0)) for _ in range(4000)]
        low, high = np.quantile(again, (0.025, 0.975), axis=0)
        rows.append((name, *(f"{r:.3g} [{a:.2g}, {b:.2g}]" for r, a, b in zip(ratio, low, high))))
        logs.append(np.log(ratio))
    rows.append(("geometric mean", *(f"{v:.3g}" for v in np.exp(np.mean(logs, axis=0)))))
    show(rows, ("target", "log Z", "means", "second moments"))
    print(f"geometric mean of all: {np.exp(np.mean(logs)):.3g}")


def main():
    kinds = {"false_alarms": (false_alarms, 20), "planted": (planted_cases, 10), "sweep": (sweep, 20),
             "coverage": (coverage, 85), "equal": (equal, 40)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=kinds)
    parser.add_argument("--lockstep", metavar="PROGRAM", required=True)
    parser.add_argument("--before", metavar="PROGRAM", help="equal: the other version")
    parser.add_argument("--seeds", type=int, help="of each (20, planted 10, coverage 85, equal 40)")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--gradients", default="4e6", help="planted, sweep, equal (4e6)")
    parser.add_argument("--command", default="evidence,sample", help="false_alarms: one of them")
    parser.add_argument("--hint", choices=("none", "init", "modes"), default="none", help="planted: the modes' means, given")
    parser.add_argument("--dims", default="2,5,8,12,20", help="sweep")
    parser.add_argument("--methods", default="pe,hmc,st,auto,pt", help="sweep")
    parser.add_argument("--generator", type=int, choices=(1, 2), default=1, help="sweep")
    parser.add_argument("--only", metavar="TEXT", default="", help="cases whose name has it")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--data-dir", default=os.environ.get("LOCKSTEP_DATA"))
    parser.add_argument("--out", metavar="FILE", help="every run, a line of JSON each")
    options = parser.parse_args()
    if options.what == "equal" and not options.before:
        parser.error("equal compares two versions: give --before PROGRAM")
    run, seeds = kinds[options.what]
    options.range = range(options.first_seed, options.first_seed + (options.seeds or seeds))
    run(Runner(options), options)


if __name__ == "__main__":
    main()
