// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "host/engines/checkpoint.hpp"
#include "host/runs/run_result.hpp"

namespace lockstep {

/// A folder that no other process writes to while this lives.
class FolderLock {
 public:
  FolderLock() = default;
  /// Makes the folder, proves that it can be written, locks it, and removes temporary files that a killed run
  /// has left. Throws UserError when it cannot be written, or when another run has it. The kernel ends the
  /// lock of a process that is killed; on a file system without locks there is none.
  explicit FolderLock(const std::filesystem::path& folder);
  FolderLock(FolderLock&& other) noexcept { swap(other); }
  FolderLock& operator=(FolderLock&& other) noexcept {
    swap(other);
    return *this;
  }
  ~FolderLock();

 private:
  void swap(FolderLock& other) {
    std::swap(file_, other.file_);
    std::swap(descriptor_, other.descriptor_);
  }
  std::filesystem::path file_;
  int descriptor_ = -1;
};

/// The finished settings of a study in `folder`: all DIR/parts/<number>.csv.
std::vector<std::filesystem::path> part_files(const std::filesystem::path& folder);

/// Throws UserError where `folder` holds the results of an earlier run or study: the line names the three
/// ways on, another --out, --force and --resume.
void refuse_results(const std::filesystem::path& folder);

/// Of all that a run's summary says but by how many threads and how long it took, which differs from run to
/// run.
std::string summary_checksum(nlohmann::ordered_json summary);

/// What `sample` and `evidence` keep in --out, from its opening to the last file. Without --out it does
/// nothing.
struct RunFiles {
  /// Writes a file, atomically.
  using Writer = std::function<void(const std::filesystem::path&)>;
  /// A file of the run beside its summary: its name in the folder, and what writes it there.
  struct Other {
    std::string name;
    Writer write;
  };

  FolderLock lock;
  std::filesystem::path folder;
  CheckpointPlan checkpoint;
  std::optional<nlohmann::ordered_json> finished;  // its summary, where --resume meets a finished run

  /// The end of every run: adds to the result what tells it from others (`identity`) and its `files`, writes
  /// summary.json, then the other files, and removes the checkpoint of a run that is complete. A file that
  /// cannot be written keeps no other from being written: `lost` says which and why.
  template <class Result>
  void finish(Result& result, const std::vector<Other>& others) const {
    if (folder.empty()) return;
    name_files(result, others);
    result.checksum = summary_checksum(to_json(result));
    result.lost = write(to_json(result), others);
    if (result.lost.empty() && !result.interrupted) std::filesystem::remove(folder / "checkpoint");
  }
  /// The same of a run whose draws `write_draws` writes: draws.nc where it is to store them, else kPictureDraws.
  template <class Result>
  void finish(Result& result, const RunOptions& run, const Writer& write_draws) const {
    std::vector<Other> others;
    if (run.draws != 0) others.push_back({"draws.nc", write_draws});
    finish(result, others);
    if (run.draws == 0 && result.lost.empty()) write_picture_draws(run, write_draws);
  }

 private:
  void name_files(RunResult& result, const std::vector<Other>& others) const;
  /// Where there is a folder and pictures are wanted. A run is whole without it: nothing is said where it
  /// cannot be written.
  static void write_picture_draws(const RunOptions& run, const Writer& write);
  std::string write(const nlohmann::ordered_json& summary, const std::vector<Other>& others) const;
};

/// Opens --out, once what is asked for is known to be right: locks it and writes run.toml, so that --out and
/// --resume are all that is needed to go on. Under --resume: goes on from the checkpoint, or has nothing to
/// do (`finished`), or begins a run that was ended before its first checkpoint. Throws UserError where the
/// folder has another run's results or checkpoint, or a damaged one; --force removes them. Of several processes
/// the first does all that: the others have no folder, and nothing to do where it is done (FirstSpeaks).
RunFiles open_run(const RunOptions& run, const TargetInstance& target, const Settings& effective);

}  // namespace lockstep
