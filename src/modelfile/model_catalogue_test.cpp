#include "modelfile/model_catalogue.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "base/file.h"

namespace muster {
namespace {

std::uint64_t parameter_count(std::string_view name) {
  const auto* known = find_in_catalogue(name);
  if (known == nullptr) return 0;
  const auto model = describe_catalogued(*known);
  EXPECT_TRUE(model) << name << ": " << model.error().message;
  std::uint64_t count = 0;
  for (const auto& tensor : model->tensors) {
    std::uint64_t values = 1;
    for (const auto size : tensor.shape) values *= static_cast<std::uint64_t>(size);
    count += values;
  }
  return count;
}

// What is published is rounded to two digits at least, and some count a buffer of positions.
TEST(ModelCatalogue, EveryModelHasThePublishedNumberOfParameters) {
  for (const auto& known : model_catalogue()) {
    const auto published = static_cast<double>(known.parameters);
    EXPECT_NEAR(static_cast<double>(parameter_count(known.id)) / published, 1.0, 0.015)
        << known.id << ": " << known.parameters_from;
  }
  EXPECT_GE(model_catalogue().size(), 20U);
}

// h = 384, 6 layers, f = 1536, 30522 words, 512 positions, 2 segments, and the pooler.
TEST(ModelCatalogue, MiniLmIsCountedByHand) {
  const std::uint64_t h = 384;
  const std::uint64_t f = 1536;
  const auto embeddings = (30'522 + 512 + 2) * h + 2 * h;
  const auto layer = 4 * (h * h + h) + 2 * h + (h * f + f) + (f * h + h) + 2 * h;
  EXPECT_EQ(parameter_count("all-MiniLM-L6-v2"), embeddings + 6 * layer + h * h + h);
  EXPECT_EQ(parameter_count("all-MiniLM-L6-v2"), 22'713'216U);
}

// h = 4096, 32 layers, 32 query and 8 KV heads of 128, f = 14336, 128256 words, an untied head.
TEST(ModelCatalogue, Llama3IsCountedByHand) {
  const std::uint64_t h = 4096;
  const auto attention = 2 * h * h + 2 * h * (8 * 128);
  const auto layer = attention + 3 * h * 14'336 + 2 * h;
  EXPECT_EQ(parameter_count("llama-3-8b"), 2 * 128'256 * h + 32 * layer + h);
  EXPECT_EQ(parameter_count("llama-3-8b"), 16'060'522'496U / 2) << "its index's total_size";
}

// As Llama, with 8 experts a layer and their router; 32000 words.
TEST(ModelCatalogue, MixtralIsCountedByHand) {
  const std::uint64_t h = 4096;
  const auto attention = 2 * h * h + 2 * h * (8 * 128);
  const auto layer = attention + 8 * 3 * h * 14'336 + 8 * h + 2 * h;
  EXPECT_EQ(parameter_count("mixtral-8x7b"), 2 * 32'000 * h + 32 * layer + h);
}

// 896 = 14 heads of 64, 2 KV heads, biases of queries, keys and values, a tied head.
TEST(ModelCatalogue, QwenIsCountedByHand) {
  const std::uint64_t h = 896;
  const std::uint64_t kv = 2 * 64;
  const auto attention = 2 * h * h + 2 * h * kv + h + 2 * kv;
  const auto layer = attention + 3 * h * 4'864 + 2 * h;
  EXPECT_EQ(parameter_count("qwen2.5-0.5b"), 151'936 * h + 24 * layer + h);
}

TEST(ModelCatalogue, AModelIsFoundByEachOfItsNamesInAnyCase) {
  for (const auto* name :
       {"meta-llama/Meta-Llama-3-8B", "Meta-Llama-3-8B", "llama-3-8b", "LLAMA-3-8B"}) {
    const auto* known = find_in_catalogue(name);
    ASSERT_NE(known, nullptr) << name;
    EXPECT_EQ(known->id, "meta-llama/Meta-Llama-3-8B") << name;
  }
  EXPECT_EQ(find_in_catalogue("llama-3"), nullptr);
}

TEST(ModelCatalogue, NoTwoModelsShareAName) {
  std::set<std::string> ids;
  for (const auto& known : model_catalogue()) {
    EXPECT_TRUE(ids.insert(known.id).second) << known.id;
    const auto short_name = known.id.substr(known.id.find('/') + 1);
    EXPECT_EQ(find_in_catalogue(short_name), &known) << short_name;
    for (const auto& name : known.names) EXPECT_EQ(find_in_catalogue(name), &known) << name;
  }
}

TEST(ModelCatalogue, TheNearestNamesComeFirst) {
  const auto nearest = nearest_in_catalogue("models/llama-9-8b", 3);
  ASSERT_FALSE(nearest.empty());
  EXPECT_EQ(nearest.front(), "llama-3-8b");
  EXPECT_EQ(std::set<std::string>(nearest.begin(), nearest.end()).size(), nearest.size());
  EXPECT_TRUE(nearest_in_catalogue("zzzzzzzzzzzzzzzz", 3).empty());
}

TEST(ModelCatalogue, ATunedModelIsNearToItsBase) {
  EXPECT_EQ(nearest_in_catalogue("Qwen/Qwen2.5-7B-Instruct", 1),
            std::vector<std::string>{"qwen2.5-7b"});
  EXPECT_EQ(nearest_in_catalogue("meta-llama/Meta-Llama-3-8B-Instruct", 1),
            std::vector<std::string>{"meta-llama-3-8b"});
}

class FindAndDescribeTest : public testing::Test {
 protected:
  FindAndDescribeTest()
      : root_(std::filesystem::path(testing::TempDir()) /
              ("model_catalogue." + std::to_string(::getpid()))) {
    std::filesystem::create_directories(root_);
    ::setenv("HF_HUB_CACHE", (root_ / "hub").c_str(), 1);
  }
  ~FindAndDescribeTest() override {
    ::unsetenv("HF_HUB_CACHE");
    std::filesystem::remove_all(root_);
  }

  // A BERT of one layer, which no model of the catalogue is.
  void write_config(const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    ASSERT_TRUE(write_file_atomically(folder / "config.json",
                                      R"({"model_type":"bert","vocab_size":8,"hidden_size":4,
          "num_hidden_layers":1,"num_attention_heads":2,"intermediate_size":8,
          "max_position_embeddings":16})"));
  }

  void write_cached(const std::string& cache_name) {
    const auto folder = root_ / "hub" / cache_name;
    write_config(folder / "snapshots" / "abc");
    std::filesystem::create_directories(folder / "refs");
    ASSERT_TRUE(write_file_atomically(folder / "refs" / "main", "abc"));
  }

  std::filesystem::path root_;
};

TEST_F(FindAndDescribeTest, WithoutFilesTheCatalogueAnswersAndSaysSo) {
  const auto found = find_and_describe("mixtral-8x7b");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->model.name, "mistralai/Mixtral-8x7B-v0.1");
  EXPECT_EQ(found->pull_id, "mistralai/Mixtral-8x7B-v0.1");
  EXPECT_EQ(found->model.origin,
            "muster's catalogue (config.json of mistralai/Mixtral-8x7B-v0.1), as its files are not "
            "here");
}

TEST_F(FindAndDescribeTest, ACachedModelWinsOverTheCatalogueByAnyOfItsNames) {
  write_cached("models--BAAI--bge-large-en-v1.5");
  for (const auto* name : {"BAAI/bge-large-en-v1.5", "bge-large-en-v1.5"}) {
    const auto found = find_and_describe(name);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->model.shape.layers.size(), 1U) << name;
    EXPECT_FALSE(found->pull_id) << name;
    EXPECT_NE(found->model.origin.find("snapshots"), std::string::npos) << found->model.origin;
  }
}

TEST_F(FindAndDescribeTest, AFolderWinsOverTheCatalogue) {
  const auto folder = root_ / "bge-small-en-v1.5";
  write_config(folder);
  const auto found = find_and_describe(folder.string());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->model.shape.layers.size(), 1U);
  EXPECT_EQ(found->model.origin, folder.string());
}

TEST_F(FindAndDescribeTest, AnUnknownNameIsAnsweredWithTheNearestAndTheWayToFetchIt) {
  const auto found = find_and_describe("llama-3-9b");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::NotFound);
  EXPECT_NE(found.error().message.find("did you mean llama-3-8b"), std::string::npos)
      << found.error().message;
  EXPECT_TRUE(found.error().message.ends_with("fetch it by muster pull ORG/NAME"))
      << found.error().message;
}

}  // namespace
}  // namespace muster
