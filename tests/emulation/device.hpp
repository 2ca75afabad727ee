// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device on the CPU, for the launch code alone: it sees wrong indices, missing guards, lifetimes, copies of
// the wrong length, memory nobody wrote and work nobody waited for. It knows nothing of a real device's
// rounding, registers or speed.
//
//   Memory    stands in pages of its own, which are closed but while the device works: a host that reaches
//             into it is found. What is beyond the end of an allocation is poisoned for the address sanitizer;
//             fresh memory holds 3.4e38.
//   Streams   are lazy: work is done when the host waits for its stream, and no sooner, so that a wait that is
//             missing gives old numbers every time.
//   Fences    Work opens the memory it touches, page faults telling which, to read or to write. Where two
//             pieces of work of different streams meet in one allocation and one of them writes, the host
//             must have waited for the first before it enqueued the second. What a stream does in one go stays
//             open until it is done: the host waits for all of it together.
//
// What is wrong becomes a complaint, which fails the test (tests/emulation/main.cpp), and the run goes on.
#include <sanitizer/asan_interface.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

extern "C" int __sanitizer_get_ownership(const volatile void*);  // g++ installs no header with it

namespace emulated {

/// What a stream does in one go.
struct Work {
  static constexpr std::uint64_t kNever = ~std::uint64_t(0);
  std::string name;
  std::function<void()> body;
  std::uint64_t stream = 0, enqueued = 0;  // the stream's number; the time on the host's clock
  std::uint64_t waited_for = kNever;       // when the host has waited for it
};
using WorkPointer = std::shared_ptr<Work>;
using Recording = std::vector<std::pair<std::string, std::function<void()>>>;

struct Stream;

class Device {
 public:
  static Device& the() {
    static Device* device = new Device;  // for ever: threads that end late still have streams
    return *device;
  }

  std::recursive_mutex mutex;  // one device: it does one thing at a time
  std::set<Stream*> streams;
  std::uint64_t clock = 0, streams_made = 0;  // the host's clock goes on with each wait
  bool broken = false;                        // every call fails, as after a kernel's fault

  void complain(const std::string& what) {
    std::lock_guard lock(mutex);
    complaints_.insert(what);
  }
  std::set<std::string> take_complaints() {
    std::lock_guard lock(mutex);
    return std::exchange(complaints_, {});
  }

  void* allocate(std::size_t size) {
    std::lock_guard lock(mutex);
    const std::size_t page = page_size(), pages = (size + page - 1) / page * page;
    void* all = mmap(nullptr, pages + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return nullptr;
    char* begin = static_cast<char*>(all) + page;
    ASAN_POISON_MEMORY_REGION(all, page);
    ASAN_POISON_MEMORY_REGION(begin + size, pages - size + page);
    memory_[begin] = {size, pages, PROT_NONE, true, nullptr, {}};
    return begin;
  }
  /// False where `p` is no allocation.
  bool free(void* p) {
    std::lock_guard lock(mutex);
    const auto found = memory_.find(static_cast<char*>(p));
    if (found == memory_.end()) return false;
    const std::size_t page = page_size(), pages = found->second.pages;
    open_.erase(found->first);
    memory_.erase(found);
    ASAN_UNPOISON_MEMORY_REGION(static_cast<char*>(p) - page, pages + 2 * page);
    munmap(static_cast<char*>(p) - page, pages + 2 * page);
    return true;
  }
  std::size_t allocations() {
    std::lock_guard lock(mutex);
    return memory_.size();
  }

  /// A kernel's arguments must not point into the host's heap.
  void check_arguments(const void* given, std::size_t size) {
    for (std::size_t at = 0; at + sizeof(void*) <= size; at += alignof(void*)) {
      void* p = nullptr;
      std::memcpy(&p, static_cast<const char*>(given) + at, sizeof p);
      if (p != nullptr && __sanitizer_get_ownership(p))
        complain("a kernel is given an address of the host's, at byte " + std::to_string(at) +
                 " of an argument of " + std::to_string(size));
    }
  }

  /// The work of a memset. A whole allocation that is fresh becomes zero as its pages are, none of them touched.
  void set(char* p, int value, std::size_t size) {
    const auto found = memory_.find(p);
    if (value != 0 || found == memory_.end() || !found->second.fresh || found->second.size != size) {
      std::memset(p, value, size);
      return;
    }
    note_access(found->second, true);
    found->second.fresh = false;
  }

  /// Does a piece of work, opening the memory it touches.
  void run(const WorkPointer& work) {
    running_ = work;
    worker_ = gettid();
    work->body();
    work->body = nullptr;
    running_ = nullptr;
  }
  void close_memory() {
    for (const auto& [begin, memory] : open_) mprotect(begin, memory->pages, memory->access = PROT_NONE);
    open_.clear();
  }

 private:
  struct Memory {
    std::size_t size, pages;
    int access;          // as mprotect has it
    bool fresh;          // nobody has touched it: it is filled when somebody does
    WorkPointer writer;  // who wrote last, and who has read since
    std::vector<WorkPointer> readers;
  };

  Device() {
    struct sigaction action = {};
    action.sa_sigaction = [](int signal, siginfo_t* info, void* context) {
      const bool write = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
      if (!the().open(static_cast<char*>(info->si_addr), write))
        the().no_memory_.sa_sigaction(signal, info, context);
    };
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &no_memory_);
  }
  static std::size_t page_size() { return std::size_t(sysconf(_SC_PAGESIZE)); }

  /// Opens the memory that somebody touches. False where it is none of the device's.
  bool open(char* at, bool write) {
    std::lock_guard lock(mutex);
    auto found = memory_.upper_bound(at);
    if (found == memory_.begin()) return false;
    const auto& [begin, memory] = *--found;
    if (at >= begin + memory.pages) return false;
    if (running_ == nullptr || worker_ != gettid())
      complaints_.insert("the host touches memory of the device");
    else
      note_access(found->second, write);
    if (found->second.fresh) {
      mprotect(begin, memory.pages, PROT_READ | PROT_WRITE);
      std::memset(begin, 0x7f, memory.size);
      found->second.fresh = false;
    }
    found->second.access = PROT_READ | (write ? PROT_WRITE : 0);
    mprotect(begin, memory.pages, memory.access);
    open_[begin] = &found->second;
    return true;
  }
  void note_access(Memory& memory, bool write) {
    check_fence(memory.writer);
    if (!write) {  // the last of each stream is enough: its work is done in order
      std::erase_if(memory.readers, [&](const WorkPointer& r) { return r->stream == running_->stream; });
      memory.readers.push_back(running_);
      return;
    }
    for (const WorkPointer& reader : memory.readers) check_fence(reader);
    memory.readers.clear();
    memory.writer = running_;
  }
  void check_fence(const WorkPointer& before) {
    if (before == nullptr || before->stream == running_->stream || before->waited_for <= running_->enqueued)
      return;
    complaints_.insert("no fence between work of two streams in the same memory: " + before->name +
                       ", then " + running_->name);
  }

  std::map<char*, Memory> memory_;
  std::map<char*, Memory*> open_;
  std::set<std::string> complaints_;
  WorkPointer running_;
  pid_t worker_ = 0;
  struct sigaction no_memory_ = {};
};

struct Stream {
  const std::uint64_t number;
  std::unique_ptr<Recording> recording;  // of a graph

  Stream() : number(add(this)) {}
  ~Stream() {
    run();
    std::lock_guard lock(Device::the().mutex);
    Device::the().streams.erase(this);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void enqueue(std::string name, std::function<void()> body) {
    std::lock_guard lock(Device::the().mutex);
    if (recording != nullptr)
      recording->emplace_back(std::move(name), std::move(body));
    else
      waiting_.push_back(
          std::make_shared<Work>(Work{std::move(name), std::move(body), number, Device::the().clock}));
  }
  /// Does what waits here.
  void run() {
    std::lock_guard lock(Device::the().mutex);
    for (; !waiting_.empty(); waiting_.pop_front()) {
      Device::the().run(waiting_.front());
      done_.push_back(waiting_.front());
    }
    Device::the().close_memory();
  }
  /// The host waits for all that has been enqueued.
  void synchronize() {
    std::lock_guard lock(Device::the().mutex);
    run();
    ++Device::the().clock;
    for (const WorkPointer& work : done_) work->waited_for = Device::the().clock;
    done_.clear();
  }

 private:
  static std::uint64_t add(Stream* stream) {
    std::lock_guard lock(Device::the().mutex);
    Device::the().streams.insert(stream);
    return ++Device::the().streams_made;
  }
  std::deque<WorkPointer> waiting_;
  std::vector<WorkPointer> done_;  // that nobody has waited for
};

inline thread_local Stream stream_of_this_thread;

}  // namespace emulated
