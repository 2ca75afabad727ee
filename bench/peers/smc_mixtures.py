#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""log Z of mixtures of normals by BlackJAX's adaptive tempered SMC at the best of many settings, and by
`lockstep evidence` beside it.

    python3 bench/peers/smc_mixtures.py --lockstep build/cpu-release/lockstep

Targets: mixture20 (scenario a), and two mixtures of ten in 10 dimensions at a typical distance of 20: spherical ones of
standard deviations .5 to 1.5, and ones with covariances of their own whose axes have these. BlackJAX starts from a normal
of the target's own mean and standard deviations, and from a mixture of the kind that lockstep makes of the modes it finds (a fifth of that
normal, half as wide again in variance, and a normal at each mode, 1.2 times as wide in variance, by the square roots of their weights); it is told
means, weights and covariances. lockstep is told nothing (`--method auto`,
without exact draws), from its own choice of base, and from a normal of what its scout saw. Settings of BlackJAX: the
product of those below, a few seeds each; the three of each base that need least processor time for an RMSE of 0.05 are then run with all
seeds. Costs as in smc_blackjax.py. Prints JSON.
"""
import argparse
import itertools
import json
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

import densities
from smc_blackjax import by_lockstep, figures, normal, smc
from trust import spread, turned

GRID = {"particles": (1024, 4096), "ess": (0.5, 0.9), "moves": (1, 3), "leapfrogs": (5,),
        "step": (0.05, 0.1, 0.2, 0.4, 0.8)}
SCREENED = 4  # seeds


def mixtures():
    """{name: (means, weights, covariances)}."""
    random = np.random.default_rng(10)
    tenth = np.full(10, 0.1)
    return {"mixture20": (densities.KOU, densities.EQUAL, np.array([np.eye(2) * densities.SD**2] * 20)),
            "10-d, spherical": (spread(random, 10, 10), tenth,
                                np.array([np.eye(10) * s**2 for s in random.uniform(.5, 1.5, 10)])),
            "10-d, full": (spread(random, 10, 10), tenth, np.array([turned(random, 10) for _ in range(10)]))}


def log_density(means, weights, covariances):
    """Of a mixture: log Z is 0."""
    factors = np.array([np.linalg.inv(np.linalg.cholesky(c)) for c in covariances])
    constants = np.log(weights) + np.log(np.abs(np.linalg.det(factors))) - 0.5 * means.shape[1] * np.log(2 * np.pi)
    centres, factors, constants = (jnp.asarray(v, jnp.float32) for v in (means, factors, constants))

    def one(x):
        z = jnp.einsum("kij,kj->ki", factors, x - centres)
        return jax.nn.logsumexp(constants - 0.5 * jnp.sum(z * z, axis=1))
    return one


def standardised(means, weights, covariances):
    """The mixture in units of its own standard deviations about its mean."""
    mean = weights @ means
    sd = np.sqrt(weights @ (means**2 + np.diagonal(covariances, axis1=1, axis2=2)) - mean**2)
    return (means - mean) / sd, weights, covariances / np.outer(sd, sd)


def of_modes(means, weights, covariances):
    """(log density, draws) of a base made of the modes of a standardised mixture."""
    dim, roots = means.shape[1], np.sqrt(weights)
    means, covariances = np.vstack([np.zeros(dim), means]), np.concatenate([1.5 * np.eye(dim)[None], 1.2 * covariances])
    weights = np.concatenate([[0.2], 0.8 * roots / roots.sum()])
    centres, logs, factors = (jnp.asarray(v, jnp.float32) for v in (means, np.log(weights), np.linalg.cholesky(covariances)))

    def draws(key, n):
        of_which, of_where = jax.random.split(key)
        k = jax.random.categorical(of_which, logs, shape=(n,))
        return centres[k] + jnp.einsum("nij,nj->ni", factors[k], jax.random.normal(of_where, (n, dim)))
    return log_density(means, weights, covariances), draws


def screened(one, dim, base, options):
    """Settings in the order of what an error of --rmse would cost, with the functions that run them."""
    found = []
    for values in itertools.product(*GRID.values()):
        setting = dict(zip(GRID, values))
        run = smc(one, dim, base, SimpleNamespace(**setting))
        jax.block_until_ready(run(jax.random.key(0)))
        start = time.process_time()
        errors = [float(run(jax.random.key(100 + seed))[0]) for seed in range(SCREENED)]
        cost = (time.process_time() - start) / SCREENED
        found.append((cost * np.mean(np.square(errors)) / options.rmse**2, setting, run))
    return sorted(found, key=lambda entry: entry[0] if np.isfinite(entry[0]) else np.inf)


def main():
    parser = argparse.ArgumentParser(description="log Z of mixtures by BlackJAX's SMC, and by lockstep.")
    parser.add_argument("--lockstep", metavar="PROGRAM", required=True)
    parser.add_argument("--gradients", nargs="+", default=["2e5", "1e6"], help="of lockstep (2e5 1e6)")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rmse", type=float, default=0.05, help="that costs are stated for (0.05)")
    parser.add_argument("--only", metavar="NAME", help="this mixture alone")
    options = parser.parse_args()
    results = {}

    def keep(target, name, errors, cpu, wall, **more):
        results[target][name] = figures(errors, cpu, wall, options.rmse) | more
        print(target, name, json.dumps(results[target][name]), file=sys.stderr)
    for target, (means, weights, covariances) in mixtures().items():
        if options.only not in (None, target):
            continue
        results[target] = {}
        dim, scaled = means.shape[1], standardised(means, weights, covariances)
        bases = {"normal": normal(jnp.ones(dim, jnp.float32)), "modes": of_modes(*scaled)}
        best = [(f"blackjax, base {name}, {rank + 1}", found) for name, base in bases.items()
                for rank, found in enumerate(screened(log_density(*scaled), dim, base, options)[:3])]
        for name, (_, setting, run) in best:
            errors, cpu, wall = [], [], []
            for seed in range(1, options.seeds + 1):
                at_wall, at_cpu = time.perf_counter(), time.process_time()
                errors.append(float(run(jax.random.key(seed))[0]))
                cpu.append(time.process_time() - at_cpu)
                wall.append(time.perf_counter() - at_wall)
            keep(target, name, errors, cpu, wall, setting=setting)
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "mixture.json"
            data.write_text(json.dumps({"means": means.tolist(), "weights": weights.tolist(),
                                        "covariances": covariances.tolist()}), encoding="utf-8")
            for base, gradients in itertools.product(("auto", "scout"), options.gradients):
                runs = [by_lockstep(options.lockstep, data, ["sampler.exact_draws=none", f"sampler.base={base}"],
                                    gradients, seed, "mixture") for seed in range(1, options.seeds + 1)]
                log_z, _, cpu, wall, failed = zip(*runs)
                keep(target, f"lockstep, base {base}, {gradients} gradients", log_z, cpu, wall,
                     failed_gates=sorted({gate for gates in failed for gate in gates}))
    print(json.dumps({"what": "log Z of mixtures", "rmse": options.rmse, "results": results}, indent=2))


if __name__ == "__main__":
    main()
