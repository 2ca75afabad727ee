// SPDX-License-Identifier: Apache-2.0
#include "host/formats/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "host/formats/npy.hpp"
#include "host/util/json_text.hpp"
#include "host/util/settings.hpp"
#include "host/util/user_file.hpp"

namespace lockstep {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

void read_all(std::istream& file, char* to, std::uint64_t count, const std::string& name) {
  file.read(to, static_cast<std::streamsize>(count));
  if (static_cast<std::uint64_t>(file.gcount()) != count) refuse_damaged(name, "it ends early");
}

template <class T>
void swap_on_big_endian(std::vector<T>& values) {
  if constexpr (std::endian::native == std::endian::big)
    for (T& value : values) {
      auto* byte = reinterpret_cast<unsigned char*>(&value);
      std::reverse(byte, byte + sizeof(T));
    }
}

struct Tensor {
  std::string name, type;
  std::vector<std::size_t> shape;
  std::uint64_t begin = 0, end = 0;  // bytes, counted from the end of the header
};

/// No values yet, of an element type of the format, halves as their bits; none for a type that we do not
/// read.
std::optional<NumericArray::Values> values_of(const std::string& type) {
  if (type == "F32") return std::vector<float>();
  if (type == "F64") return std::vector<double>();
  if (type == "I8") return std::vector<std::int8_t>();
  if (type == "I16") return std::vector<std::int16_t>();
  if (type == "I32") return std::vector<std::int32_t>();
  if (type == "I64") return std::vector<std::int64_t>();
  if (type == "U8" || type == "BOOL") return std::vector<std::uint8_t>();
  if (type == "U16" || type == "F16" || type == "BF16") return std::vector<std::uint16_t>();
  if (type == "U32") return std::vector<std::uint32_t>();
  if (type == "U64") return std::vector<std::uint64_t>();
  return std::nullopt;
}

float from_bfloat(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

json parse_header(const std::string& text, const std::string& name) {
  json header;
  try {
    header = parse_json(text);
  } catch (const BadJson& bad) {
    refuse_damaged(name, bad.fault == BadJson::Fault::repeated ? "its header gives one name twice"
                                                               : "its header is not JSON of a few levels");
  }
  if (!header.is_object()) refuse_damaged(name, "its header is no JSON object");
  return header;
}

bool all_whole(const json& values) {
  return values.is_array() && std::all_of(values.begin(), values.end(),
                                          [](const json& value) { return value.is_number_unsigned(); });
}

Tensor tensor_of(const std::string& name, const json& entry, const std::string& where) {
  const auto part = [&entry](const char* key) {
    return entry.is_object() && entry.contains(key) ? entry.at(key) : json();
  };
  const json type = part("dtype"), shape = part("shape"), offsets = part("data_offsets");
  if (!type.is_string() || !all_whole(shape) || !all_whole(offsets) || offsets.size() != 2)
    refuse_damaged(where, "its header lacks a valid dtype, shape or data_offsets");
  return {name, type.get<std::string>(), shape.get<std::vector<std::size_t>>(),
          offsets[0].get<std::uint64_t>(), offsets[1].get<std::uint64_t>()};
}

/// The bytes of all elements; none beyond 2^64.
std::optional<std::uint64_t> bytes_of(const std::vector<std::size_t>& shape, std::uint64_t element) {
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) return 0;
  for (const std::size_t size : shape)
    if (__builtin_mul_overflow(element, size, &element)) return std::nullopt;
  return element;
}

/// The array at the place where `file` stands. The caller has compared its offsets with the file's size.
NumericArray read_tensor(std::istream& file, Tensor tensor, const std::string& where) {
  std::optional<NumericArray::Values> values = values_of(tensor.type);
  if (!values)
    refuse("{} holds elements of type {} (only real numbers of 8 to 64 bits can be read). Save it as F32.",
           where, shown(tensor.type));
  const std::uint64_t bytes = tensor.end - tensor.begin;
  const auto fill = [&]<class T>(std::vector<T>& v) {
    // Compared before anything is allocated: a wrong header must not ask for more than the file can give.
    if (bytes_of(tensor.shape, sizeof(T)) != bytes)
      refuse_damaged(where, fmt::format("it has {} bytes, and its shape asks for another number", bytes));
    require_memory_of(where, bytes / sizeof(T));
    v.resize(bytes / sizeof(T));
    read_all(file, reinterpret_cast<char*>(v.data()), bytes, where);
    swap_on_big_endian(v);
  };
  std::visit(fill, *values);
  if (tensor.type == "F16" || tensor.type == "BF16") {
    const auto& halves = std::get<std::vector<std::uint16_t>>(*values);
    std::vector<float> wide(halves.size());
    std::transform(halves.begin(), halves.end(), wide.begin(),
                   tensor.type == "F16" ? from_half : from_bfloat);
    values = std::move(wide);
  }
  return {std::move(tensor.shape), std::move(*values)};
}

}  // namespace

std::map<std::string, NumericArray> load_safetensors(const fs::path& path) {
  const std::string name = path.string();
  auto [file, rest] = open_user_file(path);
  unsigned char field[8] = {};
  if (rest < sizeof field) refuse_damaged(name, "it ends early");
  read_all(file, reinterpret_cast<char*>(field), sizeof field, name);
  rest -= sizeof field;
  std::uint64_t length = 0;
  for (std::size_t i = sizeof field; i-- > 0;) length = 256 * length + field[i];
  if (length > rest) refuse_damaged(name, fmt::format("its header would have {} bytes", length));
  constexpr double as_json = 20;  // what JSON takes of memory, for each byte of its text
  require_memory(name, as_json * static_cast<double>(length));
  std::string text(length, ' ');
  read_all(file, text.data(), length, name);
  rest -= length;

  const auto quoted = [&](const std::string& tensor) { return fmt::format("{} in {}", shown(tensor), name); };
  const json header = parse_header(text, name);
  std::vector<Tensor> tensors;
  for (const auto& [key, entry] : header.items())
    if (key != "__metadata__") tensors.push_back(tensor_of(key, entry, quoted(key)));
  if (tensors.empty())
    refuse("{} holds no arrays (there is nothing to read). Write it with save_file of safetensors.", name);

  // In the order of the file each begins where the last one ended: nothing overlaps, no byte is left over.
  const auto place = [](const Tensor& t) { return std::tie(t.begin, t.end); };
  std::sort(tensors.begin(), tensors.end(),
            [&](const Tensor& a, const Tensor& b) { return place(a) < place(b); });
  std::uint64_t at = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.begin > tensor.end) refuse_damaged(quoted(tensor.name), "it ends before it begins");
    if (tensor.end > rest) refuse_damaged(quoted(tensor.name), "the file ends before its last number");
    if (tensor.begin != at)
      refuse_damaged(quoted(tensor.name), fmt::format("it begins at byte {}, and the array before it ends "
                                                      "at {}",
                                                      tensor.begin, at));
    at = tensor.end;
  }
  if (at < rest) refuse_damaged(name, fmt::format("{} bytes follow the last number", rest - at));

  std::map<std::string, NumericArray> arrays;
  for (Tensor& tensor : tensors) {
    std::string key = tensor.name;
    NumericArray array = read_tensor(file, std::move(tensor), quoted(key));
    arrays.emplace(std::move(key), std::move(array));
  }
  return arrays;
}

}  // namespace lockstep
