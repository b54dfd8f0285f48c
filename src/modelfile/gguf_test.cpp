#include "modelfile/gguf.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "modelfile/gguf_writer.h"

namespace muster {
namespace {

using nlohmann::json;

Result<GgufHeader> parse(const std::string& file) {
  return parse_gguf_header(std::as_bytes(std::span(file)), file.size());
}

TEST(GgufHeader, VersionsTwoAndThreeSayWhereEachTensorIs) {
  for (const std::uint32_t version : {2U, 3U}) {
    GgufWriter writer;
    writer.header(2, 2, version).key("general.architecture", "llama").key("general.alignment", 64U);
    writer.tensor("a", {32, 3}, 8, 0).tensor("b", {5}, 1, 128);
    const auto file = writer.data(138, 64);
    const auto header = parse(file);
    ASSERT_TRUE(header) << header.error().message;
    EXPECT_EQ(header->version, version);
    EXPECT_EQ(std::get<std::string>(header->metadata.at("general.architecture")), "llama");
    ASSERT_EQ(header->tensors.size(), 2U);
    EXPECT_EQ(header->tensors[0].type->name, "Q8_0");
    EXPECT_EQ(header->tensors[0].size, 3U * 34);  // three rows of one block
    EXPECT_EQ(header->tensors[1].size, 10U);
    EXPECT_EQ(header->tensors[1].begin, file.size() - 138 + 128);
  }
}

TEST(GgufHeader, ListsKeepTheirCountAndShortOnesTheirNumbers) {
  GgufWriter writer;
  writer.header(0, 3);
  writer.text("heads").number(9U).number(5U).number(std::uint64_t{3});
  for (const std::int32_t heads : {8, 0, 4}) writer.number(heads);
  writer.text("tokens").number(9U).number(8U).number(std::uint64_t{2}).text("one").text("two");
  writer.text("scores").number(9U).number(6U).number(std::uint64_t{2}).number(0.5F).number(1.5F);
  const auto header = parse(writer.bytes());
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(std::get<GgufList>(header->metadata.at("heads")).numbers,
            (std::vector<std::int64_t>{8, 0, 4}));
  EXPECT_EQ(std::get<GgufList>(header->metadata.at("tokens")).count, 2U);
  EXPECT_TRUE(std::get<GgufList>(header->metadata.at("scores")).numbers.empty());
}

// Long because it is one table of cases.
TEST(GgufHeader, WhatBreaksTheFormatIsRefusedAndNamed) {
  struct Case {
    std::string file;
    std::string message;
  };
  const auto start = [] { return GgufWriter().header(1, 0); };
  const std::uint64_t huge = 1ULL << 62U;
  const std::vector<Case> cases{
      {"GGU", "not a GGUF file: it does not begin with GGUF"},
      {"GGML....", "not a GGUF file: it does not begin with GGUF"},
      {"GGUF", "the header passes the end of the file at byte 4 of 4"},
      {GgufWriter().header(0, 0, 1).bytes(), "GGUF version 1: versions 2 and 3 are read"},
      {GgufWriter().header(0, 0, 4).bytes(), "GGUF version 4: versions 2 and 3 are read"},
      {GgufWriter().header(0, 0, 0x03000000).bytes(),
       "a big-endian GGUF file: convert it to little-endian with gguf_convert_endian.py"},
      // Counts that would be a large allocation if they were believed.
      {GgufWriter().header(huge, 0).bytes(),
       "the header passes the end of the file at byte 24 of 24"},
      {GgufWriter().header(0, huge).bytes(),
       "the header passes the end of the file at byte 24 of 24"},
      {GgufWriter().header(0, 1).number(huge).bytes(),
       "the header passes the end of the file at byte 32 of 32"},
      {GgufWriter().header(0, 1).text("k").number(9U).number(4U).number(huge).bytes(),
       "the header passes the end of the file at byte 49 of 49"},
      {GgufWriter().header(0, 1).text("k").number(9U).number(8U).number(huge).bytes(),
       "the header passes the end of the file at byte 49 of 49"},
      {GgufWriter().header(0, 1).text("k").number(13U).bytes(),
       "a metadata type that is not known: 13 of \"k\""},
      {GgufWriter().header(0, 1).text("k").number(9U).number(9U).number(std::uint64_t{1}).bytes(),
       "a list of lists: \"k\""},
      {GgufWriter().header(0, 1).text("").bytes(), "metadata key 0 has 0 bytes"},
      {GgufWriter().header(0, 2).key("k", 1U).key("k", 1U).bytes(),
       "a metadata key is there twice: \"k\""},
      {GgufWriter().header(0, 1).key("general.alignment", 24U).bytes(),
       "general.alignment is not a power of two"},
      {GgufWriter().header(0, 1).key("general.alignment", 0U).bytes(),
       "general.alignment is not a power of two"},
      {GgufWriter().header(0, 1).text("k").number(7U).number(std::uint8_t{2}).bytes(),
       "a flag is neither 0 nor 1: \"k\""},
      {start().tensor(std::string(65, 'x'), {1}, 0, 0).bytes(), "tensor name 0 has 65 bytes"},
      {start().tensor("w", {1, 1, 1, 1, 1}, 0, 0).bytes(), "more than 4 dimensions: \"w\" has 5"},
      {start().tensor("w", {1}, 4, 0).bytes(), "a tensor type that is not known: 4 of \"w\""},
      {start().tensor("w", {1}, 43, 0).bytes(), "a tensor type that is not known: 43 of \"w\""},
      {start().tensor("w", {33}, 8, 0).bytes(), "a row is no whole number of Q8_0 blocks: \"w\""},
      {start().tensor("w", {huge, 4}, 0, 0).bytes(), "a shape overflows: \"w\""},
      {start().tensor("w", {huge * 2}, 24, 0).bytes(), "a shape overflows: \"w\""},
      {start().tensor("w", {2}, 0, 0).data(7),
       "a tensor passes the end of the file: \"w\" of 8 "
       "bytes at 0 of 7"},
      {start().tensor("w", {2}, 0, huge).data(8),
       "a tensor passes the end of the file: \"w\" of 8 "
       "bytes at 4611686018427387904 of 8"},
      {start().tensor("w", {2}, 0, 4).data(12), "an offset is not a multiple of 32: \"w\" at 4"},
      {start().tensor("w", {2}, 0, 0).bytes(), "the tensors begin past the end of the file"},
      {GgufWriter().header(2, 0).tensor("a", {9}, 0, 0).tensor("b", {1}, 0, 32).data(36),
       "tensors overlap at byte 128"},
      {GgufWriter().header(2, 0).tensor("a", {1}, 0, 0).tensor("a", {1}, 0, 32).data(36),
       "a tensor is there twice: \"a\""},
  };
  for (const auto& [file, message] : cases) {
    SCOPED_TRACE(message);
    const auto header = parse(file);
    ASSERT_FALSE(header);
    EXPECT_EQ(header.error().message, message);
  }
}

// --- models ---

const std::filesystem::path kTestdata = MUSTER_SOURCE_DIR "/src/modelfile/testdata";

TEST(DescribeGguf, EveryQuantisationTypeTakesWhatTheReferenceGgufWriterWrote) {
  // Written by gguf 0.19 for Python; see tools/fixtures/decoders.py.
  const auto expected = json::parse(*read_file(kTestdata / "types.json"));
  const auto model = describe_gguf(kTestdata / "types.gguf");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->tensors.size(), expected.size());
  for (const auto& tensor : model->tensors) {
    SCOPED_TRACE(tensor.name);
    ASSERT_TRUE(expected.contains(tensor.name));
    EXPECT_EQ(tensor.dtype, expected[tensor.name]["dtype"]);
    EXPECT_EQ(tensor.bytes, expected[tensor.name]["bytes"]);
    EXPECT_EQ(tensor.is_blocked, tensor.dtype.find('Q') != std::string::npos ||
                                     tensor.dtype.ends_with("FP4"));  // ggml's names
    EXPECT_EQ(tensor.shape, expected[tensor.name]["shape"].get<std::vector<std::int64_t>>());
  }
}

TEST(DescribeGguf, EachBlockHasTheBytesOfItsParts) {
  struct Case {
    std::uint32_t id;
    std::uint64_t elements, bytes;
  };
  // Scale(s) + quants, by hand from the comments of the block structs in ggml-common.h.
  const std::vector<Case> cases{
      {2, 32, 2 + 16},               // Q4_0: half scale, 4 bits
      {3, 32, 2 + 2 + 16},           // Q4_1: half scale and minimum, 4 bits
      {8, 32, 2 + 32},               // Q8_0: half scale, 8 bits
      {9, 32, 2 + 2 + 32},           // Q8_1: two halves, 8 bits
      {10, 256, 16 + 64 + 4},        // Q2_K: 16 scales, 2 bits, two halves
      {12, 256, 4 + 12 + 128},       // Q4_K: two halves, 12 bytes of scales, 4 bits
      {14, 256, 128 + 64 + 16 + 2},  // Q6_K: 4 + 2 bits, 16 scales, half
      {15, 256, 4 + 256 + 32},       // Q8_K: float scale, 8 bits, 16 sums of 16 bits
      {29, 256, 32 + 16 + 8},        // IQ1_M
      {34, 256, 48 + 4 + 2},         // TQ1_0: 5 ternaries a byte
      {39, 32, 1 + 16},              // MXFP4: one exponent, 4 bits
      {40, 64, 4 + 32},              // NVFP4: four scales, 4 bits
      {41, 128, 2 + 16},             // Q1_0: half scale, 1 bit
      {42, 64, 2 + 16},              // Q2_0: half scale, 2 bits
  };
  for (const auto& [id, elements, bytes] : cases) {
    SCOPED_TRACE(id);
    const auto* type = find_ggml_type(id);
    ASSERT_NE(type, nullptr);
    EXPECT_EQ(type->block_elements, elements);
    EXPECT_EQ(type->block_bytes, bytes);
  }
  EXPECT_EQ(find_ggml_type(31), nullptr);
}

/// A model of two blocks with the usual keys; every tensor is one F32 row of four.
class ModelFileTest : public testing::Test {
 protected:
  ModelFileTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("gguf_model." + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~ModelFileTest() override { std::filesystem::remove_all(folder_); }

  using Keys = std::vector<std::pair<std::string, std::uint32_t>>;

  static Keys llama_keys() {
    return {{"llama.block_count", 2},
            {"llama.embedding_length", 4},
            {"llama.feed_forward_length", 16},
            {"llama.attention.head_count", 2},
            {"llama.attention.head_count_kv", 1},
            {"llama.context_length", 128}};
  }

  static std::string file_of(const std::string& architecture, const Keys& keys,
                             const std::vector<std::string>& tensors) {
    GgufWriter writer;
    writer.header(tensors.size(), keys.size() + 1).key("general.architecture", architecture);
    for (const auto& [name, value] : keys) writer.key(name, value);
    std::uint64_t offset = 0;
    for (const auto& name : tensors) {
      writer.tensor(name, {4, 1}, 0, offset);
      offset += 32;
    }
    return writer.data(offset);
  }

  Result<ModelDescription> describe(const std::string& file, const std::string& name = "m.gguf") {
    EXPECT_TRUE(write_file_atomically(folder_ / name, file));
    return describe_gguf(folder_ / name);
  }

  std::filesystem::path folder_;
  const std::vector<std::string> tensors_{"token_embd.weight", "blk.0.attn_q.weight",
                                          "blk.0.ffn_gate.weight", "blk.1.attn_q.weight",
                                          "output_norm.weight"};
};

TEST_F(ModelFileTest, TheShapeComesFromTheKeysOfTheArchitecture) {
  const auto model = describe(file_of("llama", llama_keys(), tensors_));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->shape.family, "llama");
  EXPECT_EQ(model->shape.kind, ModelKind::Decoder);
  EXPECT_EQ(model->shape.hidden_size, 4U);
  EXPECT_EQ(model->shape.vocab_size, 1U);  // rows of the table
  EXPECT_EQ(model->shape.length_max, 128U);
  ASSERT_EQ(model->shape.layers.size(), 2U);
  EXPECT_EQ(model->shape.layers[0].head_count, 2U);
  EXPECT_EQ(model->shape.layers[0].kv_head_count, 1U);
  EXPECT_EQ(model->shape.layers[0].head_size, 2U);  // 4 / 2
  EXPECT_TRUE(model->shape.layers[0].is_gated);
  EXPECT_TRUE(model->shape.has_tied_head);
  EXPECT_EQ(model->tied_bytes, 16U);
}

TEST_F(ModelFileTest, UnitsAreTheTableTheBlocksAndTheHead) {
  auto tensors = tensors_;
  tensors.push_back("output.weight");
  const auto model = describe(file_of("llama", llama_keys(), tensors));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_FALSE(model->shape.has_tied_head);
  EXPECT_EQ(model->tied_bytes, 0U);
  ASSERT_EQ(model->units.size(), 4U);
  EXPECT_EQ(model->units[1].name, "blk.0");
  EXPECT_EQ(model->units[1].modules, std::vector<std::string>{"blk.0"});
  EXPECT_EQ(model->units[1].stored_bytes, 32U);
  EXPECT_EQ(model->units[3].modules, (std::vector<std::string>{"output_norm", "output"}));
  EXPECT_EQ(model->tensors[0].shape, (std::vector<std::int64_t>{1, 4}));
}

TEST_F(ModelFileTest, LatentAttentionAndExpertsAreRead) {
  const Keys keys{{"deepseek2.block_count", 2},
                  {"deepseek2.embedding_length", 4},
                  {"deepseek2.feed_forward_length", 16},
                  {"deepseek2.attention.head_count", 8},
                  {"deepseek2.attention.head_count_kv", 1},
                  {"deepseek2.attention.kv_lora_rank", 512},
                  {"deepseek2.attention.key_length", 576},
                  {"deepseek2.attention.value_length", 512},
                  {"deepseek2.attention.key_length_mla", 192},
                  {"deepseek2.attention.value_length_mla", 128},
                  {"deepseek2.rope.dimension_count", 64},
                  {"deepseek2.leading_dense_block_count", 1},
                  {"deepseek2.expert_count", 64},
                  {"deepseek2.expert_used_count", 6},
                  {"deepseek2.expert_shared_count", 2},
                  {"deepseek2.expert_feed_forward_length", 10}};
  const auto model = describe(file_of("deepseek2", keys, tensors_));
  ASSERT_TRUE(model) << model.error().message;
  const auto& sparse = model->shape.layers[1];
  EXPECT_EQ(sparse.attention, AttentionKind::Latent);
  EXPECT_EQ(sparse.latent_size, 512U);
  EXPECT_EQ(sparse.rope_size, 64U);
  EXPECT_EQ(sparse.head_size, 192U);
  EXPECT_EQ(sparse.value_head_size, 128U);
  EXPECT_EQ(sparse.expert_count, 64U);
  EXPECT_EQ(sparse.intermediate_size, 10U);
  EXPECT_EQ(model->shape.layers[0].expert_count, 0U);
  EXPECT_EQ(model->shape.layers[0].intermediate_size, 16U);
}

TEST_F(ModelFileTest, WindowsFollowTheArchitecture) {
  auto keys = llama_keys();
  for (auto& [name, value] : keys) name.replace(0, 5, "gemma2");
  keys.push_back({"gemma2.attention.sliding_window", 4096});
  const auto model = describe(file_of("gemma2", keys, tensors_));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->shape.layers[0].window, 4096U);
  EXPECT_EQ(model->shape.layers[1].window, 0U);
}

TEST_F(ModelFileTest, MissingAndImpossibleKeysAreNamed) {
  const auto error = [&](const Keys& keys, const std::string& architecture = "llama") {
    const auto model = describe(file_of(architecture, keys, tensors_));
    EXPECT_FALSE(model);
    const auto prefix = (folder_ / "m.gguf").string() + ": ";
    const auto message = model ? std::string() : model.error().message;
    return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
  };
  auto keys = llama_keys();
  keys[0].second = 3;
  EXPECT_EQ(error(keys), "the file holds no tensor of blk.2");
  keys[0].second = 1;
  EXPECT_EQ(error(keys),
            "llama.block_count is 1, and \"blk.1.attn_q.weight\" is of a layer behind them");
  keys[0].second = 4000000000;
  EXPECT_EQ(error(keys), "llama.block_count is not an integer of 1 to 2048");
  EXPECT_EQ(error({keys.begin() + 1, keys.end()}), "llama.block_count is missing");
  EXPECT_EQ(error(llama_keys(), ""), "general.architecture is missing");
  EXPECT_EQ(error({{"mamba.ssm.state_size", 16}}, "mamba"),
            "general.architecture has layers without attention, whose state is not known: mamba");
  keys = llama_keys();
  keys[4].second = 0;
  EXPECT_EQ(error(keys),
            "general.architecture has layers without attention, whose state is not known: llama");
}

class SplitFileTest : public ModelFileTest {
 protected:
  static std::string part(std::uint32_t number, std::uint32_t count,
                          const std::vector<std::string>& tensors) {
    auto keys = number == 0 ? llama_keys() : Keys();
    keys.push_back({"split.no", number});
    keys.push_back({"split.count", count});
    keys.push_back({"split.tensors.count", 5});
    return file_of("llama", keys, tensors);
  }
  void write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(write_file_atomically(folder_ / name, content));
  }
  const std::vector<std::string> first_{tensors_.begin(), tensors_.begin() + 2};
  const std::vector<std::string> second_{tensors_.begin() + 2, tensors_.end()};
};

TEST_F(SplitFileTest, AnyFileOfASplitStandsForAllOfThem) {
  write("m-00001-of-00002.gguf", part(0, 2, first_));
  write("m-00002-of-00002.gguf", part(1, 2, second_));
  for (const auto* name : {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}) {
    const auto model = describe_gguf(folder_ / name);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->tensors.size(), 5U);
    EXPECT_EQ(model->stored_bytes(), 5U * 16);
  }
}

TEST_F(SplitFileTest, AMissingOrForeignFileOfASplitIsNamed) {
  write("m-00001-of-00002.gguf", part(0, 2, first_));
  const auto missing = describe_gguf(folder_ / "m-00001-of-00002.gguf");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::NotFound);
  EXPECT_NE(missing.error().message.find("m-00002-of-00002.gguf"), std::string::npos);

  write("m-00002-of-00002.gguf", part(0, 2, second_));
  EXPECT_NE(
      describe_gguf(folder_ / "m-00001-of-00002.gguf").error().message.find("split.no is not 1"),
      std::string::npos);
  write("m-00002-of-00002.gguf", part(1, 2, first_));
  EXPECT_NE(describe_gguf(folder_ / "m-00001-of-00002.gguf")
                .error()
                .message.find("two files of the split have one tensor: \"token_embd.weight\""),
            std::string::npos);
  write("renamed.gguf", part(0, 2, first_));
  EXPECT_NE(
      describe_gguf(folder_ / "renamed.gguf")
          .error()
          .message.find("split.count is 2, and the name does not end in -0000N-of-00002.gguf"),
      std::string::npos);
}

}  // namespace
}  // namespace muster
