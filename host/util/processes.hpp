// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace lockstep {

/// Which of how many processes this is, by what a launcher (mpirun, srun) leaves in the environment.
struct Launch {
  int rank = 0, size = 1;  // size 0: the launcher does not say
};
Launch launched();

/// Thrown where a process other than the first has done its part: the first writes, and says what came of it.
struct FirstSpeaks {};

/// The processes that share one run. Without a launcher, or before start(), there is one, and what the others
/// would be told or asked costs nothing. One that fails takes part in one more exchange, by which all learn
/// of it: nobody waits for it.
class Processes {
 public:
  /// Those of this program.
  static Processes& all();
  /// Whether this build has MPI.
  static bool built_in();

  /// Initialises MPI where a launcher started more than one process. Throws UserError where these cannot
  /// share the work of `command`, or do not find each other: each would do all of it, and write the same
  /// files.
  void start(const Launch& launch, const std::string& command);
  /// Runs the body on all. The first throws what any has thrown, UserError or another exception; the others
  /// are silent.
  int together(const std::function<int()>& body);
  /// Ends MPI; the exit status of all is the first's.
  int finish(int status);

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool first() const { return rank_ == 0; }
  /// How many share this machine, which of them this is, and how many of its processors are for this one (0:
  /// all).
  int here() const { return here_; }
  int rank_here() const { return rank_here_; }
  int threads() const { return threads_; }

  // Exchanges: called by all, in the same order.
  /// One number of each, in order of rank.
  std::vector<double> share(double mine) { return exchange(mine, 0); }
  double of_first(double mine) { return share(mine)[0]; }
  bool any(bool mine);
  /// What each gives, in order of rank; the others than the first get nothing.
  std::vector<std::vector<double>> gather(const std::vector<double>& mine);

 private:
  std::vector<double> exchange(double mine, int failure);
  /// A text of process `from`, for all.
  std::string text_of(int from, std::string text);

  int rank_ = 0, size_ = 1, here_ = 1, rank_here_ = 0, threads_ = 0;
  bool started_ = false;
  std::vector<int> failures_;  // [rank]: exit status of its error, 0: none
};

}  // namespace lockstep
