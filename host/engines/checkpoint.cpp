// SPDX-License-Identifier: Apache-2.0
#include "host/engines/checkpoint.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "host/engines/points_file.hpp"
#include "host/options/config.hpp"
#include "host/util/files.hpp"
#include "host/util/program.hpp"

namespace lockstep {

using nlohmann::json;

namespace {

constexpr std::string_view kMagic = "lockstep checkpoint ";
constexpr int kFormat = 12;  // raised when a field comes, goes or changes its meaning
constexpr std::size_t kTrailer = 32;

std::string head_of(const std::string& identity) {
  return fmt::format("{}{} {}\n", kMagic, kFormat, checksum(identity));
}

[[noreturn]] void refuse_damaged(const std::filesystem::path& file) {
  throw UserError(fmt::format(
      "{} is damaged, or of an older version (its numbers cannot be trusted). Add --force instead of "
      "--resume to start afresh, or put an undamaged copy there",
      file.string()));
}

/// Takes in what a checkpoint is, one object of bytes, and refuses all else: the reader of CBOR
/// calls itself for each value within another, and a file could ask for as many as it has bytes.
struct FlatObject final : json::json_sax_t {
  json values = json::object();
  std::string name;
  bool open = false;

  bool keep(json value) {
    if (!open) return false;
    values[name] = std::move(value);
    return true;
  }
  bool start_object(std::size_t) override { return !std::exchange(open, true); }
  bool key(string_t& text) override {
    name = text;
    return true;
  }
  bool string(string_t&) override { return false; }
  bool binary(binary_t& bytes) override { return keep(std::move(bytes)); }
  bool end_object() override { return true; }
  bool null() override { return false; }
  bool boolean(bool) override { return false; }
  bool number_integer(number_integer_t) override { return false; }
  bool number_unsigned(number_unsigned_t) override { return false; }
  bool number_float(number_float_t, const string_t&) override { return false; }
  bool start_array(std::size_t) override { return false; }
  bool end_array() override { return false; }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override { return false; }
};

}  // namespace

std::string Checkpoint::verify(const std::filesystem::path& file, const std::string& identity) {
  if (!std::filesystem::exists(file))
    throw UserError(fmt::format(
        "{} does not exist (a finished run removes its checkpoint). Leave out --resume to start afresh.",
        file.string()));
  std::string text = read_text(file);
  const std::string head = head_of(identity);
  if (text.size() < head.size() + kTrailer || !text.starts_with(kMagic)) refuse_damaged(file);
  const std::size_t end = text.size() - kTrailer;
  const std::string_view content(text.data(), end);
  if (text.substr(end) != fmt::format("{:016x}{}", end, checksum(content))) refuse_damaged(file);
  if (!text.starts_with(head.substr(0, head.rfind(' ') + 1)))
    throw UserError(
        fmt::format("{} was written by another version of lockstep (this one cannot read it). Go on "
                    "with that version, or add --force instead of --resume to start afresh",
                    file.string()));
  if (!text.starts_with(head))
    throw UserError(fmt::format(
        "{} is of a run with other options, data, points of --init or --modes, or another version (the two "
        "would be mixed). Give only --out DIR and --resume to go on with that run, or another --out.",
        file.string()));
  return text;
}

bool Checkpoint::holds(const std::string& name) const {
  const auto& kept = data_.get_ref<const json::object_t&>();
  const auto from = kept.lower_bound(name);
  return from != kept.end() && (from->first == name || from->first.starts_with(name + "/"));
}

Checkpoint::Checkpoint(const std::filesystem::path& file, const std::string& identity)
    : file_(file), reading_(true) {
  Processes& processes = Processes::all();
  const std::string text = processes.of_first(processes.first() ? verify(file, identity) : "");
  FlatObject content;
  if (!json::sax_parse(text.begin() + std::ptrdiff_t(head_of(identity).size()), text.end() - kTrailer,
                       &content, json::input_format_t::cbor))
    refuse();
  data_ = std::move(content.values);
}

void Checkpoint::write(const std::filesystem::path& file, const std::string& identity) {
  AtomicFile out(file);
  std::fstream stream(out.temporary(), std::ios::binary | std::ios::in | std::ios::out | std::ios::trunc);
  stream << head_of(identity);
  json::to_cbor(data_, stream);
  // The sum is of what is read back: a second copy in memory would be as large as the run.
  std::uint64_t length = 0;
  Checksum sum;
  std::vector<char> block(1 << 20);
  stream.seekg(0);
  while (stream.read(block.data(), std::streamsize(block.size())), stream.gcount() > 0) {
    sum.add({block.data(), std::size_t(stream.gcount())});
    length += std::uint64_t(stream.gcount());
  }
  if (stream.eof()) stream.clear();
  stream.seekp(0, std::ios::end);
  stream << fmt::format("{:016x}{}", length, sum.text());
  stream.close();
  if (!stream)
    throw std::runtime_error(
        fmt::format("cannot write '{}': {}", file.string(), std::generic_category().message(errno)));
  out.finish();
}

void Checkpoint::refuse() const { refuse_damaged(file_); }

void CheckpointPlan::write(Checkpoint& now) {
  if (!Processes::all().first()) return;
  try {
    now.write(file, identity);
    failed = false;
  } catch (const std::runtime_error& error) {
    if (!std::exchange(failed, true))
      say(fmt::format("no checkpoint: {} (the run goes on; an older checkpoint stays)", error.what()));
  }
}

bool CheckpointPlan::due(bool interrupted) {
  if (file.empty()) return false;
  const double now = Processes::all().now();
  if (!interrupted && !(seconds > 0 && now - last > seconds)) return false;
  last = now;
  return true;
}

std::string essential_options(const RunOptions& run) {
  RunOptions essential = run;
  static_cast<Surroundings&>(essential) = {};
  return write_run_toml(essential);
}

std::string run_identity(const RunOptions& run, const TargetInstance& target, const Settings& effective) {
  std::string text = fmt::format("{} {}\n{}\n{}", LOCKSTEP_VERSION, kNumbersVersion, essential_options(run),
                                 effective.dump());
  std::vector<double> x(target.dim()), gradient(target.dim());
  for (int point = 0; point < 4; ++point) {
    for (int i = 0; i < target.dim(); ++i) x[i] = (point - 1.3) * (1 + 0.37 * ((i * 7 + point) % 5));
    text += fmt::format(" {:a}", target.log_density(x.data(), gradient.data()));
    for (double g : gradient) text += fmt::format(" {:a}", g);
  }
  for (const auto& start : read_starts(run.init, target.dim()))
    for (double v : start) text += fmt::format(" {:a}", v);
  if (!run.modes.empty())
    for (const auto& place : read_points(run.modes, target.dim(), "--modes"))
      for (double v : place) text += fmt::format(" {:a}", v);
  if (const Items* items = target.items()) {  // FNV-1a of all that items differ in
    std::uint64_t hash = 14695981039346656037u;
    const auto add = [&](const auto& values) {
      const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
      for (std::size_t i = 0; i < values.size() * sizeof(values[0]); ++i)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    };
    add(items->values);
    add(items->base_mean);
    add(items->base_sd);
    text += fmt::format("\n{} items {:x}", items->count, hash);
  }
  return text;
}

}  // namespace lockstep
