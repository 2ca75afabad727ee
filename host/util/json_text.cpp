// SPDX-License-Identifier: Apache-2.0
#include "host/util/json_text.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace lockstep {

using nlohmann::json;

json parse_json(std::string_view text) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const json::parser_callback_t watch = [&](int depth, json::parse_event_t event, json& value) {
    using Event = json::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) && depth >= kMostNested)
      throw BadJson{BadJson::Fault::nested};
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(value.get<std::string>()).second)
      throw BadJson{BadJson::Fault::repeated, 0, value.get<std::string>()};
    return true;
  };
  try {
    return json::parse(text, watch);
  } catch (const json::parse_error& error) {
    throw BadJson{BadJson::Fault::syntax, std::min(error.byte > 0 ? error.byte - 1 : 0, text.size())};
  } catch (const json::out_of_range&) {
    throw BadJson{BadJson::Fault::range};
  }
}

}  // namespace lockstep
