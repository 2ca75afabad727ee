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

/// The processes that share one run: all run the same host code, the first writes and speaks. Without a
/// launcher, or before start(), there is one, and what the others would be told or asked costs nothing. One that
/// fails takes part in one more exchange, by which all learn of it: nobody waits for it.
class Processes {
 public:
  /// Those of this program.
  static Processes& all();
  /// Whether this build has MPI.
  static bool built_in();

  /// Initialises MPI where a launcher started more than one process. Throws UserError where they do not find
  /// each other: each would do the whole run, and write the same files.
  void start(const Launch& launch);
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
  double sum(double mine);
  /// The first's text.
  std::string of_first(std::string text);
  /// Nothing but what every exchange does: learns of failures, and brings interrupted() and now() up to date.
  void agree();
  /// Tables side by side: those of `mine` [row][columns of this process], in order of rank, become the first
  /// columns of `whole` [row][stride], in all. In messages of 32 MiB, or of one row.
  template <class T>
  void gather_rows(const std::vector<T>& mine, const std::vector<int>& columns, std::size_t stride,
                   std::vector<T>& whole);

  // As of the last exchange, so that all decide alike; of a process alone, as of now.
  /// Has any been asked to stop (lockstep::interrupted)? Was that by TERM or HUP?
  bool interrupted() const;
  bool terminated() const;
  /// Seconds, by the clock of the first.
  double now() const;

 private:
  std::vector<double> exchange(double mine, int failure);
  /// A text of process `from`, for all.
  void broadcast(int from, std::string& text);

  int rank_ = 0, size_ = 1, here_ = 1, rank_here_ = 0, threads_ = 0;
  bool started_ = false;
  std::vector<int> failures_;  // [rank]: what its error was, 0: none
  int asked_ = 0;              // to stop, as of the last exchange
  double now_ = 0;
};

}  // namespace lockstep
