// SPDX-License-Identifier: Apache-2.0
#include "host/util/processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>
#include <numeric>
#include <thread>

#include "host/util/clock.hpp"
#include "host/util/errors.hpp"
#include "host/util/interrupt.hpp"
#ifdef LOCKSTEP_MPI
#include <mpi.h>
#include <sched.h>

#include "host/util/peak.hpp"
#endif

namespace lockstep {
namespace {

/// Thrown by an exchange in which another process says that it has failed.
struct OtherFailed {};

/// What is known of an error beside its text.
enum Failure { none, other, by_user, memory };

/// Seconds on the clock of this process.
double seconds_here() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

#ifdef LOCKSTEP_MPI
/// Processes in step find each other at once. One that waits for longer keeps no processor busy, as MPI_Wait
/// would: the threads of others may still compute.
void wait_for(MPI_Request request) {
  constexpr double kAtOnce = 5e-5;  // seconds
  const auto start = Clock::now();
  for (int done = 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE), done == 0;) {
    if (seconds_since(start) < kAtOnce)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

/// Processors for this process: those that several on its machine may use are divided among them. Launchers
/// give each process some of its own, or let all use every one.
int own_processors(MPI_Comm machine) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0)
    for (int c = 0; c < default_threads(); ++c) CPU_SET(c, &mine);
  std::vector<int> users(CPU_SETSIZE);
  for (int c = 0; c < CPU_SETSIZE; ++c) users[c] = CPU_ISSET(c, &mine) ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, users.data(), CPU_SETSIZE, MPI_INT, MPI_SUM, machine);
  double share = 0;
  for (int c = 0; c < CPU_SETSIZE; ++c)
    if (CPU_ISSET(c, &mine)) share += 1.0 / users[c];
  return std::clamp(int(share + 1e-6), 1, default_threads());
}
#endif

}  // namespace

Launch launched() {
  // Slurm comes late: it may have started the launcher, with numbers of its own.
  constexpr const char* kNames[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                       {"PMI_RANK", "PMI_SIZE"},
                                       {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
                                       {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (const auto& [rank_name, size_name] : kNames) {
    const char *rank = std::getenv(rank_name), *size = std::getenv(size_name);
    if (rank != nullptr && size != nullptr) return {std::atoi(rank), std::atoi(size)};
  }
  if (const char* rank = std::getenv("PMIX_RANK")) return {std::atoi(rank), 0};
  return {};
}

Processes& Processes::all() {
  static Processes processes;
  return processes;
}

bool Processes::built_in() {
#ifdef LOCKSTEP_MPI
  return true;
#else
  return false;
#endif
}

void Processes::start(const Launch& launch) {
  if (launch.rank == 0 && launch.size == 1) return;
  const bool many = launch.rank > 0 || launch.size > 1;
#ifdef LOCKSTEP_MPI
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
  started_ = true;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  if (size_ == 1 && many)
    throw UserError(
        "a launcher started more than one process, but MPI takes each to be alone (each would do the "
        "whole run, and write the same files). Use the launcher of the MPI that lockstep was built with");
  MPI_Comm machine;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  MPI_Comm_rank(machine, &rank_here_);
  MPI_Comm_size(machine, &here_);
  threads_ = own_processors(machine);
  MPI_Comm_free(&machine);
#else
  if (many)
    throw UserError(
        "a launcher started more than one process, but this build has no MPI (each would do the whole "
        "run, and write the same files). Build where MPI is installed, or start one process");
#endif
}

int Processes::together(const std::function<int()>& body) {
  if (size_ == 1) return body();
  int status = 0;
  Failure failure = none;
  std::string text;
  try {
    try {
      status = body();
    } catch (const FirstSpeaks&) {
    }
    agree();  // the first may still fail, while it writes
    return status;
  } catch (const OtherFailed&) {
  } catch (const UserError& error) {
    failure = by_user;
    text = error.what();
  } catch (const std::bad_alloc&) {
    failure = memory;
  } catch (const std::exception& error) {
    failure = other;
    text = error.what();
  }
  if (failure != none) exchange(0, failure);
  const auto failed = std::find_if(failures_.begin(), failures_.end(), [](int f) { return f != none; });
  const int from = int(failed - failures_.begin());
  broadcast(from, text);
  if (from > 0) text = fmt::format("process {}: {}", from, text);
  if (!first()) return 1;  // finish() knows better
  if (*failed == memory) throw std::bad_alloc();
  if (*failed == by_user) throw UserError(text);
  throw std::runtime_error(text);
}

int Processes::finish(int status) {
  // Launchers end all where one ends badly: what the first says must be out by then.
  if (!started_ && status != 0 && launched().rank > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
#ifdef LOCKSTEP_MPI
  if (!started_) return status;
  status = int(of_first(status));
  MPI_Finalize();
  *this = Processes();
#endif
  return status;
}

double Processes::sum(double mine) {
  const auto all = share(mine);
  return std::accumulate(all.begin(), all.end(), 0.0);
}

void Processes::agree() {
  if (size_ > 1) share(0);
}

bool Processes::interrupted() const { return size_ == 1 ? lockstep::interrupted() : asked_ > 0; }
bool Processes::terminated() const { return size_ == 1 ? lockstep::terminated() : asked_ > 1; }
double Processes::now() const { return size_ == 1 ? seconds_here() : now_; }

std::vector<double> Processes::exchange(double mine, [[maybe_unused]] int failure) {
  if (size_ == 1) return {mine};
  std::vector<double> values(size_);
#ifdef LOCKSTEP_MPI
  const int asked = int(lockstep::interrupted()) + int(lockstep::terminated());
  const double sent[] = {mine, double(failure), double(asked), seconds_here()};
  constexpr int n = std::size(sent);
  std::vector<double> got(n * values.size());
  MPI_Request request;
  MPI_Iallgather(sent, n, MPI_DOUBLE, got.data(), n, MPI_DOUBLE, MPI_COMM_WORLD, &request);
  wait_for(request);  // NOLINT(clang-analyzer-optin.mpi.MPI-Checker): waits, and looks at the clock
  failures_.assign(size_, none);
  for (int r = 0; r < size_; ++r) {
    const double* of_one = got.data() + n * std::size_t(r);
    values[r] = of_one[0];
    failures_[r] = int(of_one[1]);
    asked_ = std::max(asked_, int(of_one[2]));
  }
  now_ = got[3];
  if (failure == none && std::count(failures_.begin(), failures_.end(), none) < size_) throw OtherFailed();
#endif
  return values;
}

template <class T>
void Processes::gather_rows(const std::vector<T>& mine, const std::vector<int>& columns, std::size_t stride,
                            std::vector<T>& whole) {
  const std::size_t own = columns[rank_],
                    all = std::accumulate(columns.begin(), columns.end(), std::size_t(0)),
                    rows = whole.size() / std::max<std::size_t>(stride, 1);
  if (all == 0) return;
  if (size_ == 1) {
    for (std::size_t r = 0; r < rows; ++r)
      std::copy_n(mine.begin() + r * own, own, whole.begin() + r * stride);
    return;
  }
#ifdef LOCKSTEP_MPI
  constexpr std::size_t kMessage = std::size_t(1) << 25;  // bytes; counts of MPI are int
  const std::size_t at_once = std::max<std::size_t>(1, kMessage / (all * sizeof(T)));
  std::vector<T> got(std::min(at_once, rows) * all);  // whoever has no memory for it says so now
  agree();
  MPI_Datatype type = sizeof(T) == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
  std::vector<int> count(size_), offset(size_);
  for (std::size_t row = 0; row < rows; row += at_once) {
    const std::size_t n = std::min(at_once, rows - row);
    for (int p = 0; p < size_; ++p) count[p] = int(n) * columns[p];
    std::partial_sum(count.begin(), count.end() - 1, offset.begin() + 1);
    MPI_Request request;
    MPI_Iallgatherv(mine.data() + row * own, count[rank_], type, got.data(), count.data(), offset.data(),
                    type, MPI_COMM_WORLD, &request);
    wait_for(request);
    for (std::size_t r = 0; r < n; ++r) {
      auto to = whole.begin() + (row + r) * stride;
      for (int p = 0; p < size_; ++p)
        to = std::copy_n(got.begin() + offset[p] + r * columns[p], columns[p], to);
    }
  }
#endif
}

template void Processes::gather_rows(const std::vector<double>&, const std::vector<int>&, std::size_t,
                                     std::vector<double>&);
template void Processes::gather_rows(const std::vector<float>&, const std::vector<int>&, std::size_t,
                                     std::vector<float>&);

std::string Processes::of_first(std::string text) {
  text.resize(std::size_t(of_first(double(text.size()))));
  agree();  // whoever has no memory for it has said so
  broadcast(0, text);
  return text;
}

void Processes::broadcast([[maybe_unused]] int from, [[maybe_unused]] std::string& text) {
#ifdef LOCKSTEP_MPI
  if (size_ == 1) return;
  constexpr std::uint64_t kMessage = std::uint64_t(1) << 30;
  std::uint64_t length = text.size();
  MPI_Bcast(&length, 1, MPI_UINT64_T, from, MPI_COMM_WORLD);
  text.resize(length);
  for (std::uint64_t at = 0; at < length; at += kMessage)
    MPI_Bcast(text.data() + at, int(std::min(kMessage, length - at)), MPI_CHAR, from, MPI_COMM_WORLD);
#endif
}

}  // namespace lockstep
