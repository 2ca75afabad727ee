// SPDX-License-Identifier: Apache-2.0
#include "host/commands/run_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/formats/data.hpp"
#include "host/options/config.hpp"
#include "host/runs/run_draws.hpp"
#include "host/util/errors.hpp"
#include "host/util/files.hpp"
#include "host/util/processes.hpp"
#include "host/util/program.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The folder's summary.json; null where there is none.
Json kept_summary(const fs::path& folder) {
  const fs::path file = folder / "summary.json";
  if (!fs::exists(file)) return Json();
  Json summary = Json::parse(read_text(file), nullptr, false);
  if (!summary.is_object() || !summary.contains("cost") || !summary["cost"].is_object() ||
      summary.value("checksum", "") != summary_checksum(summary))
    throw UserError(
        fmt::format("{} is damaged, or of an older version (its numbers cannot be trusted). Delete it, and "
                    "--resume begins "
                    "again; or give --force",
                    file.string()));
  return summary;
}

/// Whether all that the run was to write is there.
bool is_whole(const fs::path& folder, const Json& summary) {
  if (summary.value("interrupted", false)) return false;
  for (const auto& name : summary.value("files", Json::array()))
    if (!fs::exists(folder / name.get<std::string>())) return false;
  return true;
}

[[noreturn]] void refuse_other_run(const fs::path& file) {
  throw UserError(fmt::format(
      "{} is of a run with other options, data, points of --init or --modes, or another version "
      "(the two would be mixed). Give only --out DIR and --resume to go on with that run, or another "
      "--out",
      file.string()));
}

/// What --resume finds where no checkpoint is.
void resume_without_checkpoint(RunFiles& files, const RunOptions& run) {
  const Json summary = kept_summary(run.out);
  if (!summary.is_null()) {
    if (summary.value("identity", "") != checksum(files.checkpoint.identity))
      refuse_other_run(run.out / "summary.json");
    if (is_whole(run.out, summary)) files.finished = summary;
  } else if (const fs::path begun = run.out / "run.toml"; fs::exists(begun)) {
    RunOptions kept;
    kept.command = run.command;
    load_run_config(begun, kept);
    if (essential_options(kept) != essential_options(run)) refuse_other_run(begun);
  }
  if (!run.quiet)
    say(files.finished ? fmt::format("{} holds this run, finished: nothing is computed", run.out.string())
                       : fmt::format("{} holds no checkpoint: the run begins", run.out.string()));
  files.checkpoint.resume = false;
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder) {
  ensure_writable_folder(folder);
  file_ = folder / ".lock";
  while (true) {
    descriptor_ = open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0)
      throw UserError(
          fmt::format("cannot write '{}' (two runs could write the same files: {}). Give another --out",
                      file_.string(), std::generic_category().message(errno)));
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) break;  // a file system without locks
      std::string owner = read_text(file_);
      close(std::exchange(descriptor_, -1));
      throw UserError(
          fmt::format("{} is in use by another run{} (each would overwrite the other's files). Wait "
                      "for its end, or give another --out",
                      folder.string(), owner.empty() ? "" : ", process " + owner));
    }
    struct stat locked, named;
    if (fstat(descriptor_, &locked) == 0 && stat(file_.c_str(), &named) == 0 && locked.st_ino == named.st_ino)
      break;
    close(descriptor_);  // a run that has just ended has removed it
  }
  const std::string owner = std::to_string(getpid());
  if (ftruncate(descriptor_, 0) != 0 || write(descriptor_, owner.data(), owner.size()) < 0) {
  }  // only a message lacks it
  for (const char* part : {"", "parts", "draws", "contours"}) remove_temporaries(folder / part);
}

FolderLock::~FolderLock() {
  if (descriptor_ < 0) return;
  unlink(file_.c_str());  // before the lock ends: whoever holds the next one has made the next file
  close(descriptor_);
}

std::vector<fs::path> part_files(const fs::path& folder) {
  std::error_code missing;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder / "parts", missing)) {
    const std::string stem = entry.path().stem().string();
    const bool is_number = !stem.empty() && std::all_of(stem.begin(), stem.end(),
                                                        [](unsigned char c) { return std::isdigit(c) != 0; });
    if (is_number && entry.path().extension() == ".csv") found.push_back(entry.path());
  }
  return found;
}

void refuse_results(const fs::path& folder) {
  std::string found;
  for (const char* name : {"summary.json", "results.csv"})
    if (found.empty() && fs::exists(folder / name)) found = name;
  if (found.empty() && !part_files(folder).empty()) found = "parts";
  if (!found.empty())
    throw UserError(
        fmt::format("{} holds the results of an earlier run, {} (they would be overwritten). Give another "
                    "--out, --force to "
                    "overwrite them, or --resume to go on with that run",
                    folder.string(), found));
}

std::string summary_checksum(Json summary) {
  for (const char* key : {"checksum", "threads"}) summary.erase(key);
  for (const char* time : {"wall_s", "sampling_s", "gradients_per_s"})
    summary["cost"][time] = summary["cost"].value(time, Json()).is_number();
  return checksum(summary_text(summary));
}

void RunFiles::name_files(RunResult& result, const std::vector<Other>& others) const {
  result.identity = checksum(checkpoint.identity);
  for (const Other& file : others) result.files.push_back(file.name);
}

void RunFiles::write_picture_draws(const RunOptions& run, const Writer& write) {
  if (run.out.empty() || !run.pictures) return;
  try {
    write(run.out / kPictureDraws);
  } catch (const std::runtime_error&) {
  }
}

std::string RunFiles::write(const Json& summary, const std::vector<Other>& others) const {
  std::string lost;
  const auto attempt = [&](const std::function<void()>& write) {
    try {
      write();
    } catch (const std::runtime_error& error) {
      lost += (lost.empty() ? "" : "; ") + std::string(error.what());
    }
  };
  attempt([&] { write_summary(folder / "summary.json", summary); });
  for (const Other& file : others) attempt([&] { file.write(folder / file.name); });
  if (!lost.empty())
    lost += " (the other files of the run are there). Make room, then --resume writes what is missing";
  return lost;
}

namespace {

/// Deletes what an earlier run has left; refuses where this one is to read points from it, now and when it is resumed.
void delete_results(const RunOptions& run) {
  const std::initializer_list<const char*> names = {"checkpoint",  "summary.json", "draws.nc",
                                                    kPictureDraws, "items.csv",    "images.npy"};
  const auto found = [](const fs::path& file, const fs::path& data_dir) {
    return file.empty() ? file : resolve_data_path(file, data_dir);
  };
  for (const auto& [option, read] : {std::pair("--init", found(is_init_word(run.init) ? "" : run.init, {})),
                                     {"--modes", found(run.modes, {})},
                                     {"--data", found(run.data, run.data_dir)}}) {
    std::error_code missing;
    for (const char* name : names)
      if (fs::equivalent(read, run.out / name, missing))
        throw UserError(
            fmt::format("{} reads {} (--force deletes it). Give another --out", option, read.string()));
  }
  for (const char* name : names) fs::remove(run.out / name);
}

/// By the first process.
void open_folder(RunFiles& files, const RunOptions& run) {
  files.lock = FolderLock(run.out);
  files.folder = run.out;
  const bool saved = fs::exists(files.checkpoint.file);
  if (run.force) {
    delete_results(run);
  } else if (run.resume && saved) {
    Checkpoint::verify(files.checkpoint.file, files.checkpoint.identity);
  } else if (run.resume) {
    resume_without_checkpoint(files, run);
  } else if (saved) {
    throw UserError(
        fmt::format("{} holds the checkpoint of an interrupted run (it would be lost). Give another "
                    "--out, --force to overwrite it, or --resume to go on with that run",
                    run.out.string()));
  } else {
    refuse_results(run.out);
  }
  if (!files.finished) write_atomically(run.out / "run.toml", write_run_toml(run));
}

}  // namespace

RunFiles open_run(const RunOptions& run, const TargetInstance& target, const Settings& effective) {
  RunFiles files;
  if (run.out.empty()) return files;
  Processes& processes = Processes::all();
  processes.agree();  // none has failed so far: what is wrong leaves no file behind
  files.checkpoint = {run.out / "checkpoint", run_identity(run, target, effective), run.checkpoint,
                      run.resume};
  if (processes.first()) open_folder(files, run);
  files.checkpoint.resume = processes.of_first(files.checkpoint.resume) != 0;
  if (processes.of_first(files.finished.has_value()) != 0 && !processes.first()) throw FirstSpeaks();
  return files;
}

}  // namespace lockstep
