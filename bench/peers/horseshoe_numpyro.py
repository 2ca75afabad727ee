# SPDX-License-Identifier: Apache-2.0
"""NumPyro's NUTS on the posterior of target horseshoe: time, gradients and held-out log predictive density.

    python horseshoe_numpyro.py TABLE.csv RUN [--relevant 3] [--warmup 500] [--draws 500] [--chains 1] [--seed 1]

RUN is the folder of a run of `lockstep sample --target horseshoe --data TABLE.csv --out RUN`: the cases that its
summary.json names held_out[row] are held out here too.
"""
import argparse
import json
import math
import os
import re
import time
from pathlib import Path

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("table")
parser.add_argument("run")
parser.add_argument("--relevant", type=float, default=3)
parser.add_argument("--warmup", type=int, default=500)
parser.add_argument("--draws", type=int, default=500)
parser.add_argument("--chains", type=int, default=1)
parser.add_argument("--seed", type=int, default=1)
asked = parser.parse_args()
os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count={asked.chains}")

import jax  # noqa: E402  after the number of devices
import jax.numpy as jnp  # noqa: E402
import numpyro  # noqa: E402
import numpyro.distributions as dist  # noqa: E402
from numpyro.infer import MCMC, NUTS  # noqa: E402


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


table = np.loadtxt(asked.table, delimiter=",")
names = (Path(asked.run) / "summary.json").read_text(encoding="utf-8")
estimates = json.loads(names)["estimates"]
held_out = sorted({int(row) for row in re.findall(r"held_out\[(\d+)\]", json.dumps(estimates))})
training = np.setdiff1d(np.arange(len(table)), held_out)
y, x = table[:, 0], table[:, 1:]
mean, sd = x[training].mean(axis=0), x[training].std(axis=0)
x = np.where(sd > 0, (x - mean) / np.where(sd > 0, sd, 1), 0)
tau0 = asked.relevant / (x.shape[1] - asked.relevant) * 2 / math.sqrt(len(training))

mcmc = MCMC(NUTS(model), num_warmup=asked.warmup, num_samples=asked.draws, num_chains=asked.chains,
            progress_bar=False)
begun = time.perf_counter()
mcmc.warmup(jax.random.PRNGKey(asked.seed), jnp.array(x[training]), jnp.array(y[training]), tau0,
            extra_fields=("num_steps",), collect_warmup=True)
jax.block_until_ready(mcmc.last_state)
warm_steps = int(np.sum(mcmc.get_extra_fields()["num_steps"]))
warmed = time.perf_counter()
mcmc.run(mcmc.post_warmup_state.rng_key, jnp.array(x[training]), jnp.array(y[training]), tau0,
         extra_fields=("num_steps", "diverging"))
jax.block_until_ready(mcmc.last_state)
ended = time.perf_counter()
fields, draws = mcmc.get_extra_fields(), mcmc.get_samples()
steps = int(np.sum(fields["num_steps"]))
logit = np.asarray(draws["intercept"])[:, None] + np.asarray(draws["b"]) @ x[held_out].T
probability = 1 / (1 + np.exp(np.where(y[held_out] == 1, -logit, logit)))
print(json.dumps({"numpyro": numpyro.__version__, "chains": asked.chains, "warmup_gradients": warm_steps,
                  "warmup_s": warmed - begun, "gradients": steps, "sampling_s": ended - warmed,
                  "gradients_per_s": steps / (ended - warmed), "divergences": int(np.sum(fields["diverging"])),
                  "log_predictive_density": float(np.mean(np.log(probability.mean(axis=0))))}))
