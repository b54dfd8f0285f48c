// Which stream gets which place, and what becomes of those that get none; on real processes
// (stand_ins/counting_worker).
#include "coordinator/decoder_streams.h"

#include <algorithm>
#include <string>
#include <vector>

#include "coordinator/decoder_fleet_fixture.h"

namespace muster {
namespace {

class DecoderStreamsTest : public DecoderFleetTest {
 protected:
  void run_until_ready() {
    run_until([&] {
      const auto groups = fleet_->groups();
      return std::all_of(groups.begin(), groups.end(), [](const DecoderGroupView& group) {
        return group.state == DecoderGroupView::State::Ready;
      });
    });
  }
};

// ---- Places ----

TEST_F(DecoderStreamsTest, PlacesAreFreeAsLongAsAWorkerMayBeGivenMore) {
  start("wait_at=1", 2, 2);
  EXPECT_EQ(fleet_->free_count(), 0U) << "none is ready";
  run_until_ready();
  EXPECT_EQ(fleet_->free_count(), 4U);
  std::vector<StreamId> ids;
  for (std::uint32_t i = 0; i < 5; ++i) {
    ids.push_back(fleet_->submit({.ids = {100 * i}, .token_limit = 9}));
  }
  EXPECT_EQ(fleet_->free_count(), 4U) << "they are given away in the next step";
  run_until([&] { return tokens_.size() == 4; });
  EXPECT_EQ(fleet_->free_count(), 0U);
  EXPECT_TRUE(fleet_->cancel(ids[0]));
  EXPECT_EQ(fleet_->free_count(), 0U) << "its worker has not answered for it";
  EXPECT_FALSE(fleet_->cancel(ids[4]));
  run_until([&] { return fleet_->free_count() == 1; });
  fleet_->workers().drain(1);
  EXPECT_LE(fleet_->free_count(), 1U);
  fleet_->workers().drain(0);
  EXPECT_EQ(fleet_->free_count(), 0U);
}

}  // namespace
}  // namespace muster
