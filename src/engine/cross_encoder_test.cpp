#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "engine/encoder.h"
#include "engine/encoder_fixture.h"

namespace muster::engine {
namespace {

std::vector<float> scores_of(const EncoderOptions& options, const TextBatch& batch) {
  const auto encoder = Encoder::load(options);
  EXPECT_TRUE(encoder) << encoder.error().message;
  if (!encoder) return {};
  std::vector<float> scores(batch.lengths.size() * (*encoder)->dim());
  const auto status = (*encoder)->encode(batch, scores);
  EXPECT_TRUE(status) << status.error().message;
  return scores;
}

class CrossEncoderTest : public testing::TestWithParam<std::string> {
 protected:
  CrossEncoderTest() { enter_lane(); }
};

TEST_P(CrossEncoderTest, TheScoresAreThoseOfTransformers) {
  const EncoderFixture fixture(GetParam());
  const auto expected = fixture.expected("scores");
  const auto scores = scores_of(fixture.options, fixture.batch());
  ASSERT_EQ(scores.size(), expected.size());
  EXPECT_LE(max_difference(scores, expected), 1e-5F);
}

TEST_P(CrossEncoderTest, APairsScoreDependsOnThePairAlone) {
  const EncoderFixture fixture(GetParam());
  const auto whole = fixture.batch();
  const auto together = scores_of(fixture.options, whole);
  const std::size_t label_count = together.size() / whole.lengths.size();
  std::size_t token = 0;
  for (std::size_t i = 0; i < whole.lengths.size(); ++i) {
    SCOPED_TRACE(i);
    const auto alone = scores_of(
        fixture.options, {whole.ids.subspan(token, whole.lengths[i]), whole.lengths.subspan(i, 1),
                          whole.first_segments.subspan(i, 1)});
    ASSERT_EQ(alone.size(), label_count);
    EXPECT_EQ(
        std::memcmp(alone.data(), together.data() + i * label_count, label_count * sizeof(float)),
        0);
    token += whole.lengths[i];
  }
}

INSTANTIATE_TEST_SUITE_P(EveryHead, CrossEncoderTest,
                         testing::Values("bert_cross", "roberta_cross", "xlm_roberta_cross",
                                         "distilbert_cross"),
                         [](const auto& family) { return family.param; });

class CrossEncoder : public testing::Test {
 protected:
  CrossEncoder() { enter_lane(); }
};

TEST_F(CrossEncoder, SegmentsCountOnlyWhereTheTokenizerTellsThem) {
  EncoderFixture fixture("bert_cross");
  const auto batch = fixture.batch();
  const auto with = scores_of(fixture.options, batch);
  const auto unstated = scores_of(fixture.options, {batch.ids, batch.lengths});
  EXPECT_GT(max_difference(with, unstated), 1e-3F);
  // 0 means what no list means: all of segment 0.
  const std::vector<std::uint32_t> zeros(batch.lengths.size());
  EXPECT_EQ(scores_of(fixture.options, {batch.ids, batch.lengths, zeros}), unstated);
  fixture.options.rerank->has_segments = false;
  EXPECT_EQ(scores_of(fixture.options, batch), unstated);
}

TEST_F(CrossEncoder, AMissingHeadIsNamed) {
  EncoderFixture fixture("bert");  // saved without pooler and classifier
  fixture.options.rerank = RerankSpec{.label_count = 1};
  const auto encoder = Encoder::load(fixture.options);
  ASSERT_FALSE(encoder);
  EXPECT_EQ(encoder.error().message, fixture.options.model_folder.string() +
                                         ": the weights have no tensor pooler.dense.weight");
}

TEST_F(CrossEncoder, SegmentsThatDoNotFitAreRefused) {
  const EncoderFixture fixture("bert_cross");
  const auto encoder = Encoder::load(fixture.options);
  ASSERT_TRUE(encoder);
  const std::vector<std::uint32_t> ids{1, 2};
  const std::vector<std::uint32_t> lengths{2};
  const std::vector<std::uint32_t> too_long{3};
  std::vector<float> scores(1);
  const auto status = (*encoder)->encode({ids, lengths, too_long}, scores);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "the segments do not fit the texts");
}

}  // namespace
}  // namespace muster::engine
