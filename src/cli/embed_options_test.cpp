// Which fields --keep names, and on which devices a precision is computed.

#include "cli/embed_options.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Names = std::vector<std::string>;

Result<Names> kept(const Names& values) {
  Arguments arguments;
  arguments.repeated["--keep"] = values;
  return kept_fields(arguments);
}

TEST(KeptFields, AListNamesSeveralEachOnce) {
  EXPECT_EQ(*kept({"lang,meta.year"}), (Names{"lang", "meta.year"}));
  EXPECT_EQ(*kept({"lang, year", "tags,lang"}), (Names{"lang", "year", "tags"}));
  EXPECT_EQ(*kept({"lang", "year"}), (Names{"lang", "year"}));
  EXPECT_EQ(*kept({}), Names{});
}

TEST(KeptFields, ABackslashKeepsACommaInAName) {
  EXPECT_EQ(*kept({R"(city\, country,year)"}), (Names{"city, country", "year"}));
  EXPECT_EQ(*kept({R"(a\b)"}), Names{R"(a\b)"});
  EXPECT_EQ(*kept({" a "}), Names{" a "}) << "a single name is taken as it is";
}

TEST(KeptFields, ANameThatIsMissingIsAnError) {
  EXPECT_EQ(kept({""}).error().message, "--keep needs the name of a field");
  for (const std::string list : {"lang,", ",lang", "lang,,year", "lang, ,year"}) {
    const auto refused = kept({list});
    ASSERT_FALSE(refused) << list;
    EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
    EXPECT_EQ(refused.error().message, "--keep has a name missing beside a comma: \"" + list +
                                           "\"; fields are named as in lang,year");
  }
  std::string many = "f0";
  for (int i = 1; i < 64; ++i) many += ",f" + std::to_string(i);
  EXPECT_EQ(kept({many})->size(), 64U);
  EXPECT_EQ(kept({many + ",f64"}).error().message, "--keep takes at most 64 fields: 65");
}

// The same as of serve: of two commands that refuse alike one ended with 2 and one with 4.
TEST(EmbedPrecision, IsRefusedWhereADeviceDoesNotComputeIt) {
  ConfigSources sources;
  sources.working_folder = "/nonexistent";
  const auto config = Config::load(sources);
  ASSERT_TRUE(config) << config.error().message;
  const auto refusal_of = [&](Precision precision, DeviceKind second) {
    EmbedOptions options;
    options.precision = precision;
    options.devices.resize(2);
    options.devices[0].kind = precision == Precision::Int8 ? DeviceKind::Cpu : DeviceKind::Cuda;
    options.devices[1].kind = second;
    options.devices[1].index = 1;
    const auto fits = check_precision(*config, options);
    if (fits) return std::string();
    EXPECT_EQ(fits.error().kind, ErrorKind::Unsupported);
    return fits.error().message;
  };
  EXPECT_EQ(refusal_of(Precision::Int8, DeviceKind::Standin),
            "precision: int8 is computed on CPUs only, and standin:1 is a GPU: use fp32, bf16 or "
            "fp16, or --devices cpu");
  EXPECT_EQ(refusal_of(Precision::Fp16, DeviceKind::Cpu),
            "precision: fp16 is computed on GPUs only, and cpu:1 is a CPU: use fp32, bf16 or "
            "int8, or GPUs alone");
  EXPECT_EQ(refusal_of(Precision::Int8, DeviceKind::Cpu), "");
  EXPECT_EQ(refusal_of(Precision::Fp16, DeviceKind::Cuda), "");
  EXPECT_EQ(refusal_of(Precision::Bf16, DeviceKind::Cpu), "");
}

}  // namespace
}  // namespace muster
