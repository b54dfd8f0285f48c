#include "hub/file_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster {
namespace {

HubListing listing_of(const std::vector<std::string>& paths) {
  HubListing listing;
  for (const auto& path : paths) {
    listing.files.push_back({.path = path, .size = path.size(), .hash = std::string(40, '1')});
  }
  return listing;
}

// The paths that are chosen, by the alphabet; or the error.
std::vector<std::string> chosen(const std::vector<std::string>& paths,
                                const std::vector<std::string>& patterns = {}) {
  const auto files = choose_files("org/tiny", listing_of(paths), patterns);
  if (!files) return {files.error().message};
  std::vector<std::string> names;
  for (const auto& file : *files) names.push_back(file.path);
  std::sort(names.begin(), names.end());
  return names;
}

using Names = std::vector<std::string>;

// The files of sentence-transformers/all-MiniLM-L6-v2 on the hub.
TEST(FileChoice, OfASentenceModelIsWhatIsRead) {
  EXPECT_EQ(
      chosen({".gitattributes",
              "1_Pooling/config.json",
              "README.md",
              "config.json",
              "config_sentence_transformers.json",
              "data_config.json",
              "model.safetensors",
              "modules.json",
              "onnx/model.onnx",
              "onnx/config.json",
              "openvino/openvino_model.bin",
              "pytorch_model.bin",
              "rust_model.ot",
              "sentence_bert_config.json",
              "special_tokens_map.json",
              "tf_model.h5",
              "tokenizer.json",
              "tokenizer_config.json",
              "train_script.py",
              "vocab.txt"}),
      (Names{"1_Pooling/config.json", "config.json", "config_sentence_transformers.json",
             "model.safetensors", "modules.json", "sentence_bert_config.json",
             "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"}));
}

TEST(FileChoice, TakesTheWeightsOfADenseModule) {
  EXPECT_EQ(chosen({"model.safetensors", "2_Dense/model.safetensors", "2_Dense/pytorch_model.bin",
                    "2_Dense/config.json", "_x/config.json", "a_b/config.json"}),
            (Names{"2_Dense/config.json", "2_Dense/model.safetensors", "model.safetensors"}));
}

TEST(FileChoice, TakesAnIndexWithItsShards) {
  EXPECT_EQ(
      chosen({"config.json", "consolidated.safetensors", "model-00001-of-00002.safetensors",
              "model-00002-of-00002.safetensors", "model.safetensors.index.json",
              "original/model-00001-of-00002.safetensors", "tokenizer.model"}),
      (Names{"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
             "model.safetensors.index.json", "tokenizer.model"}));
  // What is read is the single file: model_folder.h.
  EXPECT_EQ(chosen({"model-00001-of-00001.safetensors", "model.safetensors",
                    "model.safetensors.index.json"}),
            (Names{"model.safetensors"}));
}

TEST(FileChoice, APickleIsFetchedByNameAlone) {
  const Names files{"config.json", "pytorch_model.bin", "training_args.bin"};
  EXPECT_EQ(chosen(files), (Names{"org/tiny has no safetensors, only what can run code when it is "
                                  "loaded and is fetched by name alone (--file): "
                                  "pytorch_model.bin"}));
  EXPECT_EQ(chosen(files, {"pytorch*"}), (Names{"pytorch_model.bin"}));
}

TEST(FileChoice, OfManyGgufFilesOneIsNamed) {
  const Names files{"README.md", "t-Q2.gguf", "t-Q3.gguf", "t-Q4.gguf", "t-Q8.gguf"};
  EXPECT_EQ(chosen(files), (Names{"org/tiny has no safetensors, but GGUF files: choose with "
                                  "--file: t-Q2.gguf, t-Q3.gguf, t-Q4.gguf and 1 more"}));
  EXPECT_EQ(chosen(files, {"*Q4.gguf", "README.md"}), (Names{"README.md", "t-Q4.gguf"}));
}

TEST(FileChoice, AConfigAloneCanBePlanned) {
  EXPECT_EQ(chosen({"README.md", "config.json"}), (Names{"config.json"}));
  EXPECT_EQ(chosen({"README.md"}), (Names{"org/tiny has neither a config nor weights that muster "
                                          "reads; --file names other files"}));
}

TEST(FileChoice, PatternsMatchAsTheHubsOwnProgramDoes) {
  const Names files{"a.json", "onnx/model.onnx", "onnx/q/model.onnx"};
  EXPECT_EQ(chosen(files, {"onnx/"}), (Names{"onnx/model.onnx", "onnx/q/model.onnx"}));
  EXPECT_EQ(chosen(files, {"*.onnx"}), (Names{"onnx/model.onnx", "onnx/q/model.onnx"}));
  EXPECT_EQ(chosen(files, {"a.jsn"}),
            (Names{"no file of org/tiny matches --file a.jsn; did you mean a.json?"}));
}

TEST(FileChoice, TheSmallestComeFirst) {
  const auto files = choose_files("org/tiny", listing_of({"model.safetensors", "config.json"}), {});
  ASSERT_TRUE(files);
  EXPECT_EQ(files->front().path, "config.json");
}

}  // namespace
}  // namespace muster
