#include "engine/models/packed_pass.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::engine {
namespace {

std::vector<std::int32_t> values(const at::Tensor& list) {
  const auto* begin = list.const_data_ptr<std::int32_t>();
  return {begin, begin + list.numel()};
}

TEST(PackedPass, TextsFollowEachOtherAndPaddingMakesTextsNoLongerThanTheLongest) {
  const std::vector<std::uint32_t> ids{7, 8, 9, 5, 6};
  const std::vector<std::uint32_t> lengths{3, 2};
  const TextBatch batch{ids, lengths};
  const auto pass =
      arrange_pass(batch, {}, least_shape(batch, 12, longest_text(batch)), /*is_pinned=*/false);
  EXPECT_EQ(pass.longest, 3);
  EXPECT_EQ(values(pass.ids), (std::vector<std::int32_t>{7, 8, 9, 5, 6, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(values(pass.places), (std::vector<std::int32_t>{1, 2, 3, 1, 2, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(values(pass.offsets), (std::vector<std::int32_t>{0, 3, 5, 8, 11, 12}));
}

TEST(PackedPass, WithoutPaddingThereAreOnlyTheTexts) {
  const std::vector<std::uint32_t> ids{7, 8, 9};
  const std::vector<std::uint32_t> lengths{1, 2};
  const TextBatch batch{ids, lengths};
  const auto pass =
      arrange_pass(batch, {}, least_shape(batch, 3, longest_text(batch)), /*is_pinned=*/false);
  EXPECT_EQ(values(pass.offsets), (std::vector<std::int32_t>{0, 1, 3}));
}

TEST(PackedPass, SlotsThatNoTextNeedsAreEmptyTextsAtTheEnd) {
  const std::vector<std::uint32_t> ids{7, 8, 9};
  const std::vector<std::uint32_t> lengths{1, 2};
  const PassShape shape{.row_count = 8, .text_slots = 5, .longest = 4};
  const auto pass = arrange_pass({ids, lengths}, {}, shape, /*is_pinned=*/false);
  EXPECT_EQ(pass.longest, 4);
  EXPECT_EQ(values(pass.offsets), (std::vector<std::int32_t>{0, 1, 3, 7, 8, 8}));
}

TEST(PackedPass, APaddingIdInATextTakesNoPlace) {
  const std::vector<std::uint32_t> ids{7, 1, 9};
  const std::vector<std::uint32_t> lengths{3};
  const PlaceRule rule{.skips_padding = true, .padding_id = 1};
  const auto pass = arrange_pass({ids, lengths}, rule, {3, 1, 3}, /*is_pinned=*/false);
  EXPECT_EQ(values(pass.places), (std::vector<std::int32_t>{1, 0, 2}));
}

TEST(PackedPass, TheSecondSegmentHasPlacesOfItsOwn) {
  const std::vector<std::uint32_t> ids{7, 8, 9, 5};
  const std::vector<std::uint32_t> lengths{3, 1};
  const std::vector<std::uint32_t> first_segments{2, 0};
  const PlaceRule rule{.second_segment = 100};
  const auto pass =
      arrange_pass({ids, lengths, first_segments}, rule, {4, 2, 3}, /*is_pinned=*/false);
  EXPECT_EQ(values(pass.places), (std::vector<std::int32_t>{1, 2, 103, 1}));
}

}  // namespace
}  // namespace muster::engine
