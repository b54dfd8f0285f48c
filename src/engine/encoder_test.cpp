#include "engine/encoder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "engine/encoder_fixture.h"

namespace muster::engine {
namespace {

std::unique_ptr<Encoder> load(const EncoderOptions& options) {
  auto encoder = Encoder::load(options);
  EXPECT_TRUE(encoder) << encoder.error().message;
  return encoder ? *std::move(encoder) : nullptr;
}

std::vector<float> encode(const Encoder& encoder, const TextBatch& batch) {
  std::vector<float> rows(batch.lengths.size() * encoder.dim());
  const auto status = encoder.encode(batch, rows);
  EXPECT_TRUE(status) << status.error().message;
  return rows;
}

class LaneTest : public testing::Test {
 protected:
  LaneTest() { enter_lane(); }
};

class EncoderFamilyTest : public testing::TestWithParam<std::string> {
 protected:
  EncoderFamilyTest() { enter_lane(); }
};

TEST_P(EncoderFamilyTest, TheLastHiddenStateIsThatOfTransformers) {
  const EncoderFixture fixture(GetParam());
  const auto encoder = load(fixture.options);
  ASSERT_NE(encoder, nullptr);
  std::vector<float> hidden(fixture.batch().ids.size() * encoder->dim());
  ASSERT_TRUE(encoder->last_hidden_state(fixture.batch(), hidden));
  const auto difference = max_difference(hidden, fixture.expected("hidden"));
  RecordProperty("max_difference", std::to_string(difference * 1e6F) + "e-6");
  EXPECT_LE(difference, 1e-5F);
}

TEST_P(EncoderFamilyTest, EveryPoolingIsThatOfSentenceTransformers) {
  EncoderFixture fixture(GetParam());
  const std::vector<std::pair<Pooling, std::string>> cases{{Pooling::Cls, "cls"},
                                                           {Pooling::Mean, "mean"},
                                                           {Pooling::Max, "max"},
                                                           {Pooling::Last, "lasttoken"}};
  for (const auto& [pooling, name] : cases) {
    SCOPED_TRACE(name);
    fixture.options.pooling = pooling;
    const auto rows = encode(*load(fixture.options), fixture.batch());
    EXPECT_LE(max_difference(rows, fixture.expected(name)), 1e-5F);
  }
  fixture.options.pooling = Pooling::Mean;
  fixture.options.normalize = true;
  const auto rows = encode(*load(fixture.options), fixture.batch());
  EXPECT_LE(max_difference(rows, fixture.expected("normalized")), 1e-5F);
}

INSTANTIATE_TEST_SUITE_P(EveryFamily, EncoderFamilyTest,
                         testing::Values("bert", "bert_odd", "roberta", "xlm_roberta", "distilbert",
                                         "mpnet"),
                         [](const auto& family) { return family.param; });

struct Cosines {
  double least = 1;
  double mean = 0;
};

Cosines cosines(const std::vector<float>& a, const std::vector<float>& b, std::size_t dim) {
  Cosines result;
  const std::size_t count = a.size() / dim;
  for (std::size_t row = 0; row < count; ++row) {
    double dot = 0;
    double aa = 0;
    double bb = 0;
    for (std::size_t c = row * dim; c < (row + 1) * dim; ++c) {
      dot += static_cast<double>(a[c]) * b[c];
      aa += static_cast<double>(a[c]) * a[c];
      bb += static_cast<double>(b[c]) * b[c];
    }
    const double cosine = dot / std::sqrt(aa * bb);
    result.least = std::min(result.least, cosine);
    result.mean += cosine / static_cast<double>(count);
  }
  return result;
}

TEST_F(LaneTest, TheRealMiniLmIsThatOfSentenceTransformers) {
  if (minilm_folder().empty()) GTEST_SKIP() << "no all-MiniLM-L6-v2 (set MUSTER_MINILM)";
  EncoderFixture fixture("minilm");
  fixture.options.normalize = true;
  const auto expected = fixture.expected("normalized");
  const auto rows = encode(*load(fixture.options), fixture.batch());
  EXPECT_LE(max_difference(rows, expected), 1e-5F);
  EXPECT_GE(cosines(rows, expected, 384).least, 0.999999);
}

TEST_F(LaneTest, Bf16StaysNearFp32) {
  if (minilm_folder().empty()) GTEST_SKIP() << "no all-MiniLM-L6-v2 (set MUSTER_MINILM)";
  EncoderFixture fixture("minilm");
  fixture.options.precision = Precision::Bf16;
  auto encoder = Encoder::load(fixture.options);
  if (!encoder && encoder.error().kind == ErrorKind::Unsupported) {
    GTEST_SKIP() << encoder.error().message;
  }
  ASSERT_TRUE(encoder) << encoder.error().message;
  const auto rows = encode(**encoder, fixture.batch());
  const auto near = cosines(rows, fixture.expected("normalized"), 384);
  EXPECT_GE(near.least, 0.999);
  EXPECT_GE(near.mean, 0.9995);
}

TEST_P(EncoderFamilyTest, Int8StaysNearFp32) {
  EncoderFixture fixture(GetParam());
  fixture.options.normalize = true;
  fixture.options.precision = Precision::Int8;
  const auto encoder = load(fixture.options);
  ASSERT_NE(encoder, nullptr);
  const auto rows = encode(*encoder, fixture.batch());
  const auto expected = fixture.expected("normalized");
  const auto near = cosines(rows, expected, encoder->dim());
  EXPECT_GE(near.mean, 0.995);
  EXPECT_GE(near.least, 0.99);
  EXPECT_GT(max_difference(rows, expected), 1e-5F) << "these are vectors of fp32";
}

TEST_F(LaneTest, Int8OfTheRealMiniLmStaysNearFp32) {
  if (minilm_folder().empty()) GTEST_SKIP() << "no all-MiniLM-L6-v2 (set MUSTER_MINILM)";
  EncoderFixture fixture("minilm");
  fixture.options.precision = Precision::Int8;
  const auto encoder = load(fixture.options);
  ASSERT_NE(encoder, nullptr);
  const auto rows = encode(*encoder, fixture.batch());
  EXPECT_GE(cosines(rows, fixture.expected("normalized"), 384).mean, 0.995);
}

// Texts of many lengths, for the tests of equality.
struct RandomTexts {
  std::vector<std::vector<std::uint32_t>> texts;

  RandomTexts(std::size_t count, const EncoderSpec& encoder, std::uint32_t length_max) {
    std::mt19937 generator(12);
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::uint32_t> text(1 + generator() % length_max);
      for (auto& id : text) id = static_cast<std::uint32_t>(generator() % encoder.vocab_size);
      texts.push_back(std::move(text));
    }
  }

  // The vectors of the texts in `order`, at most `batch_size` per call, put back in text order.
  std::vector<float> encode_in(const Encoder& encoder, const std::vector<std::size_t>& order,
                               std::size_t batch_size) const {
    const std::size_t dim = encoder.dim();
    std::vector<float> rows(texts.size() * dim);
    for (std::size_t begin = 0; begin < order.size(); begin += batch_size) {
      std::vector<std::uint32_t> ids;
      std::vector<std::uint32_t> lengths;
      const auto end = std::min(begin + batch_size, order.size());
      for (std::size_t i = begin; i < end; ++i) {
        const auto& text = texts[order[i]];
        ids.insert(ids.end(), text.begin(), text.end());
        lengths.push_back(static_cast<std::uint32_t>(text.size()));
      }
      const auto part = encode(encoder, {ids, lengths});
      for (std::size_t i = begin; i < end; ++i) {
        std::copy_n(part.begin() + static_cast<std::ptrdiff_t>((i - begin) * dim), dim,
                    rows.begin() + static_cast<std::ptrdiff_t>(order[i] * dim));
      }
    }
    return rows;
  }
};

class EqualityTest : public testing::TestWithParam<std::tuple<std::string, Precision>> {
 protected:
  EqualityTest() { enter_lane(); }
};

TEST_P(EqualityTest, AVectorDependsOnItsTextAlone) {
  const auto& [name, precision] = GetParam();
  if (name == "minilm" && minilm_folder().empty()) {
    GTEST_SKIP() << "no all-MiniLM-L6-v2 (set MUSTER_MINILM)";
  }
  EncoderFixture fixture(name);
  fixture.options.precision = precision;
  const auto loaded = Encoder::load(fixture.options);
  if (!loaded && loaded.error().kind == ErrorKind::Unsupported) {
    GTEST_SKIP() << loaded.error().message;
  }
  ASSERT_TRUE(loaded) << loaded.error().message;
  const Encoder& encoder = **loaded;

  const RandomTexts random(60, fixture.options.encoder,
                           std::min(120U, fixture.options.encoder.length_max()));
  std::vector<std::size_t> order(random.texts.size());
  std::iota(order.begin(), order.end(), 0);
  const auto whole = random.encode_in(encoder, order, order.size());
  const auto is_equal = [&](const std::vector<float>& other) {
    return std::memcmp(whole.data(), other.data(), whole.size() * sizeof(float)) == 0;
  };

  EXPECT_TRUE(is_equal(random.encode_in(encoder, order, 1))) << "one at a time";
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  for (const std::size_t batch_size : {60U, 7U, 2U}) {
    EXPECT_TRUE(is_equal(random.encode_in(encoder, order, batch_size))) << batch_size;
  }

  std::vector<std::vector<float>> by_lane(2);
  std::vector<std::thread> lanes;
  for (auto& rows : by_lane) {
    lanes.emplace_back([&] {
      enter_lane();
      rows = random.encode_in(encoder, order, 11);
    });
  }
  for (auto& lane : lanes) lane.join();
  for (const auto& rows : by_lane) EXPECT_TRUE(is_equal(rows)) << "two lanes";

  const auto again = load(fixture.options);
  EXPECT_TRUE(is_equal(random.encode_in(*again, order, 60))) << "loaded again";
}

INSTANTIATE_TEST_SUITE_P(Models, EqualityTest,
                         testing::Combine(testing::Values("minilm", "bert", "bert_odd", "mpnet"),
                                          testing::Values(Precision::Fp32, Precision::Bf16,
                                                          Precision::Int8)),
                         [](const auto& model) {
                           return std::get<0>(model.param) + "_" +
                                  std::string(precision_name(std::get<1>(model.param)));
                         });

TEST_F(LaneTest, AWrongBatchIsRefusedBeforeTorchSeesIt) {
  const EncoderFixture fixture("bert");  // vocabulary 61, 40 positions
  const auto encoder = load(fixture.options);
  std::vector<float> rows(encoder->dim());
  const auto message_of = [&](std::vector<std::uint32_t> ids, std::vector<std::uint32_t> lengths) {
    const auto status = encoder->encode({ids, lengths}, rows);
    if (status) return std::string("no error");
    EXPECT_EQ(status.error().kind, ErrorKind::InvalidArgument);
    return status.error().message;
  };
  EXPECT_EQ(message_of({1, 61}, {2}), "a token id is not in the vocabulary of 61: 61");
  EXPECT_EQ(message_of({}, {0}), "a text must have 1 to 40 tokens: 0");
  EXPECT_EQ(message_of(std::vector<std::uint32_t>(41), {41}),
            "a text must have 1 to 40 tokens: 41");
  EXPECT_EQ(message_of({1, 2, 3}, {2}), "lengths and ids disagree: 2 and 3 tokens");
  EXPECT_EQ(message_of({1, 2}, {1, 1}), "the rows need 2 x 64 floats: 64");
}

TEST_F(LaneTest, AnEmptyBatchIsNoWork) {
  const EncoderFixture fixture("bert");
  EXPECT_TRUE(load(fixture.options)->encode({}, {}));
}

TEST_F(LaneTest, AMissingOrMisshapenTensorIsNamed) {
  EncoderFixture fixture("bert");
  fixture.options.encoder.layer_count = 3;  // the file has two
  auto encoder = Encoder::load(fixture.options);
  ASSERT_FALSE(encoder);
  EXPECT_EQ(encoder.error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(encoder.error().message,
            fixture.options.model_folder.string() +
                ": the weights have no tensor encoder.layer.2.attention.self.query.weight");

  fixture.options.encoder.layer_count = 2;
  fixture.options.encoder.intermediate_size = 97;
  encoder = Encoder::load(fixture.options);
  ASSERT_FALSE(encoder);
  EXPECT_EQ(encoder.error().message,
            fixture.options.model_folder.string() +
                ": tensor encoder.layer.0.intermediate.dense.weight has the wrong shape: [96, 64] "
                "instead of [97, 64]");
}

TEST_F(LaneTest, WhatThisMachineCannotDoIsUnsupported) {
  EncoderFixture fixture("bert");
  fixture.options.precision = Precision::Fp16;
  const bool has_bf16 = precisions_to_try(DeviceKind::Cpu).size() > 1;
  EXPECT_EQ(Encoder::load(fixture.options).error().message,
            std::string("this machine does not compute fp16 on cpu, but fp32, ") +
                (has_bf16 ? "bf16, " : "") + "int8");
  fixture.options.precision = Precision::Fp32;
  fixture.options.device = DeviceKind::Mps;
  EXPECT_EQ(Encoder::load(fixture.options).error().kind, ErrorKind::Unsupported);
}

// Said before the GPU is looked for.
TEST_F(LaneTest, AGpuDoesNotComputeInInt8) {
  EncoderFixture fixture("bert");
  fixture.options.precision = Precision::Int8;
  for (const auto device : {DeviceKind::Cuda, DeviceKind::Standin}) {
    fixture.options.device = device;
    const auto encoder = Encoder::load(fixture.options);
    ASSERT_FALSE(encoder);
    EXPECT_EQ(encoder.error().kind, ErrorKind::Unsupported);
    EXPECT_EQ(encoder.error().message,
              "encoders are computed in int8 on CPUs only: on a GPU use fp32, bf16 or fp16");
  }
}

TEST(PrecisionsToTry, AreNeverInt8) {
  for (const auto device : {DeviceKind::Cpu, DeviceKind::Cuda, DeviceKind::Standin}) {
    const auto tried = precisions_to_try(device);
    EXPECT_EQ(std::count(tried.begin(), tried.end(), Precision::Int8), 0);
  }
}

TEST(EngineClass, NamesTheDeviceTheKernelsAndTheTorch) {
  EXPECT_EQ(torch_version().substr(0, 5), "2.11.");
  const auto name = engine_class(DeviceKind::Cpu);
  EXPECT_EQ(name.substr(0, 4), "cpu/");
  EXPECT_NE(name.find("torch-" + torch_version()), std::string::npos);
  EXPECT_EQ(precisions_to_try(DeviceKind::Cpu).front(), Precision::Fp32);
}

}  // namespace
}  // namespace muster::engine
