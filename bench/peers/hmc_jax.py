#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gradients per second of Hamiltonian Monte Carlo by JAX, BlackJAX and NumPyro on lockstep's small targets.

    python3 bench/peers/hmc_jax.py                              # normal, two_modes in 10 and 100 dimensions, mixture20
    python3 bench/peers/hmc_jax.py --boltzmann FOLDER           # that relaxation too: FOLDER has weights.csv,
                                                                # biases.csv and D_sdp.csv
    taskset -c 0 python3 bench/peers/hmc_jax.py --lockstep build/cpu-release/lockstep-bench     # beside it, one core

Ten leapfrog steps an iteration, with momenta, acceptance and sums of E x; float32 (--x64: float64); step sizes are
given, not adapted. One jitted loop runs all iterations, its states donated. Forms, each with every number of --chains:

    jax [chains][dim]   one chain's log density (densities.py, `one`), differentiated and mapped over chains by JAX
    jax [dim][chains]   value and gradient written by hand for all chains (`columns`), on a CPU steps unrolled
    ... split           the latter with each processor a device of its own that has its share of the chains
    blackjax            blackjax.hmc mapped over chains in one jitted loop, where BlackJAX is installed
    numpyro             MCMC(HMC(..), chain_method="vectorized"), where NumPyro is installed: once, by the difference
                        of a run and one three times as long, for every run compiles anew
    lockstep            lockstep-bench with the same steps, a thread for each processor, in its mixed precision, and
    lockstep single     in float32 throughout, as the others

The others take turns, --rounds of them. Rates are medians, least and largest over the rounds, by the clock (`wall`) and
by processor time (`cpu`, which other programs disturb less). `best` is the form and number of chains with which JAX is
fastest by the clock; `ratio` is lockstep's rate, with its own best number of chains, over that, round by round.

`seconds_to_rmse` is how long it takes until the standard error of E x is --rmse (normal and pseudo-extended), by the
scatter of 64 groups of chains, scaled as errors fall with the square root of time; `cold` has the compilation in it. It
is left out where the mean of all is more than 4 standard errors off (`z`): the run is too short, give more --seconds.
Prints JSON.
"""
import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

STEPS, GROUPS, REPEATS = 10, 64, 5
# Each processor a device of its own, for the split form: must be said before JAX starts.
PROCESSORS = len(os.sched_getaffinity(0))
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={PROCESSORS}"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import densities  # noqa: E402


def chain_function(target, columns):
    """(key, states, iterations) -> (states, means of E x, of acceptance, by chain); chains are axis `columns`."""
    both = target.columns if columns else jax.vmap(jax.value_and_grad(target.one, has_aux=target.estimates))
    over = 1 - columns  # the axis of rows
    unroll = STEPS - 1 if columns and target.unrolled and jax.devices()[0].platform == "cpu" else 1

    def split(value):
        return value if target.estimates else (value, ())

    def iteration(key, state):
        x, g, value, estimate, sums, accepted = state
        for_p, for_u = jax.random.split(key)
        p = jax.random.normal(for_p, x.shape, x.dtype)

        def step(at, _):  # the value is not asked for, and so not computed
            y, q = at
            h = both(y)[1]
            q = q + target.step * h
            return (y + target.step * q, q), None
        q = p + 0.5 * target.step * g
        (y, q), _ = jax.lax.scan(step, (x + target.step * q, q), length=STEPS - 1, unroll=unroll)
        new, h = both(y)
        new, new_estimate = split(new)
        q = q + 0.5 * target.step * h
        alpha = jnp.exp(jnp.minimum(new - value + 0.5 * jnp.sum(p * p - q * q, axis=over), 0))
        accept = jax.random.uniform(for_u, alpha.shape, x.dtype) < alpha

        def choose(a, b):
            return jnp.where(accept if columns or a.ndim == 1 else accept[:, None], a, b)
        x, g, value, estimate = jax.tree.map(choose, (y, h, new, new_estimate), (x, g, value, estimate))
        return (x, g, value, estimate, sums + (estimate if target.estimates else x), accepted + alpha)

    def run(key, x, iterations):
        value, g = both(x)
        value, estimate = split(value)
        sums = jnp.zeros_like(estimate if target.estimates else x)
        state = (x, g, value, estimate, sums, jnp.zeros_like(value))
        x, *_, sums, accepted = jax.lax.fori_loop(
            0, iterations, lambda i, state: iteration(jax.random.fold_in(key, i), state), state)
        means = sums / iterations
        return x, means.T if columns else means, accepted / iterations
    return run


def blackjax_function(target):
    import blackjax
    density = (lambda x: target.one(x)[0]) if target.estimates else target.one
    hmc = blackjax.hmc(density, target.step, jnp.ones(target.rows), STEPS)

    def run(key, x, iterations):
        def iteration(i, state):
            states, sums, accepted = state
            keys = jax.random.split(jax.random.fold_in(key, i), x.shape[0])
            states, info = jax.vmap(hmc.step)(keys, states)
            return states, sums + states.position, accepted + info.acceptance_rate
        start = (jax.vmap(hmc.init)(x), jnp.zeros_like(x), jnp.zeros(x.shape[0], x.dtype))
        states, sums, accepted = jax.lax.fori_loop(0, iterations, iteration, start)
        return states.position, sums / iterations, accepted / iterations
    return run


class Chains:
    """Chains that go on from call to call. One measurement takes about `seconds`, in REPEATS parts of which the best
    counts, as in lockstep-bench."""

    def __init__(self, target, run, x, chains, seconds):
        self.run, self.x, self.calls, self.iterations = jax.jit(run, donate_argnums=1), x, 0, 4
        self.per_iteration = chains * STEPS * target.gradients
        self.cold = self.call()[0]
        while (wall := min(self.call()[0] for _ in range(2))) < 0.01:
            self.iterations *= 4
        self.iterations = max(1, round(self.iterations * seconds / REPEATS / wall))

    def call(self):
        """Seconds by the clock and of processor time."""
        self.calls += 1
        wall, cpu = time.perf_counter(), time.process_time()
        self.x, self.means, self.acceptance = jax.block_until_ready(
            self.run(jax.random.key(self.calls), self.x, self.iterations))
        return time.perf_counter() - wall, time.process_time() - cpu

    def rates(self):
        return tuple(self.iterations * self.per_iteration / np.min([self.call() for _ in range(REPEATS)], axis=0))


class Lockstep:
    def __init__(self, program, target, chains, seconds, precision):
        self.file = Path(tempfile.mkdtemp()) / "bench.json"
        settings = (f"num_leapfrog={STEPS}", f"step_size={target.step}", "jitter=false", "metric=unit", "adapt=none")
        self.command = [program, *target.options, *(f"--set=sampler.{text}" for text in settings), f"--chains={chains}",
                        f"--threads={PROCESSORS}", f"--seconds={seconds}", f"--json={self.file}",
                        f"--precision={precision}"]

    def rates(self):
        if subprocess.run(self.command, stdout=subprocess.DEVNULL, check=False).returncode:
            sys.exit(f"{self.command[0]} failed (above; nothing can be compared with it). Give a working --lockstep")
        run = json.loads(self.file.read_text(encoding="utf-8"))["runs"][0]
        return run["gradients_per_s"], run["gradients_per_cpu_s"]


def numpyro_rates(target, like):
    from numpyro.infer import HMC, MCMC
    density = (lambda z: target.one(z)[0]) if target.estimates else target.one

    x, iterations = like.x, 10 * like.iterations

    # The potential takes one chain: NumPyro maps it itself.
    def seconds(length):
        kernel = HMC(potential_fn=lambda z: -density(z), step_size=target.step, num_steps=STEPS,
                     adapt_step_size=False, adapt_mass_matrix=False)
        mcmc = MCMC(kernel, num_warmup=0, num_samples=length, num_chains=x.shape[0], chain_method="vectorized",
                    progress_bar=False, thinning=length)
        best = []
        for _ in range(2):
            wall, cpu = time.perf_counter(), time.process_time()
            mcmc.run(jax.random.PRNGKey(1), init_params=x)
            jax.block_until_ready(mcmc.get_samples())
            best.append((time.perf_counter() - wall, time.process_time() - cpu))
        return np.min(best, axis=0)
    taken = (seconds(3 * iterations) - seconds(iterations)) / 2
    return [tuple(iterations * like.per_iteration / taken)] if taken.min() > 0 else []


def rounded(value):
    return float(f"{value:.4g}")


def spread(values):
    return {name: rounded(f(values)) for name, f in (("median", np.median), ("least", np.min), ("largest", np.max))}


def to_rmse(chains, seconds, truth, stated):
    """What a run's scatter of E x says of the time to `stated`."""
    means = np.asarray(chains.means, dtype=float)
    groups = means.reshape(GROUPS, -1, means.shape[1]).mean(axis=1)
    se = groups.std(axis=0, ddof=1) / np.sqrt(GROUPS)
    z = float(np.abs((groups.mean(axis=0) - truth) / se).max())
    rmse = float(np.sqrt((se**2).mean()))
    out = {"rmse": rounded(rmse), "z": round(z, 1)}
    if z < 4:
        warm = seconds * (rmse / stated) ** 2
        out["seconds_to_rmse"] = {"rmse": stated, "warm": rounded(warm), "cold": rounded(chains.cold + warm)}
    return out


def contenders(target, options):
    """{(form, chains): what has rates()}, compiled and warm."""
    found = {}
    dtype = jnp.float64 if jax.config.jax_enable_x64 else jnp.float32
    for chains in options.chains:
        def add(form, run, columns=False, split=False):
            shape = (target.rows, chains) if columns else (chains, target.rows)
            x = target.start[0] + target.start[1] * jax.random.normal(jax.random.key(0), shape, dtype)
            if split:
                mesh = jax.sharding.Mesh(np.array(jax.devices()), ("chains",))
                x = jax.device_put(x, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(None, "chains")))
            found[form, chains] = Chains(target, run, x, chains, options.seconds)
        add("jax [chains][dim]", chain_function(target, 0))
        add("jax [dim][chains]", chain_function(target, 1), columns=True)
        if len(jax.devices()) > 1 and chains % len(jax.devices()) == 0:
            add("jax [dim][chains], split", chain_function(target, 1), columns=True, split=True)
        if "blackjax" in options.peers:
            add("blackjax", blackjax_function(target))
        if options.lockstep:
            for form, precision in (("lockstep", "mixed"), ("lockstep single", "single")):
                found[form, chains] = Lockstep(options.lockstep, target, chains, options.seconds, precision)
    return found


def measure(target, options):
    found = contenders(target, options)
    rates = {key: [] for key in found}
    for _ in range(options.rounds):
        for key, contender in found.items():
            rates[key].append(contender.rates())
    if "numpyro" in options.peers:
        rates["numpyro", options.chains[0]] = numpyro_rates(target, found["jax [chains][dim]", options.chains[0]])
    out = {"target": target.name, "step_size": target.step, "forms": []}
    for (form, chains), each in rates.items():
        if not each:
            continue
        wall, cpu = np.transpose(each)
        entry = {"form": form, "chains": chains, "wall": spread(wall), "cpu": spread(cpu)}
        contender = found.get((form, chains))
        if isinstance(contender, Chains):
            entry["acceptance"] = round(float(contender.acceptance.mean()), 3)
            if target.truth is not None and chains % GROUPS == 0 and form.startswith("jax"):
                seconds = contender.iterations * contender.per_iteration / np.median(wall)
                entry |= to_rmse(contender, seconds, target.truth, options.rmse)
        out["forms"].append(entry)

    def best(program):
        own = (key for key in rates if key[0] == program or key[0].startswith(program + " ["))
        return max(own, key=lambda key: np.median(rates[key], axis=0)[0])
    out["best"] = " x ".join(map(str, best("jax")))
    if options.lockstep:
        ratios = np.array(rates[best("lockstep")]) / np.array(rates[best("jax")])
        out["ratio"] = {"wall": spread(ratios[:, 0]), "cpu": spread(ratios[:, 1])}
    return out


def installed(*names):
    there = {d.metadata["Name"].lower() for d in importlib.metadata.distributions()}
    return {name: importlib.metadata.version(name) for name in names if name in there}


def main():
    parser = argparse.ArgumentParser(description="Gradients per second of HMC by JAX on lockstep's small targets.")
    parser.add_argument("--chains", type=int, nargs="+", default=[4096, 1024])
    parser.add_argument("--targets", nargs="+", default=["normal", "two_modes", "mixture20"],
                        choices=["normal", "two_modes", "mixture20"])
    parser.add_argument("--boltzmann", type=Path, metavar="FOLDER", help="a machine: weights, biases, D_sdp as .csv")
    parser.add_argument("--lockstep", metavar="PROGRAM", help="lockstep-bench, to be run beside them")
    parser.add_argument("--peers", nargs="*", default=["blackjax", "numpyro"], help="of those that are installed")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each (5)")
    parser.add_argument("--seconds", type=float, default=0.5, help="of one measurement, about (0.5)")
    parser.add_argument("--rmse", type=float, default=1e-3, help="of E x that a time is stated for (0.001)")
    parser.add_argument("--x64", action="store_true", help="float64 instead of float32")
    parser.add_argument("--check", action="store_true", help="only compare the gradients of the two forms")
    options = parser.parse_args()
    if min(options.chains) < 1:
        parser.error("--chains has a number below 1 (there is nothing to run). Give positive numbers")
    jax.config.update("jax_enable_x64", options.x64)
    jax.config.update("jax_default_matmul_precision", "highest")
    versions = installed("jax", "blackjax", "numpyro")
    options.peers = [name for name in options.peers if name in versions]
    targets = []
    if "normal" in options.targets:
        targets.append(densities.normal(10))
    if "two_modes" in options.targets:
        targets += [densities.two_modes(10), densities.two_modes(100)]
    if "mixture20" in options.targets:
        targets += [densities.mixture20(), densities.pseudo_extended(2), densities.pseudo_extended(5)]
    if options.boltzmann:
        if not (options.boltzmann / "weights.csv").is_file():
            sys.exit(f"{options.boltzmann} has no weights.csv (the machine is read from it). Give a machine's folder")
        targets.append(densities.boltzmann(options.boltzmann))
    if options.check:
        print(json.dumps({target.name: rounded(densities.difference(target)) for target in targets}, indent=2))
        return
    rates = []
    for target in targets:
        print(target.name, file=sys.stderr)
        rates.append(measure(target, options))
    device = jax.devices()[0]
    print(json.dumps({"what": "HMC by JAX", "platform": device.platform, "device": device.device_kind,
                      "processors": PROCESSORS, "versions": versions,
                      "precision": "float64" if options.x64 else "float32", "rates": rates}, indent=2))


if __name__ == "__main__":
    main()
