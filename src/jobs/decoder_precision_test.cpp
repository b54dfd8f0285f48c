#include "jobs/decoder_precision.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>
#include <string>

#include "coordinator/decoder_fixture.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

/// A decoder with weights and a tokenizer, and a measurement that finds bf16 twice as fast as fp32.
class DecoderPrecisionTest : public testing::Test {
 protected:
  DecoderPrecisionTest()
      : folder_(fs::path(testing::TempDir()) /
                ("decoder_precision." + std::to_string(::getpid()))) {
    const auto model = folder_ / "model";
    write_counting_decoder(model);
    const auto weights = fs::path(MUSTER_SOURCE_DIR) / "src/engine/testdata/decoders/llama";
    for (const auto* name : {"config.json", "model.safetensors"}) {
      fs::copy_file(weights / name, model / name, fs::copy_options::overwrite_existing);
    }
    question_.source = model;
    question_.device.model = "a processor";
    question_.device.cpus = {0, 1};
    question_.build = "0.1 (abc)";
    question_.cache_folder = folder_ / "cache";
  }
  ~DecoderPrecisionTest() override { fs::remove_all(folder_); }

  Result<DecoderPrecisionChoice> settle() {
    return settle_decoder_precision(
        question_,
        [this](const ProbeDecoder& probe) -> Result<DecoderVerdict> {
          ++measure_count_;
          asked_ = probe;
          if (failure_) return *failure_;
          DecoderVerdict verdict{
              {{DecoderPrecision::Fp32, 100, 0.0}, {DecoderPrecision::Bf16, 200, 0.001}}};
          if (lacks_bf16_) verdict.measures.pop_back();
          return verdict;
        },
        [this](const std::string& notice) { notices_ += notice + "\n"; });
  }

  const fs::path folder_;
  DecoderPrecisionQuestion question_;
  int measure_count_ = 0;
  ProbeDecoder asked_;
  std::optional<Error> failure_;
  bool lacks_bf16_ = false;
  std::string notices_;
};

TEST_F(DecoderPrecisionTest, IsMeasuredOnceForAModelAProcessorAndItsCores) {
  const auto measured = settle();
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->precision, DecoderPrecision::Bf16);
  EXPECT_EQ(measured->reason,
            "measured: fp32 100.0 tokens/s; bf16 200.0 tokens/s with a mean KL to fp32 of 0.00100");
  EXPECT_EQ(notices_,
            "measuring which precision is fastest here (once for this model, processor and number "
            "of cores)\n");
  const auto kept = settle();
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->precision, DecoderPrecision::Bf16);
  EXPECT_EQ(kept->reason, measured->reason);
  EXPECT_EQ(measure_count_, 1);
  question_.device.cpus = {0};
  ASSERT_TRUE(settle());
  question_.build = "0.2 (abc)";
  ASSERT_TRUE(settle());
  EXPECT_EQ(measure_count_, 3);
}

// Of 192 ids, in texts of 32: six texts of the 64 that are shipped.
TEST_F(DecoderPrecisionTest, AsksForTheBeginningsOfSixTexts) {
  ASSERT_TRUE(settle());
  EXPECT_EQ(asked_.source, fs::absolute(question_.source).string());
  EXPECT_EQ(asked_.precisions,
            (std::vector<DecoderPrecision>{DecoderPrecision::Fp32, DecoderPrecision::Bf16}));
  EXPECT_TRUE(asked_.measures_divergence);
  EXPECT_EQ(asked_.layers_most, 0U);
  EXPECT_EQ(asked_.cpus, question_.device.cpus);
  EXPECT_EQ(asked_.lengths.size(), 6U);
  for (const auto length : asked_.lengths) {
    EXPECT_GE(length, 12U);
    EXPECT_LE(length, 32U);
  }
  EXPECT_EQ(asked_.ids.size(), std::accumulate(asked_.lengths.begin(), asked_.lengths.end(), 0U));
}

TEST_F(DecoderPrecisionTest, WhereTheMeasurementFailsTheRestIsTakenAndSaidWhy) {
  failure_ = Error{ErrorKind::Unavailable, "cpu:0: the worker died"};
  const auto choice = settle();
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->precision, DecoderPrecision::Bf16);
  EXPECT_EQ(choice->reason, "not measured: cpu:0: the worker died");
  failure_ = Error{ErrorKind::Cancelled, "interrupted"};
  EXPECT_EQ(settle().error().kind, ErrorKind::Cancelled);
  failure_.reset();
  EXPECT_EQ(settle()->reason.find("measured: "), 0U) << "nothing was kept";
}

// Each start would wait for it as long.
TEST_F(DecoderPrecisionTest, OneThatTakesTooLongIsNotMeasuredAgain) {
  failure_ = Error{ErrorKind::DeadlineExceeded, "cpu:0: the worker was not done within 300 s"};
  const auto first = settle();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->reason, "not measured: cpu:0: the worker was not done within 300 s");
  failure_.reset();
  const auto second = settle();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->precision, DecoderPrecision::Bf16);
  EXPECT_EQ(second->reason, "not measured: an earlier measurement took too long");
  EXPECT_EQ(measure_count_, 1);
  question_.build = "0.2 (abc)";
  EXPECT_EQ(settle()->reason.find("measured: "), 0U) << "another build may be quicker";
}

// A worker leaves out what it has no memory for at the moment, and a model's key has no hash of all
// bytes: kept, fp32 would be the answer for ever, also of the file that replaces a damaged one.
TEST_F(DecoderPrecisionTest, AMeasurementThatLacksAPrecisionIsNotKept) {
  lacks_bf16_ = true;
  const auto first = settle();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->precision, DecoderPrecision::Fp32);
  lacks_bf16_ = false;
  const auto second = settle();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->precision, DecoderPrecision::Bf16);
  EXPECT_EQ(measure_count_, 2);
}

TEST_F(DecoderPrecisionTest, IsKnownWithoutAMeasurementOnceOneIsKept) {
  EXPECT_FALSE(known_decoder_precision(question_));
  const auto measured = settle();
  ASSERT_TRUE(measured);
  const auto known = known_decoder_precision(question_);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->precision, DecoderPrecision::Bf16);
  EXPECT_EQ(known->reason, measured->reason);
  question_.device.cpus = {0};
  EXPECT_FALSE(known_decoder_precision(question_)) << "of other cores";
  question_.device.kind = DeviceKind::Cuda;
  EXPECT_EQ(known_decoder_precision(question_)->precision, DecoderPrecision::Bf16);
}

// Its speeds are those of a device that did something else as well.
TEST_F(DecoderPrecisionTest, OneThatWasDisturbedHoldsForThisTimeAlone) {
  question_.is_disturbed = [] { return true; };
  const auto disturbed = settle();
  ASSERT_TRUE(disturbed);
  EXPECT_EQ(disturbed->precision, DecoderPrecision::Bf16);
  EXPECT_EQ(disturbed->reason,
            "measured: fp32 100.0 tokens/s; bf16 200.0 tokens/s with a mean KL to fp32 of 0.00100 "
            "(another model was loaded meanwhile: the next start measures again)");
  failure_ = Error{ErrorKind::DeadlineExceeded, "cpu:0: the worker was not done within 300 s"};
  ASSERT_TRUE(settle());
  EXPECT_FALSE(known_decoder_precision(question_)) << "nothing was kept";
  failure_.reset();
  question_.is_disturbed = [] { return false; };
  ASSERT_TRUE(settle());
  EXPECT_EQ(measure_count_, 3);
  EXPECT_TRUE(known_decoder_precision(question_));
}

TEST_F(DecoderPrecisionTest, WithoutWeightsOrOnAGpuThereIsNothingToMeasure) {
  fs::remove(question_.source / "model.safetensors");
  EXPECT_EQ(settle()->precision, DecoderPrecision::Own);
  EXPECT_EQ(settle()->reason, "");
  question_.device.kind = DeviceKind::Cuda;
  EXPECT_EQ(settle()->precision, DecoderPrecision::Bf16);
  EXPECT_EQ(measure_count_, 0);
}

}  // namespace
}  // namespace muster
