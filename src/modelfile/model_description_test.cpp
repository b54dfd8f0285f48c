#include "modelfile/model_description.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "base/file.h"

namespace muster {
namespace {

using nlohmann::json;

// What transformers makes of each family; see tools/fixtures/decoders.py.
const json& families() {
  static const auto cases = [] {
    const auto text = read_file(MUSTER_SOURCE_DIR "/src/modelfile/testdata/families.json");
    return text ? json::parse(*text) : json();
  }();
  return cases;
}

const json& family_case(const std::string& name) {
  for (const auto& each : families()) {
    if (each["name"] == name) return each;
  }
  ADD_FAILURE() << "no case " << name;
  return families().front();
}

std::uint64_t element_bytes(const std::string& dtype) { return dtype == "F32" ? 4 : 2; }

WeightTensor tensor_of(const json& row) {
  WeightTensor tensor{row[0], row[1], row[2].get<std::vector<std::int64_t>>(), 0, true};
  tensor.bytes = element_bytes(tensor.dtype);
  for (const auto extent : tensor.shape) tensor.bytes *= static_cast<std::uint64_t>(extent);
  return tensor;
}

using Row = std::tuple<std::string, std::string, std::vector<std::int64_t>, std::uint64_t,
                       std::string>;  // name, dtype, shape, bytes, unit

std::vector<Row> expected_rows(const json& list) {
  std::vector<Row> rows;
  for (const auto& row : list) {
    const auto tensor = tensor_of(row);
    rows.emplace_back(tensor.name, tensor.dtype, tensor.shape, tensor.bytes, row[3]);
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<Row> rows_of(const ModelDescription& model) {
  std::vector<Row> rows;
  for (const auto& unit : model.units) {
    const auto name = unit.kind == UnitKind::Embedding ? std::string("embedding")
                      : unit.kind == UnitKind::Head    ? std::string("head")
                                                       : unit.name;
    for (const auto index : unit.tensors) {
      const auto& tensor = model.tensors[index];
      rows.emplace_back(tensor.name, tensor.dtype, tensor.shape, tensor.bytes, name);
    }
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

// Each tensor in one unit, each unit's bytes the sum of its tensors', the blocks in order.
void expect_whole_chain(const ModelDescription& model) {
  std::size_t placed = 0;
  std::uint32_t layer = 0;
  ASSERT_FALSE(model.units.empty());
  EXPECT_EQ(model.units.front().kind, UnitKind::Embedding);
  for (const auto& unit : model.units) {
    std::uint64_t bytes = 0;
    for (const auto index : unit.tensors) bytes += model.tensors[index].bytes;
    EXPECT_EQ(unit.stored_bytes, bytes) << unit.name;
    placed += unit.tensors.size();
    if (unit.kind == UnitKind::Block) {
      EXPECT_EQ(unit.layer, layer++);
    }
  }
  EXPECT_EQ(layer, model.shape.layers.size());
  EXPECT_EQ(placed, model.tensors.size());
}

TEST(ModelDescription, AConfigAloneGivesTheTensorsThatTransformersCreates) {
  ASSERT_GE(families().size(), 40U);
  for (const auto& each : families()) {
    SCOPED_TRACE(each["name"].get<std::string>());
    const auto model = describe_config(each["config"].dump());
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->weight_source, WeightSource::Config);
    EXPECT_EQ(rows_of(*model), expected_rows(each["tensors"]));
    expect_whole_chain(*model);
    std::vector<std::string> blocks;
    for (const auto& unit : model->units) {
      if (unit.kind == UnitKind::Block) blocks.push_back(unit.name);
    }
    EXPECT_EQ(blocks, each["blocks"].get<std::vector<std::string>>());
  }
}

TEST(ModelDescription, TheTensorsOfAFileAreGroupedWithTheModuleThatLoadsThem) {
  for (const auto& each : families()) {
    SCOPED_TRACE(each["name"].get<std::string>());
    const auto& list = each.contains("files") ? each["files"] : each["tensors"];
    std::vector<WeightTensor> tensors;
    for (const auto& row : list) tensors.push_back(tensor_of(row));
    const auto model = describe_tensors(each["config"].dump(), tensors);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->weight_source, WeightSource::Headers);
    EXPECT_EQ(rows_of(*model), expected_rows(list));
    expect_whole_chain(*model);
    // Fused or split, tied or not: as many bytes as in memory.
    const auto created = describe_config(each["config"].dump());
    EXPECT_EQ(model->stored_bytes(), created->stored_bytes());
    for (std::size_t i = 0; i < model->units.size(); ++i) {
      EXPECT_EQ(model->units[i].name, created->units[i].name);
      EXPECT_EQ(model->units[i].modules, created->units[i].modules);
    }
  }
}

ModelDescription described(const std::string& name) {
  auto model = describe_config(family_case(name)["config"].dump());
  EXPECT_TRUE(model) << model.error().message;
  return *std::move(model);
}

TEST(ModelDescription, UnitsNameTheModulesOfADeviceMap) {
  using Names = std::vector<std::string>;
  const auto llama = described("llama");
  ASSERT_EQ(llama.units.size(), 4U);
  EXPECT_EQ(llama.units[0].modules, (Names{"model.embed_tokens", "model.rotary_emb"}));
  EXPECT_EQ(llama.units[1].modules, Names{"model.layers.0"});
  EXPECT_EQ(llama.units[3].name, "lm_head");
  EXPECT_EQ(llama.units[3].modules, (Names{"model.norm", "lm_head"}));

  const auto gpt2 = described("gpt2");
  EXPECT_EQ(gpt2.units.front().modules, (Names{"transformer.wte", "transformer.wpe"}));
  EXPECT_EQ(gpt2.units.back().modules, (Names{"transformer.ln_f", "lm_head"}));

  const auto t5 = described("t5");
  EXPECT_EQ(t5.units.front().modules,
            (Names{"shared", "encoder.embed_tokens", "decoder.embed_tokens"}));
  EXPECT_EQ(t5.units[2].modules, (Names{"encoder.block.1", "encoder.final_layer_norm"}));
  EXPECT_EQ(t5.units[3].name, "decoder.block.0");
  EXPECT_EQ(t5.units.back().modules, (Names{"decoder.final_layer_norm", "lm_head"}));

  EXPECT_EQ(described("bert").units.back().modules, Names{"pooler"});
  EXPECT_EQ(described("bert_masked").units.front().modules, Names{"bert.embeddings"});
  EXPECT_EQ(described("distilbert").units.back().kind, UnitKind::Block);  // nothing after it
  EXPECT_EQ(described("gemma3").units.front().modules,
            (Names{"model.vision_tower", "model.multi_modal_projector",
                   "model.language_model.embed_tokens", "model.language_model.rotary_emb"}));
}

TEST(ModelDescription, ATiedHeadCostsATableOnAnotherDevice) {
  const auto tied = described("llama_tied");
  EXPECT_TRUE(tied.shape.has_tied_head);
  EXPECT_EQ(tied.tied_bytes, 37U * 24 * 4);
  EXPECT_EQ(tied.units.back().stored_bytes, 24U * 4);  // the last norm
  const auto untied = described("llama");
  EXPECT_FALSE(untied.shape.has_tied_head);
  EXPECT_EQ(untied.tied_bytes, 0U);
  // OPT's table is narrower than its hidden state; T5's is shared by name.
  EXPECT_EQ(described("opt_narrow").tied_bytes, 37U * 16 * 4);
  EXPECT_EQ(described("t5").tied_bytes, 37U * 24 * 4);
}

TEST(ModelDescription, AHeadInTheFilesIsNotTiedWhateverTheConfigSays) {
  const auto& each = family_case("llama_tied");
  std::vector<WeightTensor> tensors;
  for (const auto& row : each["tensors"]) tensors.push_back(tensor_of(row));
  EXPECT_TRUE(describe_tensors(each["config"].dump(), tensors)->shape.has_tied_head);
  tensors.push_back({"lm_head.weight", "F32", {37, 24}, 37 * 24 * 4, true});
  const auto model = describe_tensors(each["config"].dump(), tensors);
  ASSERT_TRUE(model);
  EXPECT_FALSE(model->shape.has_tied_head);
  EXPECT_EQ(model->tied_bytes, 0U);
  EXPECT_EQ(model->units.back().stored_bytes, (24U + 37 * 24) * 4);
}

TEST(ModelDescription, FilesWithoutTheBasePrefixAreTheSameModel) {
  // The published GPT-2 names h.0..., its class transformer.h.0...
  const auto& each = family_case("gpt2");
  std::vector<WeightTensor> tensors;
  for (const auto& row : each["tensors"]) {
    tensors.push_back(tensor_of(row));
    tensors.back().name = tensors.back().name.substr(std::string("transformer.").size());
  }
  tensors.push_back({"h.1.attn.bias", "U8", {1, 1, 40, 40}, 1600, false});  // a stored mask
  const auto model = describe_tensors(each["config"].dump(), tensors);
  ASSERT_TRUE(model) << model.error().message;
  const auto expected = described("gpt2");
  for (std::size_t i = 0; i < expected.units.size(); ++i) {
    EXPECT_EQ(model->units[i].name, expected.units[i].name);
    EXPECT_EQ(model->units[i].stored_bytes,
              expected.units[i].stored_bytes + (expected.units[i].layer == 1 ? 1600 : 0));
  }
}

TEST(ModelDescription, AnEmbeddingModelIsItsBaseModelAlone) {
  // As sentence-transformers saves a decoder: the class with a head, the names without its prefix.
  const auto& each = family_case("llama");
  std::vector<WeightTensor> tensors;
  for (const auto& row : each["tensors"]) {
    if (row[0] == "lm_head.weight") continue;
    tensors.push_back(tensor_of(row));
    tensors.back().name = tensors.back().name.substr(std::string("model.").size());
  }
  const auto model = describe_tensors(each["config"].dump(), tensors);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_FALSE(model->shape.has_head);
  EXPECT_EQ(model->units.back().name, "model.norm");
  EXPECT_EQ(model->stored_bytes(), described("llama").stored_bytes() - 37 * 24 * 4);
}

TEST(ModelDescription, QuantisedWeightsCountAsStoredWithTheirModule) {
  // GPTQ of a linear layer: packed weights, zero points, scales, groups.
  const auto& each = family_case("llama");
  std::vector<WeightTensor> tensors;
  for (const auto& row : each["tensors"]) {
    if (row[0] != "model.layers.1.mlp.down_proj.weight") tensors.push_back(tensor_of(row));
  }
  const std::string base = "model.layers.1.mlp.down_proj.";
  tensors.push_back({base + "qweight", "I32", {5, 24}, 480, false});
  tensors.push_back({base + "qzeros", "I32", {1, 3}, 12, false});
  tensors.push_back({base + "scales", "F16", {1, 24}, 48, true});
  tensors.push_back({base + "g_idx", "I32", {40}, 160, false});
  auto config = each["config"];
  config["quantization_config"] = {{"quant_method", "gptq"}};
  const auto model = describe_tensors(config.dump(), tensors);
  ASSERT_TRUE(model) << model.error().message;
  const auto plain = described("llama");
  EXPECT_EQ(model->units[2].stored_bytes,
            plain.units[2].stored_bytes - 24 * 40 * 4 + 480 + 12 + 48 + 160);
  EXPECT_EQ(model->units[1].stored_bytes, plain.units[1].stored_bytes);
}

TEST(ModelDescription, LayersBeyondTheConfigsGoWithTheHead) {
  // DeepSeek-V3 stores the layer of its multi-token prediction after the last.
  const auto& each = family_case("deepseek_v3");
  std::vector<WeightTensor> tensors;
  for (const auto& row : each["tensors"]) tensors.push_back(tensor_of(row));
  tensors.push_back({"model.layers.3.enorm.weight", "BF16", {24}, 48, true});
  const auto model = describe_tensors(each["config"].dump(), tensors);
  ASSERT_TRUE(model) << model.error().message;
  const auto& modules = model->units.back().modules;
  EXPECT_NE(std::find(modules.begin(), modules.end(), "model.layers.3"), modules.end());
  EXPECT_EQ(model->units.back().stored_bytes,
            described("deepseek_v3").units.back().stored_bytes + 48);
}

TEST(ModelDescription, FilesOfAnotherModelAreCorruptAndNamed) {
  const auto& each = family_case("llama");
  const auto without = [&](const std::string& start) {
    std::vector<WeightTensor> tensors;
    for (const auto& row : each["tensors"]) {
      if (!row[0].get<std::string>().starts_with(start)) tensors.push_back(tensor_of(row));
    }
    const auto model = describe_tensors(each["config"].dump(), tensors);
    EXPECT_FALSE(model);
    return model ? Error{ErrorKind::Internal, ""} : model.error();
  };
  EXPECT_EQ(without("model.layers.1.").message,
            "config.json: the weight files hold no tensor of model.layers.1");
  EXPECT_EQ(without("model.embed").message,
            "config.json: the weight files hold no tensor of model.embed_tokens");
  EXPECT_EQ(without("lm_head").message,
            "config.json: the weight files hold no tensor of lm_head, and tie_word_embeddings is "
            "false");
  EXPECT_EQ(without("lm_head").kind, ErrorKind::Corrupt);
}

// --- files ---

const std::filesystem::path kTestdata = MUSTER_SOURCE_DIR "/src/modelfile/testdata";

class DescribeModelTest : public testing::Test {
 protected:
  DescribeModelTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("describe_model." + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~DescribeModelTest() override { std::filesystem::remove_all(folder_); }

  void copy(const std::string& model) {
    for (const auto& entry : std::filesystem::directory_iterator(kTestdata / model)) {
      std::filesystem::copy(entry.path(), folder_ / entry.path().filename());
    }
  }
  void write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(write_file_atomically(folder_ / name, content));
  }
  Error error() const {
    const auto model = describe_model(folder_);
    EXPECT_FALSE(model);
    return model ? Error{ErrorKind::Internal, ""} : model.error();
  }

  std::filesystem::path folder_;
};

TEST_F(DescribeModelTest, AShardedModelIsReadWhole) {
  const auto model = describe_model(kTestdata / "llama_sharded");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->weight_source, WeightSource::Headers);
  EXPECT_EQ(model->name, "llama_sharded");
  EXPECT_EQ(model->tensors.size(), family_case("llama")["tensors"].size());
  // bfloat16: half of what the same model takes in float32.
  EXPECT_EQ(model->stored_bytes(), described("llama").stored_bytes() / 2);
  EXPECT_FALSE(model->shape.has_tied_head);
  EXPECT_EQ(model->shape.dtype, "bfloat16");
}

TEST_F(DescribeModelTest, ATiedModelHasNoHeadInItsFile) {
  const auto model = describe_model(kTestdata / "llama_tied");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_TRUE(model->shape.has_tied_head);
  EXPECT_EQ(model->tied_bytes, 37U * 24 * 2);
}

TEST_F(DescribeModelTest, WithoutWeightsTheConfigDescribesTheModel) {
  copy("llama_sharded");
  const auto stored = describe_model(folder_);
  ASSERT_TRUE(stored);
  for (const auto* name : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                           "model.safetensors.index.json"}) {
    std::filesystem::remove(folder_ / name);
  }
  const auto computed = describe_model(folder_);
  ASSERT_TRUE(computed) << computed.error().message;
  EXPECT_EQ(computed->weight_source, WeightSource::Config);
  EXPECT_EQ(computed->stored_bytes(), stored->stored_bytes());

  const auto bare = describe_model(folder_ / "config.json");
  ASSERT_TRUE(bare) << bare.error().message;
  EXPECT_EQ(bare->stored_bytes(), stored->stored_bytes());
}

TEST_F(DescribeModelTest, AMissingShardIsNamed) {
  copy("llama_sharded");
  std::filesystem::remove(folder_ / "model-00002-of-00002.safetensors");
  EXPECT_EQ(error().kind, ErrorKind::NotFound);
  EXPECT_NE(error().message.find("model-00002-of-00002.safetensors"), std::string::npos);
}

TEST_F(DescribeModelTest, ShardsWithoutTheirIndexAreNotTakenForNoWeights) {
  copy("llama_sharded");
  std::filesystem::remove(folder_ / "model.safetensors.index.json");
  EXPECT_EQ(error().kind, ErrorKind::NotFound);
  EXPECT_NE(error().message.find("model.safetensors.index.json"), std::string::npos);
}

TEST_F(DescribeModelTest, ATensorThatTheIndexNamesAndNoShardHasIsNamed) {
  copy("llama_sharded");
  write("model.safetensors.index.json",
        R"({"weight_map":{"model.norm.weight":"model-00001-of-00002.safetensors",)"
        R"("model.extra":"model-00002-of-00002.safetensors"}})");
  EXPECT_EQ(error().kind, ErrorKind::Corrupt);
  EXPECT_NE(error().message.find(R"("model.extra" is not in "model-00002-of-00002.safetensors")"),
            std::string::npos);
}

TEST_F(DescribeModelTest, PyTorchArchivesAreRefusedWithTheWayOut) {
  copy("llama_tied");
  std::filesystem::remove(folder_ / "model.safetensors");
  write("training_args.bin", "x");  // no weights: the config still describes the model
  EXPECT_TRUE(describe_model(folder_));
  for (const auto* name : {"pytorch_model.bin", "consolidated.00.pth", "model.ckpt"}) {
    write(name, "x");
    EXPECT_EQ(error().message,
              folder_.string() + ": no model.safetensors, and " + name +
                  " is not read because loading it can run code: convert it to safetensors");
    const auto source = find_model_source((folder_ / name).string());
    ASSERT_FALSE(source);
    EXPECT_EQ(source.error().kind, ErrorKind::Unsupported);
    EXPECT_NE(source.error().message.find("convert the model to safetensors"), std::string::npos);
    std::filesystem::remove(folder_ / name);
  }
}

TEST_F(DescribeModelTest, AFolderWithoutConfigPointsAtItsGguf) {
  write("tiny.gguf", "GGUF");
  EXPECT_EQ(error().kind, ErrorKind::NotFound);
  EXPECT_NE(error().message.find("name the GGUF file itself: " + (folder_ / "tiny.gguf").string()),
            std::string::npos);
}

TEST_F(DescribeModelTest, ASourceIsAFolderAGgufFileOrAConfig) {
  copy("llama_tied");
  write("tiny.gguf", "GGUF");
  write("notes.txt", "x");
  EXPECT_EQ(*find_model_source(folder_.string()), folder_);
  EXPECT_EQ(*find_model_source((folder_ / "tiny.gguf").string()), folder_ / "tiny.gguf");
  EXPECT_EQ(*find_model_source((folder_ / "config.json").string()), folder_ / "config.json");
  for (const auto* name : {"model.safetensors", "notes.txt"}) {
    EXPECT_EQ(find_model_source((folder_ / name).string()).error().kind,
              ErrorKind::InvalidArgument);
  }
  EXPECT_EQ(find_model_source((folder_ / "none").string()).error().kind, ErrorKind::NotFound);
}

}  // namespace
}  // namespace muster
