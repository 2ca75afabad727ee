// SPDX-License-Identifier: Apache-2.0
// Whatever bytes a file holds, its reader returns or refuses it in one line, soon. LOCKSTEP_FUZZ_ROUNDS sets
// how many mutants each reader is given; the same number makes the same ones. A mutant that ends the program
// stays in the test's folder.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "host/engines/checkpoint.hpp"
#include "host/engines/points_file.hpp"
#include "host/formats/data.hpp"
#include "host/formats/tensors.hpp"
#include "host/modes/given_points.hpp"
#include "host/options/config.hpp"
#include "host/options/target_input.hpp"
#include "host/util/errors.hpp"
#include "host/util/settings.hpp"
#include "tests/support/mutants.hpp"
#include "tests/support/run_program.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Seeds = std::vector<std::string>;

/// Files that NumPy wrote, of one ending, valid and not.
Seeds numpy_files(const std::string& ending) {
  std::ifstream stream(LOCKSTEP_SOURCE_DIR "/tests/support/numpy_fixtures.json");
  const auto fixtures = nlohmann::json::parse(stream);
  Seeds files;
  for (const auto& one : fixtures.at("cases")) {
    if (fs::path(one.at("file").get<std::string>()).extension() != ending) continue;
    const auto hex = one.at("bytes").get<std::string>();
    std::string& bytes = files.emplace_back();
    for (std::size_t i = 0; i < hex.size(); i += 2)
      bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return files;
}

Seeds idx_files() {
  Seeds files;
  for (const auto& [type, size] : {std::pair{0x08, 1}, {0x0B, 2}, {0x0D, 4}, {0x0E, 8}})
    files.push_back(std::string("\0\0", 2) + char(type) +
                    std::string("\x03\0\0\0\x02\0\0\0\x03\0\0\0\x02", 13) + std::string(12 * size, '\x3f'));
  return files;
}

void pack(const std::string& bytes, const fs::path& path) {
  gzFile stream = gzopen(path.c_str(), "wb1");
  gzwrite(stream, bytes.data(), unsigned(bytes.size()));
  gzclose(stream);
}

Seeds packed(const Seeds& files) {
  const fs::path path = fs::path(::testing::TempDir()) / ("lockstep-packed-" + std::to_string(getpid()));
  Seeds result;
  for (const std::string& file : files) {
    pack(file, path);
    result.push_back(testing::contents(path));
  }
  fs::remove(path);
  return result;
}

void read_packed(const fs::path& path) {
  const fs::path gz = path.parent_path() / "x.gz";
  pack(testing::contents(path), gz);
  load_images(gz);
}

std::string tensors(const std::string& header, std::size_t bytes) {
  return char(header.size()) + std::string(7, '\0') + header + std::string(bytes, '\x3f');
}

std::string checkpoint_file() {
  const fs::path path = fs::path(::testing::TempDir()) / ("lockstep-checkpoint-" + std::to_string(getpid()));
  Checkpoint checkpoint;
  std::vector<double> state(50, 1.5);
  std::int64_t iteration = 7;
  std::vector<std::vector<float>> several(3, std::vector<float>(2, 1));
  checkpoint("state", state);
  checkpoint("iteration", iteration);
  checkpoint("several", several);
  checkpoint.write(path, "me");
  const std::string bytes = testing::contents(path);
  fs::remove(path);
  return bytes;
}

void read_checkpoint(const fs::path& path) {
  Checkpoint checkpoint(path, "me");
  std::vector<double> state;
  std::int64_t iteration = 0;
  std::vector<std::vector<float>> several;
  checkpoint("state", state);
  checkpoint("iteration", iteration);
  checkpoint("several", several);
}

/// Every entry in every form in which a target may ask for it.
void use(const DataSet& data) {
  const DataReader reader(data, "target t");
  std::vector<std::string> names;
  for (const auto& item : data.values.items()) names.push_back(item.key());
  for (const auto& [name, array] : data.arrays) names.push_back(name);
  const std::function<void(const std::string&)> uses[] = {
      [&](auto& name) { reader.depth(name); },    [&](auto& name) { reader.number(name); },
      [&](auto& name) { reader.vector(name); },   [&](auto& name) { reader.matrix(name); },
      [&](auto& name) { reader.matrices(name); }, [&](auto& name) { reader.number(name + "x"); }};
  for (const std::string& name : names)
    for (const auto& one : uses) try {
        one(name);
      } catch (const UserError&) {
      }
}

void build_mixture(const fs::path& path) {
  RunOptions run;
  run.target = "mixture";
  run.data = path;
  build_target(run);
}

struct Reader {
  std::string name, file;        // `file`: its ending tells the format
  std::function<Seeds()> seeds;  // made when asked for: each test's process lists all readers
  std::function<void(const fs::path&)> read;
};

const char* const kStudy = R"(name = "s"
title = "T"
replicates = 3
seed = 5
warmup = 60
quantities = ["mean[0]"]
[[setting]]
label = "a {method} {gradients} {list}"
target = "mixture20"
target_settings = { scenario = "a", list = [1, 2.5, [3]] }
sampler = ["pe", 'hmc']
sampler_settings = { pseudo_samples = 2 }
gradients = [1e3, 2000]
published = { "mean[0]" = [4.383, 0.042] }
[[setting]]
label = """b"""
command = "evidence"
target = "mixture20"
target_settings.x.y = 1979-05-27T07:32:00Z # a comment
init = "uniform:5"
[plot]
panels = ["rmse", "scatter"]
groups = { a = "A" }
)";

std::vector<Reader> readers() {
  const auto given = [](Seeds seeds) { return [seeds = std::move(seeds)] { return seeds; }; };
  const auto json =
      given({R"({"means": [[0, 0], [8, 8]], "weights": [0.3, 0.7], "sds": [1, 0.5], "n": 3, "note": "x"})",
             "{\"means\": [[1]],\n \"covariances\": [[[1e0]]], \"N\": 8, \"deep\": {\"a\": [null, true]}}"});
  const auto csv =
      given({"x,y,\"na\"\"me\"\n1,2,a\n3.5,-4e3,\"b,\nc\"\n", "0,1\r\n1,0\r\n\r\n2,2", "x,y\n1,2\n3,4\n"});
  const auto npy = [] { return numpy_files(".npy"); };
  const auto npz = [] { return numpy_files(".npz"); };
  const auto run = given(
      {"target = \"mixture\"\nsampler = 'pe'\nchains = 64\niterations = 1000\nseed = "
       "\"18446744073709551615\"\n"
       "init = \"uniform:2\"\nse = 0.1\ntarget_settings = { dim = 3, list = [1, 2.5] }\n[sampler_settings]\n"
       "num_leapfrog = 10\n"});
  const auto tensor = given(
      {tensors(R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"BF16","shape":[2],)"
               R"("data_offsets":[24,28]},"__metadata__":{"format":"pt"}})",
               28),
       tensors(R"({"x":{"dtype":"F16","shape":[],"data_offsets":[0,2]}})", 2)});
  const auto data = [](const fs::path& path) { use(load_data(path)); };
  const auto images = [](const fs::path& path) { load_images(path); };
  const auto arrays = [](const fs::path& path) { load_tensors(path); };
  const auto start = [](const fs::path& path) { read_starts(path.string(), 2); };
  const auto folder = [](const fs::path& path) { use(load_data(path.parent_path())); };
  const auto setting = [](const fs::path& path) { parse_set("target.x=" + testing::contents(path)); };
  return {{"Json", "x.json", json, data},
          {"JsonOfATarget", "x.json", json, build_mixture},
          {"Csv", "x.csv", csv, data},
          {"Npy", "x.npy", npy, data},
          {"Npz", "x.npz", npz, data},
          {"NpzOfATarget", "x.npz", npz, build_mixture},
          {"FolderOfTables", "folder/means.csv", csv, folder},
          {"FolderOfArrays", "folder/means.npy", npy, folder},
          {"Images", "x.npy", npy, images},
          {"Idx", "x-idx3-ubyte", idx_files, images},
          {"PackedIdx", "x.gz", [] { return packed(idx_files()); }, images},
          {"IdxPackedAgain", "x-idx3-ubyte", idx_files, read_packed},
          {"Weights", "x.npz", npz, arrays},
          {"Safetensors", "x.safetensors", tensor, arrays},
          {"JsonStarts", "x.json", given({R"({"x": [[1, 2], [3, 4]]})"}), start},
          {"CsvStarts", "x.csv", csv, start},
          {"NpyStarts", "x.npy", npy, start},
          {"Run", "x.toml", run,
           [](const fs::path& path) {
             RunOptions o;
             load_run_config(path, o);
           }},
          {"Study", "x.toml", given({kStudy}), [](const fs::path& path) { load_study(path); }},
          {"Setting", "x", given({"[1, 2.5, [3]]", "\"text\"", "7", "{\"a\": 1}"}), setting},
          {"Checkpoint", "checkpoint", [] { return Seeds{checkpoint_file()}; }, read_checkpoint}};
}

const std::vector<Reader>& all_readers() {
  static const std::vector<Reader> all = readers();
  return all;
}

class Mutants : public testing::FolderTest, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(Mutants, AreReadOrRefusedInOneLine) {
  const Reader& reader = all_readers()[GetParam()];
  const char* asked = std::getenv("LOCKSTEP_FUZZ_ROUNDS");
  const int rounds = asked != nullptr ? std::atoi(asked) : 300;
  const fs::path path = folder_ / reader.file;
  fs::create_directories(path.parent_path());
  const Seeds seeds = reader.seeds();
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("mutant " + std::to_string(round));
    testing::Mutator mutator(1000003 * GetParam() + std::uint64_t(round));
    fs::remove(path);  // some file systems wait for the disk when a file is overwritten
    std::ofstream(path, std::ios::binary) << mutator.mutant(seeds);
    const std::clock_t start = std::clock();  // of this process: others may have the processor
    try {
      reader.read(path);
    } catch (const UserError& error) {
      const std::string text = error.what();
      EXPECT_FALSE(text.empty());
      EXPECT_LE(text.size(), 300u) << text;
      EXPECT_EQ(text.find_first_of("\r\n\x1b"), std::string::npos) << text;
      ++refused;
    } catch (const std::exception& error) {
      ADD_FAILURE() << typeid(error).name() << ": " << error.what();
    } catch (...) {
      ADD_FAILURE() << "something else was thrown";
    }
    EXPECT_LT(double(std::clock() - start) / CLOCKS_PER_SEC, 5);
    if (HasFailure())
      fs::copy_file(path, fs::path(::testing::TempDir()) / (reader.name + "-mutant"),
                    fs::copy_options::overwrite_existing);
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, 0) << "these are no mutants";
}

TEST_P(Mutants, SeedsAreRead) {
  const Reader& reader = all_readers()[GetParam()];
  const fs::path path = folder_ / reader.file;
  fs::create_directories(path.parent_path());
  int read = 0;
  for (const std::string& seed : reader.seeds()) {
    fs::remove(path);
    std::ofstream(path, std::ios::binary) << seed;
    try {
      reader.read(path);
      ++read;
    } catch (const UserError&) {
    }
  }
  EXPECT_GT(read, 0) << "no seed is valid";
}

INSTANTIATE_TEST_SUITE_P(OfEveryFormat, Mutants, ::testing::Range<std::size_t>(0, all_readers().size()),
                         [](const auto& info) { return all_readers()[info.param].name; });

}  // namespace
}  // namespace lockstep
