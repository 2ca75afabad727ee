#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gradients per second of Hamiltonian Monte Carlo by JAX, beside `lockstep-bench`, on lockstep's small targets.

    python3 bench/peers/hmc_jax.py                              # normal, two_modes in 10 and 100 dimensions, mixture20
    python3 bench/peers/hmc_jax.py --boltzmann FOLDER           # that relaxation too: FOLDER has weights.csv,
                                                                # biases.csv and D_sdp.csv

One chain's log density, differentiated and mapped over chains by JAX; trajectories and iterations are scans in one
jitted function; float32 (--x64: float64), on the device that JAX finds. `pe` is the pseudo-extended target with a normal
base, as in lockstep; a step of it costs N gradients of the target. Three rates:

    leapfrog    leapfrog steps alone, the best of five after a warm-up
    hmc         with momenta, acceptance and sums of x, ten steps an iteration; the best of five after a warm-up
    numpyro     NumPyro's HMC, chains vectorised, the same steps, where NumPyro is installed: by the difference of a run
                and one three times as long, for every run compiles anew

`seconds_to_rmse` is how long hmc takes until the standard error of E x is --rmse, for a normal and for mixture20: measured
by the scatter of 64 groups of chains in one run that goes on from another, and scaled as errors fall with the square root
of time; `cold` has the compilation in it. It is left out where the mean of all is more than 4 standard errors off (`z`):
such a run is too short, give more --gradients. Step sizes are given, not adapted: JAX has no warm-up to pay for.
Prints JSON.
"""
import argparse
import json
import os
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

REPEATS, STEPS, GROUPS = 5, 10, 64
KOU = np.array([  # the means printed in Kou, Zhou & Wong (2006), Table 1
    (2.18, 5.76), (8.67, 9.59), (4.24, 8.48), (8.41, 1.68), (3.93, 8.82), (3.25, 3.47), (1.70, 0.50), (4.59, 5.60),
    (6.91, 5.81), (6.87, 5.40), (5.41, 2.65), (2.70, 7.88), (4.98, 3.70), (1.14, 2.39), (8.33, 9.50), (4.93, 1.50),
    (1.83, 0.09), (2.26, 0.31), (5.54, 6.86), (1.69, 8.11)])


class Target:
    """A log density of one chain's state; `mean(states)` estimates E x from states [chain][row], of which there are
    `rows`; `gradients` of the density that is counted, in one of the state's."""

    def __init__(self, name, log_density, rows, step, start, mean=None, truth=None, gradients=1):
        self.name, self.log_density, self.rows, self.step, self.start = name, log_density, rows, step, start
        self.mean, self.truth, self.gradients = mean or (lambda x: x), truth, gradients


def normal(dim):
    return Target(f"normal, {dim} dimensions", lambda x: -0.5 * jnp.sum(x * x), dim, 0.5, (0.0, 1.0),
                  truth=np.zeros(dim))


def mixture(means, weights, sd):
    means = jnp.asarray(means)
    constant = jnp.log(jnp.asarray(weights)) - means.shape[1] * np.log(sd * np.sqrt(2 * np.pi))
    return lambda x: jax.nn.logsumexp(constant - 0.5 * jnp.sum((x - means) ** 2, axis=1) / sd**2)


def two_modes(dim):
    means = np.zeros((2, dim))
    means[:, 0] = 4, -4
    return Target(f"two_modes, {dim} dimensions", mixture(means, [0.7, 0.3], 1.0), dim, 0.4, (0.0, 1.0))


def pseudo_extended(samples):
    """Of mixture20 (scenario a), with base N(5, 3^2 I)."""
    target = mixture(KOU, np.full(20, 1 / 20), 0.1)
    base_constant = -2 * np.log(3 * np.sqrt(2 * np.pi))

    def parts(state):
        x, u = state[:2 * samples].reshape(samples, 2), state[2 * samples:]
        l = jax.vmap(target)(x)
        b = base_constant - 0.5 * jnp.sum((x - 5) ** 2, axis=1) / 9
        return x, u, l, b, jax.nn.sigmoid(u)

    def log_density(state):
        _, u, l, b, beta = parts(state)
        prior = jax.nn.log_sigmoid(u) + jax.nn.log_sigmoid(-u)
        return jax.nn.logsumexp((1 - beta) * (l - b)) + jnp.sum(beta * l + (1 - beta) * b + prior)

    def mean(states):
        def one(state):
            x, _, l, b, beta = parts(state)
            return jax.nn.softmax((1 - beta) * (l - b)) @ x
        return jax.vmap(one)(states)
    return Target(f"mixture20, pe N={samples}", log_density, 3 * samples, 0.1, (5.0, 3.0), mean, KOU.mean(axis=0),
                  samples)


def boltzmann(folder):
    """The relaxation of a machine; coordinates are those of W + diag(D) = Q Q' with positive eigenvalues."""
    w, b, d = (np.loadtxt(folder / name, delimiter=",") for name in ("weights.csv", "biases.csv", "D_sdp.csv"))
    values, vectors = np.linalg.eigh(w + np.diag(d))
    keep = values > 1e-6 * values.max()
    q, bias = jnp.asarray(vectors[:, keep] * np.sqrt(values[keep])), jnp.asarray(b)

    def log_density(x):
        y = jnp.abs(q @ x + bias)
        return jnp.sum(y + jnp.log1p(jnp.exp(-2 * y))) - 0.5 * jnp.sum(x * x)
    return Target(f"boltzmann, {len(b)} units, {keep.sum()} dimensions", log_density, int(keep.sum()), 0.2, (0.0, 1.0))


def leapfrog(gradient, step, steps, x, p, g):
    """Returns (x, p, value, g); the first half kick takes the gradient of the last trajectory."""
    def one(state, _):
        x, p, _, g = state
        p = p + 0.5 * step * g
        x = x + step * p
        value, g = gradient(x)
        return (x, p + 0.5 * step * g, value, g), None
    return jax.lax.scan(one, (x, p, jnp.zeros(x.shape[0], x.dtype), g), length=steps)[0]


def hmc(target, iterations):
    """(key, states) -> (states, sums of E x by chain, mean acceptance probability)."""
    gradient = jax.vmap(jax.value_and_grad(target.log_density))

    def iteration(state, key):
        x, value, g, sums, accepted = state
        for_p, for_u = jax.random.split(key)
        p = jax.random.normal(for_p, x.shape, x.dtype)
        y, q, new, h = leapfrog(gradient, target.step, STEPS, x, p, g)
        alpha = jnp.exp(jnp.minimum(new - value + 0.5 * jnp.sum(p * p - q * q, axis=1), 0))
        accept = jax.random.uniform(for_u, alpha.shape, x.dtype) < alpha
        x, g = (jnp.where(accept[:, None], a, b) for a, b in ((y, x), (h, g)))
        return (x, jnp.where(accept, new, value), g, sums + target.mean(x), accepted + alpha.mean()), None

    @jax.jit
    def run(key, x):
        value, g = gradient(x)
        sums = jnp.zeros_like(target.mean(x))
        start = (x, value, g, sums, jnp.zeros((), x.dtype))
        x, _, _, sums, accepted = jax.lax.scan(iteration, start, jax.random.split(key, iterations))[0]
        return x, sums / iterations, accepted / iterations
    return run


def seconds_of(work):
    start = time.perf_counter()
    jax.block_until_ready(work())
    return time.perf_counter() - start


def best_seconds(work):
    seconds_of(work)
    return min(seconds_of(work) for _ in range(REPEATS))


def numpyro_seconds(target, x, iterations):
    """Of so many iterations, without the compilation; None where NumPyro is not installed."""
    try:
        from numpyro.infer import HMC, MCMC
    except ImportError:
        return None
    # The potential takes one chain: NumPyro maps it itself.
    def best(length):
        kernel = HMC(potential_fn=lambda z: -target.log_density(z), step_size=target.step, num_steps=STEPS,
                     adapt_step_size=False, adapt_mass_matrix=False)
        mcmc = MCMC(kernel, num_warmup=0, num_samples=length, num_chains=x.shape[0], chain_method="vectorized",
                    progress_bar=False, thinning=length)

        def run():
            mcmc.run(jax.random.PRNGKey(1), init_params=x)
            return mcmc.get_samples()
        return min(seconds_of(run) for _ in range(3))
    return (best(3 * iterations) - best(iterations)) / 2


def measure(target, chains, budget, stated):
    dtype = jnp.float64 if jax.config.jax_enable_x64 else jnp.float32
    centre, spread = target.start
    x = centre + spread * jax.random.normal(jax.random.PRNGKey(0), (chains, target.rows), dtype)
    iterations = int(np.clip(budget // (chains * STEPS * target.gradients), 2, 5000))
    count = chains * iterations * STEPS * target.gradients
    run = hmc(target, iterations)
    cold = seconds_of(lambda: run(jax.random.PRNGKey(1), x))
    end, _, acceptance = run(jax.random.PRNGKey(1), x)
    seconds = best_seconds(lambda: run(jax.random.PRNGKey(2), end))

    gradient = jax.vmap(jax.value_and_grad(target.log_density))
    steps = jax.jit(lambda x, p: leapfrog(gradient, 1e-4 * target.step, iterations * STEPS, x, p, p)[:2])
    momenta = jax.random.normal(jax.random.PRNGKey(3), x.shape, dtype)
    alone = best_seconds(lambda: steps(end, momenta))
    out = {"target": target.name, "chains": chains, "iterations": iterations,
           "acceptance": round(float(acceptance), 3), "leapfrog_gradients_per_s": float(f"{count / alone:.4g}"),
           "hmc_gradients_per_s": float(f"{count / seconds:.4g}")}
    by_numpyro = numpyro_seconds(target, end, iterations)
    if by_numpyro is not None and by_numpyro > 0:
        out["numpyro_gradients_per_s"] = float(f"{count / by_numpyro:.4g}")
    if target.truth is not None and chains % GROUPS == 0:
        means = np.asarray(run(jax.random.PRNGKey(4), end)[1], dtype=float)
        groups = means.reshape(GROUPS, -1, means.shape[1]).mean(axis=1)
        se = groups.std(axis=0, ddof=1) / np.sqrt(GROUPS)
        z = float(np.abs((groups.mean(axis=0) - target.truth) / se).max())
        rmse = float(np.sqrt((se**2).mean()))
        out |= {"rmse": float(f"{rmse:.3g}"), "z": round(z, 1)}
        if z < 4:
            warm = seconds * (rmse / stated) ** 2
            out["seconds_to_rmse"] = {"rmse": stated, "warm": float(f"{warm:.3g}"),
                                      "cold": float(f"{cold - seconds + warm:.3g}")}
    return out


def main():
    parser = argparse.ArgumentParser(description="Gradients per second of HMC by JAX on lockstep's small targets.")
    parser.add_argument("--chains", type=int, nargs="+", default=[4096, 65536])
    parser.add_argument("--targets", nargs="+", default=["normal", "two_modes", "mixture20"],
                        choices=["normal", "two_modes", "mixture20"])
    parser.add_argument("--boltzmann", type=Path, metavar="FOLDER", help="a machine: weights, biases, D_sdp as .csv")
    parser.add_argument("--gradients", type=float, default=2e7, help="in one measurement, about (2e7)")
    parser.add_argument("--rmse", type=float, default=1e-3, help="of E x that a time is stated for (0.001)")
    parser.add_argument("--x64", action="store_true", help="float64 instead of float32")
    options = parser.parse_args()
    if min(options.chains) < 1:
        parser.error("--chains has a number below 1 (there is nothing to run). Give positive numbers")
    jax.config.update("jax_enable_x64", options.x64)
    jax.config.update("jax_default_matmul_precision", "highest")
    targets = []
    if "normal" in options.targets:
        targets.append(normal(10))
    if "two_modes" in options.targets:
        targets += [two_modes(10), two_modes(100)]
    if "mixture20" in options.targets:
        targets += [pseudo_extended(2), pseudo_extended(5)]
    if options.boltzmann:
        if not (options.boltzmann / "weights.csv").is_file():
            sys.exit(f"{options.boltzmann} has no weights.csv (the machine is read from it). Give a machine's folder")
        targets.append(boltzmann(options.boltzmann))
    rates = []
    for target in targets:
        for chains in options.chains:
            print(f"{target.name}, {chains} chains", file=sys.stderr)
            rates.append(measure(target, chains, options.gradients, options.rmse))
    device = jax.devices()[0]
    print(json.dumps({"what": "HMC by JAX", "platform": device.platform, "device": device.device_kind,
                      "threads": len(os.sched_getaffinity(0)), "jax": jax.__version__,
                      "precision": "float64" if options.x64 else "float32", "rates": rates}, indent=2))


if __name__ == "__main__":
    main()
