#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""log Z of a Boltzmann machine's relaxation by BlackJAX's adaptive tempered SMC, and by `lockstep evidence` beside it.

    python3 bench/peers/smc_blackjax.py FOLDER [--lockstep build/cpu-release/lockstep]

FOLDER has weights.csv, biases.csv, D_sdp.csv and truth.csv (`log_Z`). The path begins at N(0, diag(1 + lambda)), lambda
the eigenvalues of W + D: the relaxation's covariance, were units independent and unbiased. BlackJAX: one jitted loop to
inverse temperature 1, float32, systematic resampling, HMC with a unit metric. lockstep: `--method auto` from its own
mean-field base, the same Gaussian one, and a scouted one, at each of --gradients.

Every seed runs all in turn. Costs are seconds of processor time (`cpu`): of the whole process for lockstep, of a warm
call for BlackJAX (`cold_wall` has the compilation in it). `cpu_to_rmse` is cost (RMSE / r)^2, what an error of r =
--rmse costs, as errors fall with the square root of cost; `interval` is its 90 % interval given so many seeds. Prints
JSON.
"""
import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import blackjax
import blackjax.smc.resampling
import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import chi2

import densities


def normal(sd):
    """(log density, draws) of N(0, diag(sd^2))."""
    def log_density(x):
        return -0.5 * jnp.sum((x / sd) ** 2) - jnp.sum(jnp.log(sd)) - 0.5 * sd.size * np.log(2 * np.pi)
    return log_density, lambda key, n: sd * jax.random.normal(key, (n, sd.size))


def smc(log_density, dim, base, options):
    """key -> (log Z, temperatures); `base` as `normal` returns it."""
    log_prior, draws = base
    hmc = blackjax.hmc.build_kernel()

    def step(key, state, density, step_size, inverse_mass_matrix):
        return hmc(key, state, density, step_size, inverse_mass_matrix, options.leapfrogs)
    algorithm = blackjax.adaptive_tempered_smc(
        log_prior, lambda x: log_density(x) - log_prior(x), step, blackjax.hmc.init,
        blackjax.smc.extend_params({"step_size": options.step, "inverse_mass_matrix": jnp.ones(dim)}),
        blackjax.smc.resampling.systematic, options.ess, num_mcmc_steps=options.moves)

    def iteration(at):
        key, state, log_z, count = at
        key, of_step = jax.random.split(key)
        state, info = algorithm.step(of_step, state)
        return key, state, log_z + info.log_likelihood_increment, count + 1

    @jax.jit
    def run(key):
        of_start, key = jax.random.split(key)
        state = algorithm.init(draws(of_start, options.particles))
        return jax.lax.while_loop(lambda at: at[1].tempering_param < 1, iteration, (key, state, 0.0, 0))[2:]
    return run


def by_lockstep(program, folder, settings, gradients, seed, target="boltzmann"):
    """(log Z, its standard error, processor seconds, seconds, failed gates) of a run."""
    command = [program, "evidence", f"--target={target}", f"--data={folder}", "--method=auto",
               f"--gradients={gradients}", f"--seed={seed}", f"--threads={len(os.sched_getaffinity(0))}", "--json",
               "--quiet"]
    for setting in settings:
        command += ["--set", setting]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):  # 3: a gate failed, which the summary says
        sys.exit(f"lockstep evidence ended with status {process.returncode} (above; nothing can be compared)")
    summary = json.loads(text)
    log_z = summary["log_z"]
    return log_z["estimate"], log_z["se"], usage.ru_utime + usage.ru_stime, wall, summary["failed_gates"]


def figures(errors, cpu, wall, stated):
    rmse, cost, n = float(np.sqrt(np.mean(np.square(errors)))), float(np.mean(cpu)), len(errors)
    to_rmse = cost * (rmse / stated) ** 2
    # n RMSE^2 / sigma^2 is chi-squared where errors are normal and unbiased.
    low, high = (to_rmse * n / chi2.ppf(q, n) for q in (0.95, 0.05))
    return {"seeds": n, "rmse": round(rmse, 4), "bias": round(float(np.mean(errors)), 4), "cpu": round(cost, 3),
            "cpu_least": round(min(cpu), 3), "cpu_largest": round(max(cpu), 3),
            "wall": round(float(np.median(wall)), 3), "cpu_to_rmse": float(f"{to_rmse:.3g}"),
            "interval": [float(f"{low:.2g}"), float(f"{high:.2g}")]}


def main():
    parser = argparse.ArgumentParser(description="log Z of a Boltzmann machine by BlackJAX's SMC, and by lockstep.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="weights.csv, biases.csv, D_sdp.csv, truth.csv")
    parser.add_argument("--lockstep", metavar="PROGRAM", help="lockstep, to be run beside it")
    parser.add_argument("--gradients", nargs="+", default=["1e6", "1e7"], help="of lockstep (1e6 1e7)")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rmse", type=float, default=0.05, help="that costs are stated for (0.05)")
    parser.add_argument("--particles", type=int, default=4096)
    parser.add_argument("--ess", type=float, default=0.9, help="share of effective particles at each step (0.9)")
    parser.add_argument("--moves", type=int, default=2, help="HMC transitions a temperature (2)")
    parser.add_argument("--leapfrogs", type=int, default=5, help="steps of each (5)")
    parser.add_argument("--step", type=float, default=0.4, help="their size (0.4)")
    options = parser.parse_args()
    if not (options.folder / "truth.csv").is_file():
        sys.exit(f"{options.folder} has no truth.csv (log Z is compared with it). Give a machine's folder")
    jax.config.update("jax_default_matmul_precision", "highest")
    target = densities.boltzmann(options.folder)
    _, bias, eigenvalues = densities.relaxation(options.folder)
    truth = float(dict(line.split(",") for line in (options.folder / "truth.csv").read_text().split())["log_Z"])
    sd = np.sqrt(1 + eigenvalues)

    run = smc(target.one, sd.size, normal(jnp.asarray(sd, jnp.float32)), options)
    cold = time.perf_counter()
    jax.block_until_ready(run(jax.random.key(0)))
    cold = time.perf_counter() - cold
    bases = {"mean-field": ["sampler.base=mean-field"], "scout": ["sampler.base=scout"],
             "gaussian": ["sampler.base=gaussian", f"sampler.base_sd={json.dumps([round(float(s), 9) for s in sd])}"]}
    results, steps = {}, []

    def add(name, error, cpu, wall, **more):
        entry = results.setdefault(name, {"error": [], "cpu": [], "wall": []})
        for key, value in {"error": error, "cpu": cpu, "wall": wall, **more}.items():
            entry.setdefault(key, []).append(value)
    for seed in range(1, options.seeds + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        log_z, count = (float(v) for v in run(jax.random.key(seed)))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        # `one` has log 2 cosh where the machine's has log cosh.
        add("blackjax adaptive tempered smc", log_z - len(bias) * np.log(2) - truth, cpu, wall)
        steps.append(count)
        for base, settings in bases.items() if options.lockstep else ():
            for gradients in options.gradients:
                log_z, se, cpu, wall, failed = by_lockstep(options.lockstep, options.folder, settings, gradients, seed)
                add(f"lockstep, base {base}, {gradients} gradients", log_z - truth, cpu, wall, se=se, failed=failed)
    table = {}
    for name, r in results.items():
        table[name] = figures(r["error"], r["cpu"], r["wall"], options.rmse)
        if "se" in r:
            table[name]["rms_z"] = round(float(np.sqrt(np.mean(np.square(np.divide(r["error"], r["se"]))))), 2)
            table[name]["failed_gates"] = sorted({gate for gates in r["failed"] for gate in gates})
        else:
            table[name] |= {"temperatures": float(np.mean(steps)), "cold_wall": round(cold, 2)}
        print(name, json.dumps(table[name]), file=sys.stderr)
    print(json.dumps({"what": "log Z of a Boltzmann relaxation", "processors": len(os.sched_getaffinity(0)),
                      "versions": {n: importlib.metadata.version(n) for n in ("jax", "blackjax")},
                      "smc": {k: getattr(options, k) for k in ("particles", "ess", "moves", "leapfrogs", "step")},
                      "rmse": options.rmse, "results": table}, indent=2))


if __name__ == "__main__":
    main()
