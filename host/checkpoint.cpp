// SPDX-License-Identifier: Apache-2.0
#include "host/checkpoint.hpp"

#include <fmt/format.h>

#include <fstream>

#include "host/config.hpp"
#include "host/files.hpp"

namespace lockstep {

using nlohmann::json;

Checkpoint::Checkpoint(const std::filesystem::path& file, const std::string& identity)
    : file_(file), reading_(true) {
  if (!std::filesystem::exists(file))
    throw UserError(fmt::format(
        "{} does not exist (a finished run removes its checkpoint, and one that was interrupted in warm-up "
        "has none). Leave out --resume to start afresh.",
        file.string()));
  data_ = json::from_cbor(read_text(file), true, false);
  if (!data_.is_object() || !data_.contains("identity")) refuse();
  if (data_["identity"] != identity)
    throw UserError(fmt::format(
        "{} is of a run with other options, data or another version (the two would be mixed). Give "
        "only --out DIR and --resume to go on with that run, or another --out.",
        file.string()));
}

void Checkpoint::write(const std::filesystem::path& file, const std::string& identity) {
  data_["identity"] = identity;
  write_atomically(file, [&](const std::filesystem::path& temporary) {
    std::ofstream stream(temporary, std::ios::binary);
    json::to_cbor(data_, stream);
    if (!stream.flush()) throw std::runtime_error("cannot write " + file.string());
  });
}

void Checkpoint::refuse() const {
  throw UserError(fmt::format(
      "{} is damaged (it is no checkpoint of this version). Remove it and start afresh.", file_.string()));
}

bool CheckpointPlan::due(bool interrupted) {
  if (file.empty()) return false;
  if (!interrupted && !(seconds > 0 && seconds_since(last) > seconds)) return false;
  last = Clock::now();
  return true;
}

CheckpointPlan checkpoint_plan(const RunOptions& run, const TargetInstance& target,
                               const Settings& effective) {
  CheckpointPlan plan{run.out / "checkpoint", run_identity(run, target, effective), run.checkpoint,
                      run.resume};
  if (!run.resume && std::filesystem::exists(plan.file))
    throw UserError(fmt::format(
        "{} holds the checkpoint of an interrupted run (it would be lost). Add --resume to go on with that "
        "run, remove the file, or give another --out",
        run.out.string()));
  if (run.checkpoint > 0) write_atomically(run.out / "run.toml", write_run_toml(run));
  return plan;
}

std::string run_identity(const RunOptions& run, const TargetInstance& target, const Settings& effective) {
  RunOptions essential = run;
  essential.threads = 0;
  essential.device = "auto";
  essential.out.clear();
  essential.checkpoint = 0;
  essential.quiet = essential.json = false;
  std::string text = fmt::format("{} {}\n{}\n{}", LOCKSTEP_VERSION, kNumbersVersion,
                                 write_run_toml(essential), effective.dump());
  std::vector<double> x(target.dim()), gradient(target.dim());
  for (int point = 0; point < 4; ++point) {
    for (int i = 0; i < target.dim(); ++i) x[i] = (point - 1.3) * (1 + 0.37 * ((i * 7 + point) % 5));
    text += fmt::format(" {:a}", target.log_density(x.data(), gradient.data()));
    for (double g : gradient) text += fmt::format(" {:a}", g);
  }
  if (const Items* items = target.items()) {  // FNV-1a of all that items differ in
    std::uint64_t hash = 14695981039346656037u;
    const auto add = [&](const auto& values) {
      const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
      for (std::size_t i = 0; i < values.size() * sizeof(values[0]); ++i)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    };
    add(items->values);
    add(items->base_mean);
    add(items->base_sd);
    text += fmt::format("\n{} items {:x}", items->count, hash);
  }
  return text;
}

}  // namespace lockstep
