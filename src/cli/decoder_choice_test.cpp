#include "cli/decoder_choice.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

std::string refusal_of(std::optional<DecoderPrecision> named, const std::string& dtype,
                       DeviceKind kind, const std::string& drafted = "") {
  ConfigSources sources;
  sources.working_folder = "/nonexistent";
  if (!dtype.empty()) sources.flags.push_back({SettingId::KvCacheDtype, dtype, "--kv-cache-dtype"});
  if (!drafted.empty()) {
    sources.flags.push_back({SettingId::SpeculativeTokens, drafted, "--num-speculative-tokens"});
  }
  const auto config = Config::load(sources);
  EXPECT_TRUE(config) << config.error().message;
  Device device;
  device.kind = kind;
  const auto fits = check_decoder_numbers(named, *config, device);
  if (fits) return {};
  EXPECT_EQ(fits.error().kind, ErrorKind::Unsupported);
  return fits.error().message;
}

TEST(DecoderNumbers, WhatIsOfCpusIsRefusedOnAGpu) {
  EXPECT_EQ(refusal_of(DecoderPrecision::Int8, "", DeviceKind::Cuda),
            "--precision int8 is computed on CPUs only, and cuda:0 is a GPU: use bf16 or fp32, or "
            "--devices cpu");
  EXPECT_EQ(refusal_of(DecoderPrecision::Own, "", DeviceKind::Standin),
            "--precision own is computed on CPUs only, and standin:0 is a GPU: use bf16 or fp32, "
            "or --devices cpu");
  EXPECT_EQ(refusal_of(DecoderPrecision::Bf16, "int8", DeviceKind::Cuda),
            "--kv-cache-dtype: keys and values are kept in int8 on CPUs only, and cuda:0 is a GPU: "
            "use auto, or --devices cpu");
  EXPECT_EQ(refusal_of(std::nullopt, "", DeviceKind::Cuda, "4"),
            "--num-speculative-tokens: tokens are guessed ahead on CPUs only, and cuda:0 is a GPU: "
            "use 0, or --devices cpu");
  EXPECT_EQ(refusal_of(std::nullopt, "", DeviceKind::Cuda, "0"), "");
  EXPECT_EQ(refusal_of(std::nullopt, "", DeviceKind::Cpu, "4"), "");
  EXPECT_EQ(refusal_of(std::nullopt, "auto", DeviceKind::Cuda), "");
  EXPECT_EQ(refusal_of(DecoderPrecision::Fp32, "", DeviceKind::Cuda), "");
  EXPECT_EQ(refusal_of(DecoderPrecision::Int8, "int8", DeviceKind::Cpu), "");
}

}  // namespace
}  // namespace muster
