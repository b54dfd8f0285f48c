#include "jobs/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace muster {
namespace {

class FakeVectors final : public VectorFile {
 public:
  FakeVectors(std::vector<float> values, std::uint32_t dim)
      : values_(std::move(values)), dim_(dim) {}

  std::uint64_t row_count() const override { return values_.size() / dim_; }
  std::uint32_t dim() const override { return dim_; }
  std::span<const float> row(std::uint64_t row) const override {
    return std::span(values_).subspan(row * dim_, dim_);
  }

 private:
  std::vector<float> values_;
  std::uint32_t dim_;
};

std::vector<std::uint64_t> rows_of(const std::vector<SearchHit>& hits) {
  std::vector<std::uint64_t> rows;
  for (const auto& hit : hits) rows.push_back(hit.row);
  return rows;
}

using RowIndices = std::vector<std::uint64_t>;

TEST(SearchVectors, OrdersByCosineNotByLength) {
  const FakeVectors vectors({0, 5, 3, 4, 0.5, 0, -7, 0}, 2);
  const auto hits = search_vectors(vectors, std::vector<float>{2, 0}, 4);
  ASSERT_TRUE(hits);
  EXPECT_EQ(rows_of(*hits), (RowIndices{2, 1, 0, 3}));
  EXPECT_EQ((*hits)[0].score, 1);
  EXPECT_DOUBLE_EQ((*hits)[1].score, 0.6);  // (3, 4) has length 5
  EXPECT_EQ((*hits)[2].score, 0);
  EXPECT_EQ((*hits)[3].score, -1);
}

TEST(SearchVectors, EqualScoresComeInTheOrderOfRows) {
  const FakeVectors vectors({1, 0, 0, 1, 2, 0, 1, 0, 4, 0}, 2);
  EXPECT_EQ(rows_of(*search_vectors(vectors, std::vector<float>{1, 0}, 3)), (RowIndices{0, 2, 3}));
}

TEST(SearchVectors, ARowWithoutDirectionNeverMatches) {
  const float infinity = std::numeric_limits<float>::infinity();
  const FakeVectors vectors({0, 0, 1, 1, infinity, 0, std::nanf(""), 1, -1, 0}, 2);
  EXPECT_EQ(rows_of(*search_vectors(vectors, std::vector<float>{1, 0}, 9)), (RowIndices{1, 4}));
}

TEST(SearchVectors, TheGreatestAndTheSmallestFloatsHaveACosine) {
  const float max = std::numeric_limits<float>::max();
  const float min = std::numeric_limits<float>::denorm_min();
  const FakeVectors vectors({max, max, min, 0}, 2);
  const auto hits = search_vectors(vectors, std::vector<float>{max, max}, 2);
  EXPECT_EQ(rows_of(*hits), (RowIndices{0, 1}));
  EXPECT_DOUBLE_EQ((*hits)[0].score, 1);
  EXPECT_DOUBLE_EQ((*hits)[1].score, std::sqrt(0.5));
}

TEST(SearchVectors, AsksForAQueryOfTheSameLengthWithADirection) {
  const FakeVectors vectors({1, 2}, 2);
  const auto other = search_vectors(vectors, std::vector<float>{1, 2, 3}, 1);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(other.error().message, "the query has 3 values and the file's vectors have 2");
  EXPECT_EQ(search_vectors(vectors, std::vector<float>{0, 0}, 1).error().kind,
            ErrorKind::InvalidArgument);
}

TEST(SearchVectors, NoHitsAreAskedForOrNoRowsAreThere) {
  EXPECT_TRUE(search_vectors(FakeVectors({1, 2}, 2), std::vector<float>{1, 0}, 0)->empty());
  EXPECT_TRUE(search_vectors(FakeVectors({}, 2), std::vector<float>{1, 0}, 5)->empty());
}

// Sorting all rows by the cosine as its definition says it, for lengths on both sides of a block of
// lanes.
TEST(SearchVectors, GivesTheHitsOfTheDefinition) {
  constexpr std::uint64_t kSeed = 20261121;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  std::normal_distribution<float> normal;
  for (const std::uint32_t dim : {1U, 15U, 16U, 17U, 384U}) {
    std::vector<float> values(200 * dim);
    std::vector<float> query(dim);
    std::generate(values.begin(), values.end(), [&] { return normal(random); });
    std::generate(query.begin(), query.end(), [&] { return normal(random); });
    const FakeVectors vectors(std::move(values), dim);
    const auto dot = [](std::span<const float> a, std::span<const float> b) {
      return std::inner_product(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                                [](double x, double y) { return x * y; });
    };
    std::vector<double> scores(200);
    RowIndices expected(200);
    std::iota(expected.begin(), expected.end(), 0);
    for (const auto row : expected) {
      const auto vector = vectors.row(row);
      const double score = dot(vector, query) / std::sqrt(dot(vector, vector) * dot(query, query));
      // In one dimension every cosine is 1 or -1 but for the last bit, and rows decide.
      scores[row] = std::round(score * 1e12);
    }
    std::stable_sort(expected.begin(), expected.end(),
                     [&](auto a, auto b) { return scores[a] > scores[b]; });
    expected.resize(10);
    EXPECT_EQ(rows_of(*search_vectors(vectors, query, 10)), expected) << dim;
  }
}

}  // namespace
}  // namespace muster
