#include "engine/decoder/step_layout.h"

#include <gtest/gtest.h>

#include "spec/gpu_decoder_memory.h"

namespace muster::engine {
namespace {

std::vector<std::int32_t> list_of(const StepLayout& layout, StepLayout::List list) {
  const auto begin = layout.numbers().begin() + list.begin;
  return {begin, begin + list.size};
}

// The slots of keys that the sequences of a group see.
std::vector<std::int32_t> seen_of(const StepLayout& layout, const StepLayout::Group& group) {
  auto slots = list_of(layout, group.key_slots);
  slots.resize(static_cast<std::size_t>(list_of(layout, group.key_offsets).back()));
  return slots;
}

// What a plan counts for all lists that travel: without rotation, and the slots of rows once.
std::uint64_t planned_bytes(const GpuStep& step) {
  DecoderSpec spec;
  spec.rope.style = RopeStyle::None;
  return gpu_list_bytes(spec, step) - 8 * step.rows;
}

// A prompt's second chunk across the border of its blocks, beside a reply that takes one token.
TEST(StepLayoutTest, SequencesStandOneBehindTheOtherAndPaddingBehindThem) {
  const std::vector<std::uint32_t> chunk{7, 8, 9};
  const std::vector<std::uint32_t> chunk_blocks{5, 2};
  const std::vector<std::uint32_t> next{4};
  const std::vector<std::uint32_t> next_blocks{3};
  const StepSequence sequences[] = {
      {.tokens = chunk, .position = 14, .blocks = chunk_blocks, .logit_count = 2},
      {.tokens = next, .position = 1, .blocks = next_blocks, .logit_count = 1}};
  const StepLayout layout(sequences, {.tokens = 6, .logits = 4}, /*spare_slot=*/160,
                          /*keys_most=*/100);
  using Numbers = std::vector<std::int32_t>;
  EXPECT_EQ(list_of(layout, layout.ids()), (Numbers{7, 8, 9, 4, 0, 0}));
  EXPECT_EQ(list_of(layout, layout.positions()), (Numbers{14, 15, 16, 1, 0, 0}));
  // Block 5 begins at slot 80, block 2 at 32, block 3 at 48.
  EXPECT_EQ(list_of(layout, layout.slots()), (Numbers{94, 95, 32, 49, 160, 160}));
  EXPECT_EQ(list_of(layout, layout.logit_rows()), (Numbers{1, 2, 3, 0}));
  ASSERT_EQ(layout.groups().size(), 1U);
  const auto& group = layout.groups().front();
  EXPECT_EQ(group.first_row, 0);
  EXPECT_EQ(group.row_count, 6);
  EXPECT_EQ(list_of(layout, group.query_offsets), (Numbers{0, 3, 4, 5, 6}));
  EXPECT_EQ(list_of(layout, group.key_offsets), (Numbers{0, 17, 19, 20, 21}));
  Numbers slots{80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95, 32, 48, 49};
  slots.resize(32, 160);  // two of the padding, and the rest of 32, as there are few sizes
  EXPECT_EQ(list_of(layout, group.key_slots), slots);
  EXPECT_EQ(group.longest_query, 3);
  EXPECT_EQ(group.longest_key, 17);
  // Of 34 keys of sequences and 6 of padding: 4 x (18 + 4 + 2 x 9 + 40 + 5 + 16 x 3).
  const auto planned = planned_bytes({.rows = 6, .logit_rows = 4, .sequences = 2, .length = 17});
  EXPECT_EQ(planned, 532U);
  EXPECT_LE(4 * layout.numbers().size(), planned);
}

// The first has more keys than a group by itself; the next two fit together, and the padding with
// them until it is full.
TEST(StepLayoutTest, KeysAreGatheredInGroupsOfWholeSequences) {
  const std::vector<std::uint32_t> tokens{1, 2};
  const std::vector<std::uint32_t> blocks{4};
  const auto sequence = [&](std::uint32_t position, std::size_t count) {
    return StepSequence{.tokens = std::span(tokens).first(count),
                        .position = position,
                        .blocks = blocks,
                        .logit_count = 0};
  };
  const StepSequence sequences[] = {sequence(5, 1), sequence(0, 2), sequence(1, 1)};
  const StepLayout layout(sequences, {.tokens = 6, .logits = 0}, /*spare_slot=*/160,
                          /*keys_most=*/5);
  using Numbers = std::vector<std::int32_t>;
  ASSERT_EQ(layout.groups().size(), 3U);
  const auto& alone = layout.groups()[0];
  EXPECT_EQ(alone.row_count, 1);
  EXPECT_EQ(seen_of(layout, alone), (Numbers{64, 65, 66, 67, 68, 69}));
  EXPECT_EQ(alone.longest_key, 6);
  const auto& together = layout.groups()[1];
  EXPECT_EQ(together.first_row, 1);
  EXPECT_EQ(together.row_count, 4);
  EXPECT_EQ(list_of(layout, together.query_offsets), (Numbers{0, 2, 3, 4}));
  EXPECT_EQ(list_of(layout, together.key_offsets), (Numbers{0, 2, 4, 5}));
  EXPECT_EQ(seen_of(layout, together), (Numbers{64, 65, 64, 65, 160}));
  EXPECT_EQ(together.longest_query, 2);
  EXPECT_EQ(together.longest_key, 2);
  const auto& last = layout.groups()[2];
  EXPECT_EQ(last.first_row, 5);
  EXPECT_EQ(list_of(layout, last.query_offsets), (Numbers{0, 1}));
  EXPECT_EQ(seen_of(layout, last), (Numbers{160}));
  EXPECT_LE(4 * layout.numbers().size(),
            planned_bytes({.rows = 6, .logit_rows = 0, .sequences = 3, .length = 6}));
}

// 129 keys are gathered as 144, and so are 144; the rest is the spare slot.
TEST(StepLayoutTest, WhatIsGatheredHasFewSizes) {
  const std::vector<std::uint32_t> tokens{1};
  const std::vector<std::uint32_t> blocks(10, 0);
  const auto slots_at = [&](std::uint32_t position) {
    const StepSequence sequence{
        .tokens = tokens, .position = position, .blocks = blocks, .logit_count = 0};
    const StepLayout layout({&sequence, 1}, {.tokens = 1, .logits = 0}, 160, 1000);
    return list_of(layout, layout.groups().front().key_slots);
  };
  EXPECT_EQ(slots_at(0).size(), 16U);
  EXPECT_EQ(slots_at(127).size(), 128U);
  const auto slots = slots_at(128);
  ASSERT_EQ(slots.size(), 144U);
  EXPECT_EQ(slots[128], 0);
  EXPECT_EQ(std::vector<std::int32_t>(slots.begin() + 129, slots.end()),
            std::vector<std::int32_t>(15, 160));
  EXPECT_EQ(slots_at(143).size(), 144U);
  EXPECT_EQ(slots_at(144).size(), 160U);
}

TEST(StepLayoutTest, WithoutWantedLogitsThereIsNoRowOfThem) {
  const std::vector<std::uint32_t> tokens{1};
  const std::vector<std::uint32_t> blocks{0};
  const StepSequence sequence{.tokens = tokens, .position = 0, .blocks = blocks, .logit_count = 0};
  const StepLayout layout({&sequence, 1}, {.tokens = 1, .logits = 0}, 16, 100);
  EXPECT_EQ(layout.logit_rows().size, 0);
  EXPECT_EQ(list_of(layout, layout.groups().front().query_offsets),
            (std::vector<std::int32_t>{0, 1}));
}

}  // namespace
}  // namespace muster::engine
