// SPDX-License-Identifier: Apache-2.0
#include "host/paths/item_paths.hpp"

#include "tests/support/decoder.hpp"
#include "tests/support/resumed.hpp"
#include "tests/support/subject.hpp"

namespace lockstep {
namespace {

using namespace testing;

class ItemPilotFiles : public FolderTest {};

TEST_F(ItemPilotFiles, PilotsGoOnFromEveryLevel) {
  const SubjectOf<DecoderTarget> s(decoder_input(random_decoder({4, 10, 20}, 2), 5));
  RunContext context;
  context.target = s.target.get();
  context.key = make_stream_key(1, "pilot");
  const ItemPilot found = expect_same_from_every_level(
      folder_, [&] { return std::make_unique<ItemPilotRun>(context, false, 3, 0.8, 0); });
  const ItemPilot once = run_item_pilot(context, false, 3, 0.8, 0);
  EXPECT_EQ(found.step_size, once.step_size);
  EXPECT_EQ(found.log_z, once.log_z);
}

}  // namespace
}  // namespace lockstep
