#include "jobs/decoder_trial.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "modelfile/model_description.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

using Precisions = std::vector<DecoderPrecision>;

constexpr auto kFp32 = DecoderPrecision::Fp32;
constexpr auto kBf16 = DecoderPrecision::Bf16;
constexpr auto kOwn = DecoderPrecision::Own;

// The engine's tiny Llama: two layers of 7,680 weights each, of which the matrices of a layer are
// made `times` as high. In fp32 a layer takes 30,720 x times bytes, in bf16 half of that and in
// blocks of Q4_1 20 / 128 of it.
ModelDescription model_of(std::int64_t times, const std::string& dtype) {
  auto model = *describe_model(fs::path(MUSTER_SOURCE_DIR) / "src/engine/testdata/decoders/llama");
  for (const auto& unit : model.units) {
    if (unit.kind != UnitKind::Block) continue;
    for (const auto index : unit.tensors) {
      auto& shape = model.tensors[index].shape;
      if (shape.size() == 2) shape.front() *= times;
    }
  }
  for (auto& tensor : model.tensors) tensor.dtype = dtype;
  model.decoder->naming = dtype == "F32" ? TensorNaming::HuggingFace : TensorNaming::Gguf;
  return model;
}

TEST(DecoderTrial, ComparesWhatTheModelHas) {
  const auto folder = plan_decoder_trial(model_of(1, "F32"), 1, std::nullopt);
  EXPECT_EQ(folder.precisions, (Precisions{kFp32, kBf16}));
  EXPECT_TRUE(folder.measures_divergence);
  EXPECT_EQ(folder.layers_most, 0U);
  EXPECT_EQ(plan_decoder_trial(model_of(1, "Q4_1"), 1, std::nullopt).precisions,
            (Precisions{kFp32, kBf16, kOwn}));
  EXPECT_EQ(plan_decoder_trial(model_of(1, "Q4_K"), 1, std::nullopt).precisions,
            (Precisions{kFp32, kBf16}))
      << "not multiplied in its own bits";
}

// 1.0 GB in fp32, 0.5 GB in bf16, 0.16 GB in its own bits.
TEST(DecoderTrial, LeavesOutWhatDoesNotFit) {
  const auto model = model_of(16384, "Q4_1");
  EXPECT_TRUE(plan_decoder_trial(model, 1, 1'200'000'000).measures_divergence);
  const auto two = plan_decoder_trial(model, 1, 800'000'000);
  EXPECT_EQ(two.precisions, (Precisions{kBf16, kOwn}));
  EXPECT_FALSE(two.measures_divergence);
  EXPECT_EQ(two.layers_most, 0U);
  const auto one = plan_decoder_trial(model, 1, 300'000'000);
  EXPECT_EQ(one.precisions, Precisions{kOwn});
  EXPECT_FALSE(one.is_needed());
  EXPECT_EQ(one.why_alone, "not measured: nothing else fits into the memory that is free");
  const auto none = plan_decoder_trial(model, 1, 1'000'000);
  EXPECT_EQ(none.precisions, Precisions{kOwn});
  EXPECT_EQ(none.why_alone, one.why_alone);
}

// 4.0 GB in fp32, of which the bound of 2 GiB holds one layer.
TEST(DecoderTrial, MeasuresALargeModelOverItsFirstLayers) {
  const auto trial = plan_decoder_trial(model_of(65536, "Q4_1"), 1, std::nullopt);
  EXPECT_EQ(trial.precisions, (Precisions{kBf16, kOwn}));
  EXPECT_FALSE(trial.measures_divergence);
  EXPECT_EQ(trial.layers_most, 1U);
  EXPECT_EQ(trial.layer_count, 2U);
  const auto folder = plan_decoder_trial(model_of(65536, "F32"), 1, std::nullopt);
  EXPECT_EQ(folder.precisions, Precisions{kBf16});
  EXPECT_EQ(folder.why_alone, "not measured: too large to be compared with fp32 here");
}

TEST(DecoderTrial, OfAModelThatCannotBeCountedItsOwnBitsAreTaken) {
  auto model = model_of(1, "Q4_1");
  model.decoder->family = DecoderFamily::Mixtral;
  const auto trial = plan_decoder_trial(model, 1, std::nullopt);
  EXPECT_EQ(trial.precisions, Precisions{kOwn});
  EXPECT_EQ(trial.why_alone, "not measured: what it takes in memory is not known");
}

const DecoderTrial kTrial{.precisions = {kFp32, kBf16, kOwn}, .measures_divergence = true};

DecoderVerdict verdict_of(double bf16, double bf16_divergence, double own, double own_divergence) {
  return {{{kFp32, 100, 0.0}, {kBf16, bf16, bf16_divergence}, {kOwn, own, own_divergence}}};
}

TEST(DecoderChoice, IsTheFastestThatIsCloseEnough) {
  const auto taken = [](const DecoderVerdict& verdict) {
    return choose_decoder_precision(kTrial, verdict).precision;
  };
  EXPECT_EQ(taken(verdict_of(180, 0.0001, 350, 0.002)), kOwn);
  EXPECT_EQ(taken(verdict_of(180, 0.0001, 350, 0.0101)), kBf16);
  EXPECT_EQ(taken(verdict_of(180, 0.0101, 350, 0.0101)), kFp32);
  EXPECT_EQ(taken(verdict_of(180, 0.0101, 350, 0.01)), kOwn);
  EXPECT_EQ(taken(verdict_of(180, 0.0001, 188, 0.002)), kBf16) << "4 % are noise";
  EXPECT_EQ(taken(verdict_of(104, 0.0001, 90, 0.002)), kFp32);
}

TEST(DecoderChoice, GivesItsFigures) {
  EXPECT_EQ(choose_decoder_precision(kTrial, verdict_of(180, 0.00004, 350, 0.002)).reason,
            "measured: fp32 100.0 tokens/s; bf16 180.0 tokens/s with a mean KL to fp32 of 0.00004; "
            "own 350.0 tokens/s with a mean KL to fp32 of 0.00200");
  const DecoderVerdict speeds{{{kBf16, 100, std::nullopt}, {kOwn, 286, std::nullopt}}};
  const DecoderTrial without_fp32{.precisions = {kBf16, kOwn}};
  const auto two = choose_decoder_precision(without_fp32, speeds);
  EXPECT_EQ(two.precision, kOwn);
  EXPECT_EQ(two.reason,
            "measured: bf16 100.0 tokens/s; own 286.0 tokens/s; fp32 does not fit into memory to "
            "compare with it");
  const DecoderTrial sample{.precisions = {kBf16, kOwn}, .layers_most = 3, .layer_count = 32};
  EXPECT_EQ(choose_decoder_precision(sample, speeds).reason,
            "measured over 3 of 32 layers, as it is too large to be compared with fp32: own is "
            "2.86x bf16");
  EXPECT_EQ(choose_decoder_precision(kTrial, {}).precision, kOwn);
}

class DecoderVerdictCache : public testing::Test {
 protected:
  DecoderVerdictCache()
      : folder_(fs::path(testing::TempDir()) / ("decoder_verdicts." + std::to_string(::getpid()))) {
  }
  ~DecoderVerdictCache() override { fs::remove_all(folder_); }

  DecoderVerdict kept(const DecoderVerdictKey& key) const {
    const auto read = read_cached_decoder_verdict(folder_, key);
    EXPECT_TRUE(read && *read);
    return read && *read ? **read : DecoderVerdict{};
  }

  const fs::path folder_;
  const DecoderVerdictKey key_{"hash", "AMD EPYC avx2", "0.1 (abc)", 2, kTrial};
  const DecoderVerdict verdict_ = verdict_of(180, 0.0001, 350, 0.002);
};

TEST_F(DecoderVerdictCache, GivesBackWhatWasKept) {
  EXPECT_FALSE(read_cached_decoder_verdict(folder_, key_));
  ASSERT_TRUE(write_cached_decoder_verdict(folder_, key_, verdict_));
  EXPECT_EQ(kept(key_), verdict_);
  auto sample = key_;
  sample.trial = {.precisions = {kBf16, kOwn}, .layers_most = 3, .layer_count = 32};
  const DecoderVerdict speeds{{{kBf16, 100, std::nullopt}, {kOwn, 286, std::nullopt}}};
  ASSERT_TRUE(write_cached_decoder_verdict(folder_, sample, speeds));
  EXPECT_EQ(kept(sample), speeds);
}

TEST_F(DecoderVerdictCache, ThatItTookTooLongIsKeptAsWell) {
  const Error late{ErrorKind::DeadlineExceeded, "cpu:0: the worker was not done within 300 s"};
  ASSERT_TRUE(write_cached_decoder_verdict(folder_, key_, late));
  const auto read = read_cached_decoder_verdict(folder_, key_);
  ASSERT_TRUE(read);
  ASSERT_FALSE(*read);
  EXPECT_EQ(read->error().kind, ErrorKind::DeadlineExceeded);
  ASSERT_TRUE(write_cached_decoder_verdict(folder_, key_, verdict_));
  EXPECT_EQ(kept(key_), verdict_);
}

TEST_F(DecoderVerdictCache, AnotherModelProcessorBuildOrTrialIsAnotherVerdict) {
  ASSERT_TRUE(write_cached_decoder_verdict(folder_, key_, verdict_));
  for (auto member :
       {&DecoderVerdictKey::model_hash, &DecoderVerdictKey::processor, &DecoderVerdictKey::build}) {
    auto other = key_;
    other.*member += "x";
    EXPECT_FALSE(read_cached_decoder_verdict(folder_, other));
  }
  auto threads = key_;
  threads.threads = 1;
  EXPECT_FALSE(read_cached_decoder_verdict(folder_, threads));
  auto trial = key_;
  trial.trial.layers_most = 1;
  EXPECT_FALSE(read_cached_decoder_verdict(folder_, trial));
}

TEST_F(DecoderVerdictCache, ABrokenFileCountsAsNone) {
  ASSERT_TRUE(write_cached_decoder_verdict(folder_, key_, verdict_));
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    if (!entry.is_regular_file()) continue;
    for (const char* content :
         {"", "{", "[]", R"({"measures": []})", R"({"took_too_long": 1})",
          R"({"measures": [{"precision": "bf16"}]})",
          R"({"measures": [{"precision": 3, "tokens_per_second": 1, "divergence": 0}]})",
          R"({"measures": [{"precision": "fp32", "tokens_per_second": 1}]})",
          R"({"measures": [{"precision": "fp32", "tokens_per_second": -1, "divergence": 0}]})",
          R"({"measures": [{"precision": "own", "tokens_per_second": 1, "divergence": 0}]})",
          R"({"measures": [{"precision": "fp32", "tokens_per_second": 1, "divergence": 0}]})",
          R"({"measures": [{"precision": "fp32", "tokens_per_second": 1, "divergence": 0},)"
          R"({"precision": "bf16", "tokens_per_second": 2, "divergence": 0},)"
          R"({"precision": "int8", "tokens_per_second": 9, "divergence": 0}]})"}) {
      SCOPED_TRACE(content);
      ASSERT_TRUE(write_file_atomically(entry.path(), content));
      EXPECT_FALSE(read_cached_decoder_verdict(folder_, key_));
    }
    fs::remove(entry.path());
    ASSERT_EQ(::mkfifo(entry.path().c_str(), 0600), 0);
    EXPECT_FALSE(read_cached_decoder_verdict(folder_, key_)) << "nobody waits for its writer";
  }
}

}  // namespace
}  // namespace muster
