# SPDX-License-Identifier: Apache-2.0
# Stan's NUTS on the posterior of target horseshoe beside a run of lockstep: processor time by effective draw of the
# predictive probabilities, gradients, held-out log predictive density. Debian packages r-cran-rstan,
# r-cran-codetools and libboost-dev.
#
#     taskset -c 0 Rscript horseshoe_rstan.R TABLE.csv RUN [relevant=3] [warmup=200] [draws=200] [chains=4]
#         [acceptance=0.9] [seed=1]
#
# RUN is the folder of a run of `lockstep sample --target horseshoe --data TABLE.csv --out RUN`: the cases that its
# summary.json names held_out[row] are held out here too. Chains go one after the other, from uniform(-2, 2). Effective draws
# are bulk ones, as in lockstep's table. Prints JSON.
suppressPackageStartupMessages(library(rstan))

given <- commandArgs(trailingOnly = TRUE)
asked <- list(relevant = 3, warmup = 200, draws = 200, chains = 4, acceptance = 0.9, seed = 1)
for (word in given[-(1:2)]) {
  pair <- strsplit(word, "=")[[1]]
  if (length(pair) != 2 || !(pair[1] %in% names(asked))) stop("no setting ", word)
  asked[[pair[1]]] <- as.numeric(pair[2])
}

# As targets/horseshoe.hpp has it, slab of 3 degrees and scale 2; the likelihood by Stan's own function for linear models.
code <- "
data {
  int<lower=1> n;
  int<lower=1> p;
  matrix[n, p] x;
  int<lower=0, upper=1> y[n];
  real<lower=0> tau0;
}
parameters {
  real intercept;
  real<lower=0> tau;
  real<lower=0> v;
  vector[p] z;
  vector<lower=0>[p] lambda;
}
transformed parameters {
  vector[p] b;
  {
    real c2 = 4 * v;
    vector[p] near = tau * lambda;
    b = z .* near .* sqrt(c2 ./ (c2 + square(near)));
  }
}
model {
  intercept ~ normal(0, 10);
  tau ~ cauchy(0, tau0);
  v ~ inv_gamma(1.5, 1.5);
  z ~ std_normal();
  lambda ~ cauchy(0, 1);
  y ~ bernoulli_logit_glm(x, intercept, b);
}
"
table <- unname(as.matrix(read.csv(given[1], header = FALSE)))
summary <- paste(readLines(file.path(given[2], "summary.json")), collapse = "\n")
rows <- sort(unique(as.integer(gsub("[^0-9]", "", unlist(regmatches(summary, gregexpr("held_out\\[[0-9]+\\]", summary)))))))
held <- rows + 1
x <- table[, -1]
y <- table[, 1]
train <- setdiff(seq_len(nrow(x)), held)
mean <- colMeans(x[train, ])
sd <- sqrt(colMeans(sweep(x[train, ], 2, mean)^2))
x <- sweep(sweep(x, 2, mean), 2, ifelse(sd > 0, sd, 1), "/")
x[, sd == 0] <- 0
tau0 <- asked$relevant / (ncol(x) - asked$relevant) * 2 / sqrt(length(train))

rstan_options(boost_lib = "/usr/include")  # where Debian keeps it
model <- stan_model(model_code = code)
fit <- sampling(model, data = list(n = length(train), p = ncol(x), x = x[train, ], y = as.integer(y[train]), tau0 = tau0),
                chains = asked$chains, iter = asked$warmup + asked$draws, warmup = asked$warmup, cores = 1, refresh = 0,
                seed = asked$seed, control = list(adapt_delta = asked$acceptance), pars = c("intercept", "b"), include = TRUE)
draws <- rstan::extract(fit, pars = c("intercept", "b"), permuted = FALSE)  # [draw][chain][number]
steps <- get_sampler_params(fit, inc_warmup = TRUE)
count <- function(rows) sum(sapply(steps, function(s) sum(s[rows, "n_leapfrog__"])))
seconds <- get_elapsed_time(fit)
p <- ncol(x)
probability <- sapply(held, function(i) {
  logit <- draws[, , 1] + apply(draws[, , 1 + seq_len(p), drop = FALSE], c(1, 2), function(b) sum(b * x[i, ]))
  plogis(ifelse(y[i] == 1, 1, -1) * logit)
}, simplify = "array")  # [draw][chain][case]
size <- apply(probability, 3, ess_bulk)
sampled <- asked$warmup + seq_len(asked$draws)
out <- list(chains = asked$chains, draws = asked$draws, target_acceptance = asked$acceptance,
            warmup_gradients = count(seq_len(asked$warmup)), gradients = count(sampled),
            warmup_s = sum(seconds[, "warmup"]), sampling_s = sum(seconds[, "sample"]),
            us_per_gradient = 1e6 * sum(seconds[, "sample"]) / count(sampled),
            divergences = get_num_divergent(fit), ess_least = min(size), ess_median = median(size),
            rhat = max(apply(probability, 3, Rhat)),
            ms_per_effective_draw = 1e3 * sum(seconds[, "sample"]) / min(size),
            log_predictive_density = base::mean(log(apply(probability, 3, base::mean))))
cat("{\"rstan\": \"", as.character(packageVersion("rstan")), "\", ",
    paste0("\"", names(out), "\": ", sapply(out, format, digits = 6), collapse = ", "), "}\n", sep = "")
