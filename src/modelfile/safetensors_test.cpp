#include "modelfile/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/file.h"

namespace muster {
namespace {

// A file: 8 bytes of header length, little-endian, the header, `data_size` bytes of data.
std::string file_of(const std::string& header, std::size_t data_size) {
  std::string file(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);  // the tests run on little-endian machines
  return file + header + std::string(data_size, '\1');
}

Result<SafetensorsHeader> parse(const std::string& file) {
  return parse_safetensors_header(std::as_bytes(std::span(file)), file.size());
}

TEST(SafetensorsHeader, SaysWhereEachTensorIs) {
  const std::string text =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[4,28]},)"
      R"("a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})";
  const auto header = parse(file_of(text, 28));
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->metadata.at("format"), "pt");
  const auto& b = header->tensors.at("b");
  EXPECT_EQ(b.type, TensorType::F32);
  EXPECT_EQ(b.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(b.begin, 8 + text.size() + 4);
  EXPECT_EQ(b.size, 24U);  // 2 x 3 x 4 bytes
}

TEST(SafetensorsHeader, EveryTypeTakesItsBits) {
  struct Case {
    std::string dtype;
    std::size_t bytes;  // of eight elements
    bool is_float;
  };
  const std::vector<Case> cases{
      {"BOOL", 8, false},        {"F4", 4, false},          {"F6_E2M3", 6, false},
      {"F6_E3M2", 6, false},     {"U8", 8, false},          {"I8", 8, false},
      {"F8_E5M2", 8, false},     {"F8_E4M3", 8, false},     {"F8_E8M0", 8, false},
      {"F8_E4M3FNUZ", 8, false}, {"F8_E5M2FNUZ", 8, false}, {"I16", 16, false},
      {"U16", 16, false},        {"F16", 16, true},         {"BF16", 16, true},
      {"I32", 32, false},        {"U32", 32, false},        {"F32", 32, true},
      {"C64", 64, false},        {"F64", 64, true},         {"I64", 64, false},
      {"U64", 64, false},
  };
  for (const auto& [dtype, bytes, is_float] : cases) {
    SCOPED_TRACE(dtype);
    const auto text = R"({"w":{"dtype":")" + dtype + R"(","shape":[2,4],"data_offsets":[0,)" +
                      std::to_string(bytes) + "]}}";
    const auto header = parse(file_of(text, bytes));
    ASSERT_TRUE(header) << header.error().message;
    EXPECT_EQ(tensor_type_name(header->tensors.at("w").type), dtype);
    EXPECT_EQ(is_plain_float(header->tensors.at("w").type), is_float);
  }
}

TEST(SafetensorsHeader, ATensorMustNotEndWithinAByte) {
  const auto header = parse(file_of(R"({"w":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2));
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().message, "shape and data_offsets disagree: \"w\"");
}

TEST(SafetensorsHeader, UnknownFieldsOfATensorArePassedOver) {
  const auto header = parse(file_of(
      R"({"w":{"note":{"a":[[1,{}],"x"]},"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1));
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->tensors.at("w").size, 1U);
}

TEST(SafetensorsHeader, AScalarAndAnEmptyTensorAreTensors) {
  const auto header = parse(file_of(
      R"({"s":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"e":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]}})",
      8));
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_TRUE(header->tensors.at("s").shape.empty());
  EXPECT_EQ(header->tensors.at("e").size, 0U);
}

// Long because it is one table of cases.
TEST(SafetensorsHeader, WhatBreaksTheFormatIsCorruptAndNamed) {
  struct Case {
    std::string file;
    std::string message;
  };
  const auto one = [](const std::string& fields, std::size_t data_size) {
    return file_of(R"({"w":{)" + fields + "}}", data_size);
  };
  const std::string huge = "\xff\xff\xff\xff\xff\xff\xff\xff{}";
  const std::vector<Case> cases{
      {"1234567", "shorter than the 8 bytes of the header length: 7"},
      {huge, "header length passes the end of the file: 18446744073709551615 of 10 bytes"},
      {file_of("{", 0), "the header is not a JSON object"},
      {file_of("[]", 0), "the header is not a JSON object"},
      {one(R"("shape":[1],"data_offsets":[0,4])", 4),
       "a tensor needs dtype, shape and data_offsets: \"w\""},
      {one(R"("dtype":"F33","shape":[1],"data_offsets":[0,4])", 4),
       "unknown dtype: \"F33\" of \"w\""},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0,8])", 4),
       "data_offsets pass the end of the file: \"w\" at 0 to 8 of 4"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])", 4),
       "data_offsets pass the end of the file: \"w\" at 4 to 0 of 4"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[-4,0])", 4),
       "data_offsets are not two integers: \"w\""},
      {one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", 4),
       "shape and data_offsets disagree: \"w\""},
      // 2^62 x 4 x 4 bytes is 2^66, which is 0 in 64 bits.
      {one(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0])", 0),
       "shape and data_offsets disagree: \"w\""},
      {one(R"("dtype":"F32","shape":[[1]],"data_offsets":[0,4])", 4),
       "shape is not a list of sizes: \"w\""},
      {one(R"("dtype":"F32","shape":4,"data_offsets":[0,4])", 4), "shape is not a list: \"w\""},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,4])", 4),
       "data_offsets are not two integers: \"w\""},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":{})", 4),
       "data_offsets are not two integers: \"w\""},
      {one(R"("dtype":5,"shape":[1],"data_offsets":[0,4])", 4),
       "a tensor needs dtype, shape and data_offsets: \"w\""},
      {one("\"note\":" + std::string(100, '['), 4), "nested deeper than 64: \"w\""},
      {file_of(R"({"w":[]})", 0), "a tensor needs dtype, shape and data_offsets: \"w\""},
      {file_of(R"({"__metadata__":"x"})", 0), "__metadata__ is not an object"},
      {file_of(
           R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
           0),
       "a tensor is there twice: \"w\""},
      {one(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])", 4),
       "shape is not a list of sizes: \"w\""},
      {one(R"("dtype":"U8","shape":[2],"data_offsets":[1,3])", 3),
       "tensors leave a hole at byte 61"},
      {one(R"("dtype":"U8","shape":[2],"data_offsets":[0,2])", 3),
       "the tensors end at byte 63, the file at 64"},
      {file_of(
           R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
           3),
       "tensors overlap at byte 115"},
      {file_of(R"({"__metadata__":{"a":1}})", 0),
       "__metadata__ holds something other than strings"},
  };
  for (const auto& [file, message] : cases) {
    SCOPED_TRACE(message);
    const auto header = parse(file);
    ASSERT_FALSE(header);
    EXPECT_EQ(header.error().kind, ErrorKind::Corrupt);
    EXPECT_EQ(header.error().message, message);
  }
}

class ModelWeightsTest : public testing::Test {
 protected:
  ModelWeightsTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("model_weights." + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~ModelWeightsTest() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(write_file_atomically(folder_ / name, content));
  }

  std::filesystem::path folder_;
};

const std::string kOneByte = R"({"%":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";

std::string shard_with(char name) {
  auto header = kOneByte;
  header[2] = name;
  return file_of(header, 1);
}

TEST_F(ModelWeightsTest, TheShardsOfAnIndexAreOneSetOfTensors) {
  write("model.safetensors.index.json",
        R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})");
  write("model-1.safetensors", shard_with('a'));
  write("model-2.safetensors", shard_with('b'));
  const auto weights = ModelWeights::open(folder_);
  ASSERT_TRUE(weights) << weights.error().message;
  ASSERT_NE(weights->find("b"), nullptr);
  EXPECT_EQ(weights->find("b")->data[0], std::byte{1});
  EXPECT_EQ(weights->find("c"), nullptr);
}

TEST_F(ModelWeightsTest, ATensorInTwoShardsIsCorrupt) {
  write("model.safetensors.index.json",
        R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  write("1.safetensors", shard_with('a'));
  write("2.safetensors", shard_with('a'));
  EXPECT_EQ(ModelWeights::open(folder_).error().message,
            (folder_ / "2.safetensors").string() + ": another shard has this tensor too: \"a\"");
}

TEST_F(ModelWeightsTest, AnIndexCannotLeadOutOfTheFolder) {
  write("model.safetensors.index.json", R"({"weight_map":{"a":"../x.safetensors"}})");
  EXPECT_EQ(ModelWeights::open(folder_).error().kind, ErrorKind::Corrupt);
}

TEST_F(ModelWeightsTest, ATruncatedFileIsCorruptAndNamed) {
  write("model.safetensors", shard_with('a').substr(0, 30));
  const auto weights = ModelWeights::open(folder_);
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(weights.error().message,
            (folder_ / "model.safetensors").string() +
                ": header length passes the end of the file: 53 of 30 bytes");
}

TEST_F(ModelWeightsTest, AFolderWithOnlyPickledWeightsSaysSo) {
  write("pytorch_model.bin", "x");
  const auto weights = ModelWeights::open(folder_);
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().kind, ErrorKind::NotFound);
  EXPECT_NE(weights.error().message.find("pytorch_model.bin"), std::string::npos);
}

}  // namespace
}  // namespace muster
