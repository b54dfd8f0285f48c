#include "modelfile/dequantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "modelfile/gguf_file.h"

namespace muster {
namespace {

const GgmlType& type_of(GgmlTypeId id) { return *find_ggml_type(static_cast<std::uint32_t>(id)); }

constexpr GgmlTypeId kAll[] = {GgmlTypeId::F32,  GgmlTypeId::F16,  GgmlTypeId::BF16,
                               GgmlTypeId::Q4_0, GgmlTypeId::Q4_1, GgmlTypeId::Q5_0,
                               GgmlTypeId::Q5_1, GgmlTypeId::Q8_0, GgmlTypeId::Q4_K,
                               GgmlTypeId::Q5_K, GgmlTypeId::Q6_K};

TEST(Dequantize, EachTypeGivesTheReferencesFloatsBitForBit) {
  // Written and dequantised by gguf 0.19 for Python; see tools/fixtures/gguf_weights.py.
  const auto file = GgufFile::open(MUSTER_SOURCE_DIR "/src/modelfile/testdata/weights.gguf");
  ASSERT_TRUE(file) << file.error().message;
  for (const auto id : kAll) {
    const auto& type = type_of(id);
    SCOPED_TRACE(type.name);
    const auto* stored = file->find(type.name);
    const auto* expected = file->find(std::string(type.name) + ".expected");
    ASSERT_TRUE(stored != nullptr && expected != nullptr);
    EXPECT_EQ(stored->shape, (std::vector<std::int64_t>{2, 256}));
    std::vector<float> floats(512);
    ASSERT_TRUE(dequantize(type, stored->data, floats));
    ASSERT_EQ(expected->data.size(), floats.size() * sizeof(float));
    for (std::size_t i = 0; i < floats.size(); ++i) {
      float wanted = 0;
      std::memcpy(&wanted, expected->data.data() + i * sizeof(float), sizeof(float));
      // numpy gives 0 where ggml's own order of factors gives -0: equal, not the same bits.
      ASSERT_EQ(floats[i], wanted) << "element " << i;
    }
  }
}

TEST(Dequantize, ABlockWorkedOutByHand) {
  // Q4_1: scale 0.5 (half 0x3800), minimum -1 (half 0xBC00); quants 0x.. low first, high second.
  std::vector<std::byte> block(20, std::byte{0});
  block[1] = std::byte{0x38};
  block[3] = std::byte{0xBC};
  block[4] = std::byte{0xF2};   // elements 0 and 16: 2 and 15
  block[19] = std::byte{0x0A};  // elements 15 and 31: 10 and 0
  std::vector<float> out(32);
  ASSERT_TRUE(dequantize(type_of(GgmlTypeId::Q4_1), block, out));
  EXPECT_EQ(out[0], 0.0F);    // 2 x 0.5 - 1
  EXPECT_EQ(out[16], 6.5F);   // 15 x 0.5 - 1
  EXPECT_EQ(out[15], 4.0F);   // 10 x 0.5 - 1
  EXPECT_EQ(out[31], -1.0F);  // 0 x 0.5 - 1
}

TEST(Dequantize, HalvesAreExactFromZeroToInfinity) {
  EXPECT_EQ(half_to_float(0x0000), 0.0F);
  EXPECT_TRUE(std::signbit(half_to_float(0x8000)));
  EXPECT_EQ(half_to_float(0x0001), std::ldexp(1.0F, -24));  // the smallest subnormal
  EXPECT_EQ(half_to_float(0x83FF), -1023 * std::ldexp(1.0F, -24));
  EXPECT_EQ(half_to_float(0x0400), std::ldexp(1.0F, -14));  // the smallest normal
  EXPECT_EQ(half_to_float(0x3C00), 1.0F);
  EXPECT_EQ(half_to_float(0x7BFF), 65504.0F);
  EXPECT_EQ(half_to_float(0xFC00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(half_to_float(0x7E00)));
  EXPECT_EQ(bfloat16_to_float(0xC049), -3.140625F);
}

TEST(Dequantize, OtherTypesAndOtherSizesAreRefusedByName) {
  std::vector<float> out(256);
  const std::vector<std::byte> bytes(84);
  const auto& q2_k = *find_ggml_type(10);
  EXPECT_FALSE(can_dequantize(q2_k));
  const auto refused = dequantize(q2_k, bytes, out);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Unsupported);
  EXPECT_NE(refused.error().message.find("Q2_K"), std::string::npos);
  const auto odd = dequantize(type_of(GgmlTypeId::Q8_0), std::span(bytes).first(35), out);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().message, "35 bytes of Q8_0 are not 256 elements");
  EXPECT_FALSE(dequantize(type_of(GgmlTypeId::Q8_0), std::span(bytes).first(34), out));
  for (const auto id : kAll) EXPECT_TRUE(can_dequantize(type_of(id)));
}

}  // namespace
}  // namespace muster
