// SPDX-License-Identifier: Apache-2.0
#include "host/engines/points_file.hpp"

#include <fmt/format.h>

#include "host/formats/data.hpp"
#include "host/options/config.hpp"
#include "host/util/errors.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;
using Points = std::vector<Eigen::VectorXd>;

/// The modes that a file lists; null where it lists none.
Json modes_in(const Json& values) {
  static const Json::json_pointer shares("/diagnostics/modes/shares");
  return values.contains(shares) ? values[shares] : values.value("modes", Json());
}

Points places_of(const Json& modes, const std::string& file, int dim, const std::string& option) {
  Points places;
  for (const Json& mode : modes) {
    const int number = int(places.size()) + 1;
    if (!mode.is_object() || !mode.contains("place") || !mode["place"].is_array() ||
        int(mode["place"].size()) != dim)
      throw UserError(
          fmt::format("mode {} of {} has no place of {} coordinates (they say where it is). Write "
                      "{{\"modes\": [{{\"place\": [..]}}, ..]}}.",
                      number, file, dim));
    Eigen::VectorXd x(dim);
    for (int i = 0; i < dim; ++i) {
      if (!mode["place"][i].is_number())
        throw UserError(fmt::format(
            "mode {} of {} has a coordinate that is no number (its place is {} numbers). Correct it.", number,
            file, dim));
      x[i] = mode["place"][i].get<double>();
    }
    places.push_back(std::move(x));
  }
  if (places.empty())
    throw UserError(fmt::format(
        "{} holds no mode (nothing would be known). Leave out {}: they are searched for.", file, option));
  return places;
}

}  // namespace

Points read_points(const std::filesystem::path& file, int dim, const std::string& option) {
  const auto path = resolve_data_path(file, {});
  const auto kind = path.extension();
  const DataSet set = kind == ".csv" ? DataSet{{{"x", load_rows(path)}}, {}} : load_data(path);
  const std::string name = kind == ".npy" ? path.stem().string() : "x";
  const DataReader data(set, (option == "--init" ? "starts (" : "modes (") + file.string() + ")");
  if (!data.has(name)) {
    if (const Json modes = modes_in(set.values); !modes.is_null())
      return places_of(modes, file.string(), dim, option);
    if (set.values.contains("diagnostics"))
      throw UserError(
          fmt::format("{} {} lists no modes (a run does where it has several, and draws). Leave out {}: they "
                      "are searched for.",
                      option, file.string(), option));
    throw UserError(
        fmt::format("{} {} holds no points (it has neither x, rows of {} numbers, nor a list of modes). Give "
                    "such rows, modes.json of lockstep modes, or summary.json of a run.",
                    option, file.string(), dim));
  }
  const Eigen::MatrixXd m = data.matrix(name, DataReader::any_size, dim);
  Points rows;
  for (Eigen::Index i = 0; i < m.rows(); ++i) rows.push_back(m.row(i));
  return rows;
}

Points read_starts(const std::string& init, int dim) {
  if (is_init_word(init)) return {};
  return read_points(init, dim, "--init");
}

}  // namespace lockstep
