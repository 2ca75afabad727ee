// SPDX-License-Identifier: Apache-2.0
#include "host/options/item_config.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "host/util/errors.hpp"

namespace lockstep {
namespace {

/// What a method comes to on items with exact draws or without.
ItemConfig on_items(const std::string& method, bool exact) {
  RunOptions run;
  run.sampler = method;
  run.chains = 0;
  run.unbounded = true;
  Items items;
  items.base = "prior";
  if (exact) items.exact = {0};
  return item_config(run, items);
}

TEST(ItemConfig, RowsSayWhatAMethodIs) {
  for (const EvidenceMethod& m : method_registry()) {
    const std::string& name = m.info.name;
    if (!m.of_items) {
      EXPECT_THROW(on_items(name, true), UserError) << name;
      EXPECT_TRUE(item_settings(name).empty()) << name;
      continue;
    }
    const ItemConfig c = on_items(name, true);
    EXPECT_EQ(c.anneals() + c.tempers() + !c.moves(), 1) << name;
    // The help names what is read, and nothing else.
    const auto help = item_settings(name);
    for (const auto& [key, line] : help)
      EXPECT_TRUE(c.effective.contains(key) || key == "step_size") << name << key;
    for (const auto& [key, value] : c.effective.items())
      EXPECT_TRUE(std::any_of(help.begin(), help.end(), [&, k = key](const auto& l) { return l.first == k; }))
          << key;
  }
  EXPECT_EQ(on_items("auto", true).method(), "bdmc");
  EXPECT_EQ(on_items("auto", false).method(), "ais");
  EXPECT_THROW(on_items("bdmc", false), UserError);
  EXPECT_EQ(on_items("st", false).of->tempering, Tempering::levels);
  EXPECT_EQ(on_items("ct-gibbs", false).of->tempering, Tempering::gibbs);
  EXPECT_EQ(on_items("ct-joint", false).of->tempering, Tempering::joint);
}

TEST(ItemConfig, UnknownMethodsAreToldTheKnown) {
  try {
    on_items("nothing-like-it", false);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(
        std::string(e.what()),
        "there is no method nothing-like-it for a target with many items. Known methods: auto, bound, ais, "
        "bdmc, st, ct-gibbs, ct-joint.");
  }
}

}  // namespace
}  // namespace lockstep
