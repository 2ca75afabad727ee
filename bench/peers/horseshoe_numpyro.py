# SPDX-License-Identifier: Apache-2.0
"""NumPyro's NUTS on the posterior of target horseshoe beside a run of lockstep: time by effective draw of the predictive
probabilities, gradients, held-out log predictive density.

    taskset -c 0 python horseshoe_numpyro.py TABLE.csv RUN [--relevant 3] [--warmup 500] [--draws 500] [--chains 4]
        [--target-acceptance 0.9] [--seed 1]

RUN is the folder of a run of `lockstep sample --target horseshoe --data TABLE.csv --out RUN`: the cases that its
summary.json names held_out[row] are held out here too. Chains go one after the other, through warm-up, as many draws again
that compile what samples, and those that count. Effective draws are bulk ones, of ranks of the draws of split chains, as in
lockstep's table. Prints JSON.
"""
import argparse
import json
import math
import re
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from numpyro.infer import MCMC, NUTS
from scipy.special import ndtri
from scipy.stats import rankdata

parser = argparse.ArgumentParser()
parser.add_argument("table")
parser.add_argument("run")
parser.add_argument("--relevant", type=float, default=3)
parser.add_argument("--warmup", type=int, default=500)
parser.add_argument("--draws", type=int, default=500)
parser.add_argument("--chains", type=int, default=4)
parser.add_argument("--target-acceptance", type=float, default=0.9)
parser.add_argument("--seed", type=int, default=1)
asked = parser.parse_args()


def model(x, y, tau0):
    """As targets/horseshoe.hpp has it, slab of 3 degrees and scale 2."""
    p = x.shape[1]
    intercept = numpyro.sample("intercept", dist.Normal(0, 10))
    tau = numpyro.sample("tau", dist.HalfCauchy(tau0))
    v = numpyro.sample("v", dist.InverseGamma(1.5, 1.5))
    z = numpyro.sample("z", dist.Normal(0, 1).expand([p]))
    lam = numpyro.sample("lam", dist.HalfCauchy(1).expand([p]))
    c = 2 * jnp.sqrt(v)
    b = z * tau * lam * c / jnp.sqrt(c**2 + (tau * lam)**2)
    numpyro.deterministic("b", b)
    numpyro.sample("y", dist.Bernoulli(logits=intercept + x @ b), obs=y)


def effective(draws):
    """Of [chain][draw]: halves of chains as chains of their own, by normal scores of ranks."""
    half = draws.shape[1] // 2
    split = np.concatenate([draws[:, :half], draws[:, half:2 * half]])
    return effective_sample_size(ndtri((rankdata(split).reshape(split.shape) - 0.375) / (split.size + 0.25)))


def timed(work):
    """Its leapfrog steps, and seconds by the clock and of processor time."""
    clock, cpu = time.perf_counter(), time.process_time()
    work()
    jax.block_until_ready(mcmc.last_state)
    return {"gradients": int(np.sum(mcmc.get_extra_fields()["num_steps"])), "s": time.perf_counter() - clock,
            "cpu_s": time.process_time() - cpu}


def sample():
    mcmc.run(mcmc.post_warmup_state.rng_key, *data, extra_fields=("num_steps", "diverging"))


table = np.loadtxt(asked.table, delimiter=",")
summary = (Path(asked.run) / "summary.json").read_text(encoding="utf-8")
held_out = sorted({int(row) for row in re.findall(r"held_out\[(\d+)\]", json.dumps(json.loads(summary)["estimates"]))})
training = np.setdiff1d(np.arange(len(table)), held_out)
y, x = table[:, 0], table[:, 1:]
mean, sd = x[training].mean(axis=0), x[training].std(axis=0)
x = np.where(sd > 0, (x - mean) / np.where(sd > 0, sd, 1), 0)
tau0 = asked.relevant / (x.shape[1] - asked.relevant) * 2 / math.sqrt(len(training))

mcmc = MCMC(NUTS(model, target_accept_prob=asked.target_acceptance), num_warmup=asked.warmup, num_samples=asked.draws,
            num_chains=asked.chains, chain_method="sequential", progress_bar=False)
data = jnp.array(x[training]), jnp.array(y[training]), tau0
warmup = timed(lambda: mcmc.warmup(jax.random.PRNGKey(asked.seed), *data, extra_fields=("num_steps",),
                                   collect_warmup=True))
first = timed(sample)  # compiles
mcmc.post_warmup_state = mcmc.last_state
sampling = timed(sample)
fields, draws = mcmc.get_extra_fields(), mcmc.get_samples(group_by_chain=True)
logit = np.asarray(draws["intercept"])[..., None] + np.asarray(draws["b"]) @ x[held_out].T  # [chain][draw][case]
probability = 1 / (1 + np.exp(np.where(y[held_out] == 1, -logit, logit)))
size = [float(effective(probability[..., i])) for i in range(len(held_out))]
print(json.dumps({"numpyro": numpyro.__version__, "jax": jax.__version__, "chains": asked.chains,
                  "draws": asked.draws, "target_acceptance": asked.target_acceptance,
                  "warmup": warmup, "first": first, "sampling": sampling,
                  "divergences": int(np.sum(fields["diverging"])),
                  "ess_least": min(size), "ess_median": float(np.median(size)),
                  "rhat": max(float(split_gelman_rubin(probability[..., i])) for i in range(len(held_out))),
                  "cpu_s_per_effective_draw": sampling["cpu_s"] / min(size),
                  "log_predictive_density": float(np.mean(np.log(probability.mean(axis=(0, 1)))))}, indent=1))
