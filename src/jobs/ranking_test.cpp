#include "jobs/ranking.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>

#include "jobs/vectors_fixture.h"

namespace muster {
namespace {

Result<std::vector<SearchHit>> search_vectors(const VectorFile& vectors, std::vector<float> query,
                                              const RankOptions& options,
                                              std::shared_ptr<const RowFilter> filter = nullptr) {
  auto ranking =
      MUSTER_TRY(Ranking::begin(vectors, {std::move(query)}, options, std::move(filter)));
  for (bool is_over = false; !is_over;) is_over = MUSTER_TRY(ranking.step());
  return ranking.take().front();
}

Result<std::vector<SearchHit>> search_vectors(const VectorFile& vectors, std::vector<float> query,
                                              std::size_t count) {
  return search_vectors(vectors, std::move(query), RankOptions{.count = count});
}

std::vector<std::uint64_t> rows_of(const std::vector<SearchHit>& hits) {
  std::vector<std::uint64_t> rows;
  for (const auto& hit : hits) rows.push_back(hit.row);
  return rows;
}

using RowIndices = std::vector<std::uint64_t>;

TEST(Ranking, OrdersByCosineNotByLength) {
  const FakeVectors vectors({0, 5, 3, 4, 0.5, 0, -7, 0}, 2);
  const auto hits = search_vectors(vectors, std::vector<float>{2, 0}, 4);
  ASSERT_TRUE(hits);
  EXPECT_EQ(rows_of(*hits), (RowIndices{2, 1, 0, 3}));
  EXPECT_EQ((*hits)[0].score, 1);
  EXPECT_DOUBLE_EQ((*hits)[1].score, 0.6);  // (3, 4) has length 5
  EXPECT_EQ((*hits)[2].score, 0);
  EXPECT_EQ((*hits)[3].score, -1);
}

TEST(Ranking, EqualScoresComeInTheOrderOfRows) {
  const FakeVectors vectors({1, 0, 0, 1, 2, 0, 1, 0, 4, 0}, 2);
  EXPECT_EQ(rows_of(*search_vectors(vectors, std::vector<float>{1, 0}, 3)), (RowIndices{0, 2, 3}));
}

TEST(Ranking, ARowWithoutDirectionNeverMatches) {
  const float infinity = std::numeric_limits<float>::infinity();
  const FakeVectors vectors({0, 0, 1, 1, infinity, 0, std::nanf(""), 1, -1, 0}, 2);
  EXPECT_EQ(rows_of(*search_vectors(vectors, std::vector<float>{1, 0}, 9)), (RowIndices{1, 4}));
}

TEST(Ranking, TheGreatestAndTheSmallestFloatsHaveACosine) {
  const float max = std::numeric_limits<float>::max();
  const float min = std::numeric_limits<float>::denorm_min();
  const FakeVectors vectors({max, max, min, 0}, 2);
  const auto hits = search_vectors(vectors, std::vector<float>{max, max}, 2);
  EXPECT_EQ(rows_of(*hits), (RowIndices{0, 1}));
  EXPECT_DOUBLE_EQ((*hits)[0].score, 1);
  EXPECT_DOUBLE_EQ((*hits)[1].score, std::sqrt(0.5));
}

TEST(Ranking, AsksForAQueryOfTheSameLengthWithADirection) {
  const FakeVectors vectors({1, 2}, 2);
  const auto other = search_vectors(vectors, std::vector<float>{1, 2, 3}, 1);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(other.error().message, "the query has 3 values and the file's vectors have 2");
  EXPECT_EQ(search_vectors(vectors, std::vector<float>{0, 0}, 1).error().kind,
            ErrorKind::InvalidArgument);
}

TEST(Ranking, NoHitsAreAskedForOrNoRowsAreThere) {
  EXPECT_TRUE(search_vectors(FakeVectors({1, 2}, 2), std::vector<float>{1, 0}, 0)->empty());
  EXPECT_TRUE(search_vectors(FakeVectors({}, 2), std::vector<float>{1, 0}, 5)->empty());
}

// Sorting all rows by the cosine as its definition says it, for lengths on both sides of a block of
// lanes.
TEST(Ranking, GivesTheHitsOfTheDefinition) {
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

// In steps over thousands of rows; each row is read once for all of the queries.
TEST(Ranking, ManyQueriesHaveTheHitsThatEachHasAlone) {
  constexpr std::uint64_t kSeed = 20261124;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  std::normal_distribution<float> normal;
  constexpr std::uint32_t kDim = 64;
  std::vector<float> values(3300 * kDim);
  std::generate(values.begin(), values.end(), [&] { return normal(random); });
  const FakeVectors vectors(std::move(values), kDim);
  std::vector<std::vector<float>> queries(40, std::vector<float>(kDim));
  for (auto& query : queries) {
    std::generate(query.begin(), query.end(), [&] { return normal(random); });
  }
  auto ranking = *Ranking::begin(vectors, queries, {.count = 4});
  int step_count = 1;
  while (!*ranking.step()) ++step_count;
  EXPECT_GT(step_count, 4) << "a step is a millisecond's work";
  const auto hits = ranking.take();
  ASSERT_EQ(hits.size(), 40U);
  for (std::size_t i = 0; i < hits.size(); ++i) {
    const auto alone = *search_vectors(vectors, queries[i], 4);
    ASSERT_EQ(rows_of(hits[i]), rows_of(alone));
    for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(hits[i][k].score, alone[k].score);
  }
}

TEST(Ranking, HitsBelowTheLeastScoreAreNone) {
  const FakeVectors vectors({3, 4, 1, 0, 0, 1}, 2);  // cosines 0.6, 1, 0
  const auto hits = [&](double least) {
    return rows_of(*search_vectors(vectors, {1, 0}, RankOptions{.count = 3, .score_least = least}));
  };
  EXPECT_EQ(hits(0.6), (RowIndices{1, 0}));
  EXPECT_EQ(hits(0.601), (RowIndices{1}));
  EXPECT_EQ(hits(-1), (RowIndices{1, 0, 2}));
}

TEST(Ranking, AFilterIsAppliedBeforeHitsAreCounted) {
  const FakeVectors vectors({1, 0, 4, 1, 2, 1, 1, 1}, 2);  // ever further from (1, 0)
  FieldTable table;
  for (const auto* lang : {"de", "en", "de", "en"}) {
    table.add_row();
    ASSERT_TRUE(table.set("lang", {{lang, {}}}));
  }
  const auto filter = *FieldFilter::parse("lang=en", table.names());
  EXPECT_EQ(rows_of(*search_vectors(vectors, {1, 0}, RankOptions{.count = 2},
                                    std::make_shared<RowFilter>(filter, table))),
            (RowIndices{1, 3}));
}

// Rows 0 and 1 are the same direction, at cosine 0.8 from the query; row 2 is at 0.6 on the other
// side of it, at right angles to both: 0.8 x 0.6 - 0.6 x 0.8 = 0. Picked by lambda 0.5: row 0
// first; then row 1 has 0.5 x 0.8 - 0.5 x 1 = -0.1 and row 2 has 0.5 x 0.6 - 0.5 x 0 = 0.3.
TEST(Ranking, MarginalRelevancePicksWhatIsNotYetThere) {
  const FakeVectors vectors({0.8F, 0.6F, 1.6F, 1.2F, 0.6F, -0.8F}, 2);
  const auto picked = [&](double lambda, std::size_t count, std::size_t candidates) {
    return rows_of(
        *search_vectors(vectors, {1, 0},
                        {.count = count, .mmr_lambda = lambda, .mmr_candidate_count = candidates}));
  };
  EXPECT_EQ(picked(0.5, 2, 3), (RowIndices{0, 2}));
  EXPECT_EQ(picked(0.5, 3, 3), (RowIndices{0, 2, 1}));
  EXPECT_EQ(picked(1, 2, 3), (RowIndices{0, 1})) << "by cosine alone";
  EXPECT_EQ(picked(0, 2, 3), (RowIndices{0, 2}));
  EXPECT_EQ(picked(0.5, 2, 2), (RowIndices{0, 1})) << "row 2 is no candidate";
  EXPECT_EQ(picked(0.5, 3, 1), (RowIndices{0, 2, 1})) << "as many candidates as hits, at least";
}

/// A file of 4,096 rows (1, row, 0, 0), 16 pages of them, that another program cuts at its first
/// page.
class RankingOfAFile : public testing::Test {
 protected:
  RankingOfAFile()
      : path_(std::filesystem::path(testing::TempDir()) /
              ("ranking." + std::to_string(::getpid()) + ".npy")) {
    // Source: NEP 1; 118 bytes behind the first ten.
    std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (4096, 4), }";
    head.resize(117, ' ');
    std::vector<float> values;
    for (int i = 0; i < 4096; ++i) values.insert(values.end(), {1, static_cast<float>(i), 0, 0});
    std::ofstream(path_) << std::string_view("\x93NUMPY\x01\x00\x76\x00", 10) << head << '\n'
                         << std::string_view(reinterpret_cast<const char*>(values.data()),
                                             values.size() * sizeof(float));
    vectors_ = *VectorFile::open(path_);
  }
  ~RankingOfAFile() override { std::filesystem::remove(path_); }

  void cut() const {
    std::filesystem::resize_file(path_, static_cast<std::uintmax_t>(::sysconf(_SC_PAGESIZE)));
  }

  void expect_cut(const Error& error) const {
    EXPECT_EQ(error.kind, ErrorKind::Corrupt);
    EXPECT_EQ(error.message,
              path_.string() + ": another program has cut it shorter while it was read");
  }

  const std::filesystem::path path_;
  std::unique_ptr<VectorFile> vectors_;
};

TEST_F(RankingOfAFile, AFileThatIsCutMeanwhileIsAnError) {
  EXPECT_EQ(rows_of(*search_vectors(*vectors_, {0, 1, 0, 0}, 1)), RowIndices{4095});
  cut();
  const auto found = search_vectors(*vectors_, {0, 1, 0, 0}, 1);
  ASSERT_FALSE(found);
  expect_cut(found.error());
}

TEST_F(RankingOfAFile, AFileThatIsCutBeforeHitsArePickedIsAnError) {
  auto ranking = *Ranking::begin(*vectors_, {{0, 1, 0, 0}},
                                 {.count = 2, .mmr_lambda = 0.5, .mmr_candidate_count = 9});
  // All rows are one step's work.
  const auto looked_at = ranking.step();
  ASSERT_TRUE(looked_at);
  ASSERT_FALSE(*looked_at);
  cut();
  const auto picked = ranking.step();
  ASSERT_FALSE(picked);
  expect_cut(picked.error());
}

}  // namespace
}  // namespace muster
