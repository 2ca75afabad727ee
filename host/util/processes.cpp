// SPDX-License-Identifier: Apache-2.0
#include "host/util/processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "host/util/errors.hpp"
#ifdef LOCKSTEP_MPI
#include <mpi.h>
#include <sched.h>

#include "host/util/peak.hpp"
#endif

namespace lockstep {
namespace {

/// Thrown by an exchange in which another process says that it has failed.
struct OtherFailed {};

#ifdef LOCKSTEP_MPI
/// Keeps no processor busy, as MPI_Wait would: the threads of other processes may still compute.
void sleep_until_done(MPI_Request request) {
  for (int done = 0; MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE), done == 0;)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
}

/// Processors for this process: those that several on its machine may use are divided among them. Launchers
/// give each process some of its own, or let all use every one.
int own_processors(MPI_Comm machine) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0)
    for (int c = 0; c < hardware_threads(); ++c) CPU_SET(c, &mine);
  std::vector<int> users(CPU_SETSIZE);
  for (int c = 0; c < CPU_SETSIZE; ++c) users[c] = CPU_ISSET(c, &mine) ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, users.data(), CPU_SETSIZE, MPI_INT, MPI_SUM, machine);
  double share = 0;
  for (int c = 0; c < CPU_SETSIZE; ++c)
    if (CPU_ISSET(c, &mine)) share += 1.0 / users[c];
  return std::max(1, int(share + 1e-6));
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

void Processes::start(const Launch& launch, const std::string& command) {
  if (launch.rank == 0 && launch.size == 1) return;
  const bool many = launch.rank > 0 || launch.size > 1;
  if (many && command != "evidence")
    throw UserError(
        fmt::format("a launcher started more than one process, and lockstep {} runs as one (each would do "
                    "the same, and write "
                    "the same files). Start it without mpirun or srun, or with one process",
                    command));
#ifdef LOCKSTEP_MPI
  if (command != "evidence") return;
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
  started_ = true;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  if (size_ == 1 && many)
    throw UserError(
        "a launcher started more than one process, but MPI takes each to be alone (each would do the whole "
        "run, "
        "and write the same files). Use the launcher of the MPI that lockstep was built with");
  MPI_Comm machine;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  MPI_Comm_rank(machine, &rank_here_);
  MPI_Comm_size(machine, &here_);
  threads_ = own_processors(machine);
  MPI_Comm_free(&machine);
#else
  if (many)
    throw UserError(
        "a launcher started more than one process, but this build has no MPI (each would do the whole run, "
        "and "
        "write the same files). Build where MPI is installed, or start one process");
#endif
}

int Processes::together(const std::function<int()>& body) {
  if (size_ == 1) return body();
  int status = 0, failure = 0;
  std::string text;
  try {
    try {
      status = body();
    } catch (const FirstSpeaks&) {
    }
    share(0);  // the first may still fail, while it writes
    return status;
  } catch (const OtherFailed&) {
  } catch (const UserError& error) {
    failure = 2;
    text = error.what();
  } catch (const std::exception& error) {
    failure = 1;
    text = error.what();
  }
  if (failure != 0) exchange(0, failure);
  const auto failed = std::find_if(failures_.begin(), failures_.end(), [](int f) { return f != 0; });
  const int from = int(failed - failures_.begin());
  text = text_of(from, std::move(text));
  if (from > 0) text = fmt::format("process {}: {}", from, text);
  if (!first()) return *failed;
  if (*failed == 2) throw UserError(text);
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

bool Processes::any(bool mine) {
  const auto all = share(mine);
  return std::count(all.begin(), all.end(), 0.0) < std::ptrdiff_t(all.size());
}

std::vector<double> Processes::exchange(double mine, [[maybe_unused]] int failure) {
  if (size_ == 1) return {mine};
  std::vector<double> values(size_);
#ifdef LOCKSTEP_MPI
  const double sent[2] = {mine, double(failure)};
  std::vector<double> got(2 * std::size_t(size_));
  MPI_Request request;
  MPI_Iallgather(sent, 2, MPI_DOUBLE, got.data(), 2, MPI_DOUBLE, MPI_COMM_WORLD, &request);
  sleep_until_done(request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  failures_.assign(size_, 0);
  for (int r = 0; r < size_; ++r) {
    values[r] = got[2 * std::size_t(r)];
    failures_[r] = int(got[2 * std::size_t(r) + 1]);
  }
  if (failure == 0 && std::count(failures_.begin(), failures_.end(), 0) < size_) throw OtherFailed();
#endif
  return values;
}

std::vector<std::vector<double>> Processes::gather(const std::vector<double>& mine) {
  if (size_ == 1) return {mine};
  const auto lengths = share(double(mine.size()));
  std::vector<std::vector<double>> parts;
#ifdef LOCKSTEP_MPI
  const std::vector<int> count(lengths.begin(), lengths.end());
  std::vector<int> offset(count.size(), 0);
  std::partial_sum(count.begin(), count.end() - 1, offset.begin() + 1);
  std::vector<double> all(first() ? std::size_t(offset.back() + count.back()) : 0);
  MPI_Gatherv(mine.data(), int(mine.size()), MPI_DOUBLE, all.data(), count.data(), offset.data(), MPI_DOUBLE,
              0, MPI_COMM_WORLD);
  for (int r = 0; first() && r < size_; ++r)
    parts.emplace_back(all.begin() + offset[r], all.begin() + offset[r] + count[r]);
#endif
  return parts;
}

std::string Processes::text_of([[maybe_unused]] int from, std::string text) {
#ifdef LOCKSTEP_MPI
  int length = int(text.size());
  MPI_Bcast(&length, 1, MPI_INT, from, MPI_COMM_WORLD);
  text.resize(std::size_t(length));
  MPI_Bcast(text.data(), length, MPI_CHAR, from, MPI_COMM_WORLD);
#endif
  return text;
}

}  // namespace lockstep
