// SPDX-License-Identifier: Apache-2.0
// Files that are none, or larger than the memory: refused by every reader, in one line, before memory grows.
#include "host/util/user_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <zip.h>
#include <zlib.h>

#include "host/formats/data.hpp"
#include "host/formats/tensors.hpp"
#include "host/options/config.hpp"
#include "host/util/errors.hpp"
#include "host/util/memory.hpp"
#include "tests/support/run_program.hpp"

namespace lockstep::user_file_test {
namespace {

namespace fs = std::filesystem;

/// Leaves this process `bytes` of memory beyond what it has.
class MemoryLimit {
 public:
  explicit MemoryLimit(rlim_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    double pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit limit{rlim_t(pages) * 4096 + bytes, before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

class UserFiles : public testing::ProgramTest {
 protected:
  template <class Read>
  std::string complaint(Read&& read) {
    try {
      read();
    } catch (const UserError& error) {
      return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }

  /// Every reader of the file says `part`.
  void all_refuse(const std::string& name, const std::string& part) {
    const fs::path path = folder_ / name;
    const std::string ending = path.extension().string();
    std::vector<std::string> said;
    if (ending == ".toml") said.push_back(complaint([&] { read_toml(path); }));
    if (ending == ".json" || ending == ".csv" || ending == ".npy" || ending == ".npz")
      said.push_back(complaint([&] { load_data(path); }));
    if (ending == ".csv") said.push_back(complaint([&] { load_rows(path); }));
    if (ending == ".npz" || ending == ".safetensors") said.push_back(complaint([&] { load_tensors(path); }));
    if (ending == ".npy" || ending == ".npz" || ending == ".gz" || ending == ".idx")
      said.push_back(complaint([&] { load_images(path); }));
    EXPECT_FALSE(said.empty()) << name;
    for (const std::string& text : said) EXPECT_NE(text.find(part), std::string::npos) << text;
  }
};

constexpr const char* kEndings[] = {".json", ".csv", ".npy", ".npz", ".safetensors", ".gz", ".idx", ".toml"};

TEST_F(UserFiles, DevicesPipesAndSocketsAreRefusedAtOnce) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{AF_UNIX, {}};
  const std::string socket_path = "/tmp/lockstep-" + std::to_string(getpid());
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  for (const std::string ending : kEndings) {
    fs::create_symlink("/dev/zero", folder_ / ("endless" + ending));
    all_refuse("endless" + ending, "is a device (reading from it might never end). Give a file.");
    ASSERT_EQ(mkfifo((folder_ / ("pipe" + ending)).c_str(), 0600), 0);
    all_refuse("pipe" + ending, "is a pipe (");
    fs::create_symlink(socket_path, folder_ / ("socket" + ending));
    all_refuse("socket" + ending, "is a socket (");
  }
  close(socket);
  fs::remove(socket_path);
  // In a folder of tables they are not passed over.
  fs::create_directories(folder_ / "tables");
  fs::create_symlink("/dev/zero", folder_ / "tables/means.csv");
  EXPECT_NE(complaint([&] { load_data(folder_ / "tables"); }).find("means.csv is a device"),
            std::string::npos);
}

TEST_F(UserFiles, LinksToFilesAreRead) {
  put("there.json", R"({"y": 1})");
  fs::create_symlink(folder_ / "there.json", folder_ / "link.json");
  EXPECT_EQ(load_data(folder_ / "link.json").values.at("y"), 1);
  fs::create_symlink(folder_ / "nowhere", folder_ / "broken.toml");
  all_refuse("broken.toml", "cannot read the file");
}

TEST_F(UserFiles, WhatMemoryCannotHoldIsRefusedBeforeItGrows) {
  constexpr std::uint64_t large = std::uint64_t{1} << 29;  // 512 MiB of text, or of packed numbers
  for (const char* name : {"large.json", "large.csv", "large.toml"}) {
    put(name, "1");
    fs::resize_file(folder_ / name, large);  // without a byte on the disk
  }
  const std::string header =
      "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(large) + ",), }";
  const std::string start =
      std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header;
  put("large.npy", start);
  fs::resize_file(folder_ / "large.npy", start.size() + large);
  {
    int error = 0;
    zip_t* archive = zip_open((folder_ / "large.npz").c_str(), ZIP_CREATE, &error);
    zip_file_add(archive, "x.npy", zip_source_file(archive, (folder_ / "large.npy").c_str(), 0, -1), 0);
    ASSERT_EQ(zip_close(archive), 0);
  }
  put("large.idx", std::string("\0\0\x08\x01\x20\0\0\0", 8));
  fs::resize_file(folder_ / "large.idx", 8 + large);
  {
    gzFile packed = gzopen((folder_ / "large.gz").c_str(), "wb1");
    std::string zeros(1 << 20, '\0');
    gzwrite(packed, "\0\0\x08\x01\x20\0\0\0", 8);
    for (std::uint64_t i = 0; i < large; i += zeros.size())
      gzwrite(packed, zeros.data(), unsigned(zeros.size()));
    gzclose(packed);
  }
  const std::string tensors = R"({"x":{"dtype":"U8","shape":[536870912],"data_offsets":[0,536870912]}})";
  put("large.safetensors",
      std::string(1, static_cast<char>(tensors.size())) + std::string(7, '\0') + tensors);
  fs::resize_file(folder_ / "large.safetensors", 8 + tensors.size() + large);

  const MemoryLimit limit(rlim_t{4} << 30);  // enough for the bytes, not for what is made of them
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  for (const std::string ending : kEndings) all_refuse("large" + ending, "is too large (to use it may take ");
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 100 * 1024) << "KiB";
}

TEST_F(UserFiles, AvailableMemoryHeedsTheLimitOfTheProcess) {
  EXPECT_GT(available_memory(), 1e8);
  const MemoryLimit limit(rlim_t{1} << 30);
  EXPECT_LE(available_memory(), 1073741824.0);
  EXPECT_GT(available_memory(), 0.5 * 1073741824.0);
}

TEST_F(UserFiles, TheProgramRefusesThemToo) {
  ASSERT_EQ(mkfifo((folder_ / "pipe.json").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", folder_ / "zero.npy");
  for (const std::string file : {"pipe.json", "zero.npy"}) {
    refuses({"sample", "--target", "mixture", "--sampler", "hmc", "--data", file}, "Give a file.");
    refuses({"sample", "--target", "gaussian", "--sampler", "hmc", "--init", file}, "no such file");
    refuses({"sample", "--config", file}, "Give a file.");
    refuses({"study", file}, "Give a file.");
  }
}

}  // namespace
}  // namespace lockstep::user_file_test
