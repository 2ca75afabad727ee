#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gradients per effective draw of the no-U-turn sampler by NumPyro and by `lockstep sample --sampler nuts`, on the same
densities with the same warm-up: Stan's windows, each chain by itself.

    python3 bench/peers/nuts_numpyro.py --lockstep build/cpu-release/lockstep [--data posteriordb's folder]

Both run so many chains of 1000 + 1000 iterations from uniform(-2, 2), target acceptance 0.8, diagonal metric. Effective
draws of all parameters' means and squares by NumPyro's function for both: the least of them, and their geometric mean, which
is known better. Figures are leapfrog steps of the recorded iterations over effective draws; their ratios have errors by a
jackknife over ten groups of chains. Prints JSON.
"""
import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from netCDF4 import Dataset
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS

jax.config.update("jax_enable_x64", True)
SETTINGS = ["--iterations", "1000", "--warmup", "1000", "--init", "uniform:2", "--precision", "double"]


def half_cauchy(log_x, scale):
    """Log density of log x up to a constant, of a half-Cauchy x."""
    return log_x - jnp.log1p(jnp.exp(2 * log_x) / scale**2)


def gamma(log_x, shape, rate):
    return shape * log_x - rate * jnp.exp(log_x)


def eight_schools():
    y = jnp.array([28., 8, -3, 7, -1, 1, 18, 12])
    sigma = jnp.array([15., 10, 16, 11, 9, 11, 10, 18])

    def potential(x):
        mu, log_tau, t = x[0], x[1], x[2:]
        residual = (y - mu - jnp.exp(log_tau) * t) / sigma
        return -(-mu**2 / 50 + half_cauchy(log_tau, 5) - 0.5 * jnp.sum(t**2) - 0.5 * jnp.sum(residual**2))
    return 10, potential


def ark(data):
    y = jnp.array(data["y"], float)
    lags = int(data["K"])
    past = jnp.stack([y[lags - 1 - k:len(y) - 1 - k] for k in range(lags)], 1)

    def potential(x):
        alpha, beta, log_sigma = x[0], x[1:-1], x[-1]
        residual = (y[lags:] - alpha - past @ beta) / jnp.exp(log_sigma)
        return -(-(alpha**2 + jnp.sum(beta**2)) / 200 + half_cauchy(log_sigma, 2.5) - 0.5 * jnp.sum(residual**2)
                 - len(residual) * log_sigma)
    return lags + 2, potential


def gp_regr(data):
    x, y = jnp.array(data["x"], float), jnp.array(data["y"], float)

    def potential(p):
        rho, alpha, sigma = jnp.exp(p)
        k = alpha**2 * jnp.exp(-0.5 * ((x[:, None] - x[None]) / rho)**2) + sigma * jnp.eye(len(x))
        factor = jnp.linalg.cholesky(k)
        z = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
        priors = gamma(p[0], 25, 4) - alpha**2 / 8 + p[1] - sigma**2 / 2 + p[2]
        return -(priors - 0.5 * z @ z - jnp.sum(jnp.log(jnp.diagonal(factor))))
    return 3, potential


def by_numpyro(dim, potential, chains, seed):
    """Draws [chain][iteration][dim] and leapfrog steps [chain]."""
    starts = jax.random.uniform(jax.random.PRNGKey(seed), (chains, dim), minval=-2, maxval=2)
    run = MCMC(NUTS(potential_fn=potential, target_accept_prob=0.8, dense_mass=False), num_warmup=1000,
               num_samples=1000, num_chains=chains, chain_method="vectorized", progress_bar=False)
    run.run(jax.random.PRNGKey(seed + 1), init_params=starts, extra_fields=("num_steps",))
    steps = np.asarray(run.get_extra_fields(group_by_chain=True)["num_steps"])
    return np.asarray(run.get_samples(group_by_chain=True)), steps.sum(1)


def by_lockstep(program, arguments, dim, chains, seed):
    """The same, each chain a run of its own."""
    draws, steps = [], []
    with tempfile.TemporaryDirectory() as folder:
        for chain in range(chains):
            out = Path(folder) / str(chain)
            subprocess.run([program, "sample", "--sampler", "nuts", "--chains", "1", "--seed", str(seed + chain), "--draws",
                            "all", "--no-pictures", "--quiet", "--out", str(out), *SETTINGS, *arguments], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with Dataset(out / "draws.nc") as file:
                draws.append(np.asarray(file["posterior/x"][0])[:, :dim])
                steps.append(float(np.sum(file["sample_stats/n_steps"][0])))
    return np.array(draws), np.array(steps)


def cost(draws, steps):
    effective = np.concatenate([effective_sample_size(draws), effective_sample_size(draws**2)])
    return steps.sum() / np.array([effective.min(), np.exp(np.mean(np.log(effective)))])


def figures(runs):
    """Costs, and their relative errors by leaving out a tenth of the chains."""
    draws, steps = runs
    parts = np.arange(len(steps)) % 10
    left = np.log([cost(draws[parts != p], steps[parts != p]) for p in range(10)])
    return cost(draws, steps), np.sqrt(0.9 * np.sum((left - left.mean(0))**2, 0))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", required=True)
    parser.add_argument("--data", type=Path, help="with arK.json and gp_pois_regr.json")
    parser.add_argument("--chains", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    cases = {"eight_schools": (*eight_schools(), ["--target", "eight_schools"])}
    for name, make, file in (("ark", ark, "arK.json"), ("gp_regr", gp_regr, "gp_pois_regr.json")):
        if a.data:
            data = json.loads((a.data / file).read_text())
            cases[name] = (*make(data), ["--target", name, "--data", str(a.data / file)])
    result = {}
    for name, (dim, potential, arguments) in cases.items():
        theirs, their_error = figures(by_numpyro(dim, potential, a.chains, a.seed))
        ours, our_error = figures(by_lockstep(a.lockstep, arguments, dim, a.chains, a.seed))
        error = ours / theirs * np.hypot(their_error, our_error)
        result[name] = {of: {"numpyro": float(theirs[k]), "lockstep": float(ours[k]),
                             "ratio": float(ours[k] / theirs[k]), "ratio_error": float(error[k])}
                        for k, of in enumerate(("least", "geometric mean"))}
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
