// SPDX-License-Identifier: Apache-2.0
#pragma once
// The built program as its users meet it: a process with arguments, an exit status and two streams.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/run_python.hpp"

namespace lockstep::testing {

inline std::string contents(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// How a process ended: its exit status (128 + the signal that killed it), what it wrote, and the most memory
/// that it had.
struct ProgramResult {
  int status = -1;
  std::string out, err;
  double peak_mib = 0;
};

/// `lockstep ARGS...` (or another program of the build, or any by its whole path), started in `folder`, its
/// streams in files there that a test may watch. Pictures of a run take longer than most runs here: only
/// tests that say so have them.
class Program {
 public:
  Program(const std::filesystem::path& folder, const std::vector<std::string>& args,
          const std::string& name = "lockstep", bool pictures = false)
      : out_(folder / ".stdout"), err_(folder / ".stderr") {
    std::vector<std::string> words = {(std::filesystem::path(LOCKSTEP_BINARY_DIR) / name).string()};
    words.insert(words.end(), args.begin(), args.end());
    const auto given = [&](const char* word) {
      return std::find(args.begin(), args.end(), word) != args.end();
    };
    if ((given("sample") || given("evidence")) && given("--out") && !pictures)
      words.push_back("--no-pictures");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    // Threads that spin while they wait are slow where several tests share the cores.
    setenv("OMP_WAIT_POLICY", "passive", 1);
    setenv("LOCKSTEP_PLOT_DIR", LOCKSTEP_SOURCE_DIR "/plot", 0);  // unless the test has set it
    setenv("LOCKSTEP_PYTHON", LOCKSTEP_PYTHON, 0);
    unsetenv("LOCKSTEP_DATA");
    signal(SIGINT, SIG_DFL);
    const auto redirect = [](int descriptor, const std::filesystem::path& file, int flags) {
      dup2(open(file.c_str(), flags, 0600), descriptor);
    };
    redirect(0, "/dev/null", O_RDONLY);
    redirect(1, out_, O_WRONLY | O_CREAT | O_TRUNC);
    redirect(2, err_, O_WRONLY | O_CREAT | O_TRUNC);
    if (chdir(folder.c_str()) == 0) execv(argv[0], argv.data());
    _exit(127);
  }
  ~Program() {
    if (pid_ > 0) {
      send(SIGKILL);
      wait();
    }
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void send(int signal_number) const { kill(pid_, signal_number); }

  /// Waits until `is_there()`; false when the process ended before, or after 60 seconds.
  bool wait_for(const std::function<bool()>& is_there) {
    for (int i = 0; i < 30000 && !is_there(); ++i) {
      siginfo_t info{};
      waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT);
      if (info.si_pid != 0) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return is_there();
  }

  /// `with_output`: false where standard output is no file to read back.
  ProgramResult wait(bool with_output = true) {
    int status = 0;
    rusage usage{};
    wait4(pid_, &status, 0, &usage);
    pid_ = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            with_output ? contents(out_) : "", contents(err_), double(usage.ru_maxrss) / 1024};
  }

 private:
  std::filesystem::path out_, err_;
  pid_t pid_;
};

/// A folder of its own for each test, in which the program runs.
class ProgramTest : public FolderTest {
 protected:
  ProgramResult run(const std::vector<std::string>& args) { return Program(folder_, args).wait(); }
  ProgramResult run_with_pictures(const std::vector<std::string>& args) {
    return Program(folder_, args, "lockstep", true).wait();
  }
  /// Whether Python has what pictures need.
  static bool can_draw() {
    return std::system(LOCKSTEP_PYTHON " -c 'import matplotlib, netCDF4' 2> /dev/null") == 0;
  }

  /// Standard output goes to the device that is always full.
  ProgramResult run_on_full_disk(const std::vector<std::string>& args, const std::string& name = "lockstep") {
    std::filesystem::create_symlink("/dev/full", folder_ / ".stdout");
    Program program(folder_, args, name);
    ProgramResult result = program.wait(false);
    std::filesystem::remove(folder_ / ".stdout");
    return result;
  }

  std::filesystem::path put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  /// Exit status 2, nothing on standard output, one line with `part` on standard error, and no --out folder.
  void refuses(std::vector<std::string> args, const std::string& part) {
    args.insert(args.end(), {"--out", "never"});
    const ProgramResult result = run(args);
    EXPECT_EQ(result.status, 2) << part;
    EXPECT_EQ(result.out, "") << part;
    EXPECT_EQ(result.err.rfind("lockstep: ", 0), 0u) << result.err;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err << "wanted: " << part;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "never")) << part;
  }
};

}  // namespace lockstep::testing
