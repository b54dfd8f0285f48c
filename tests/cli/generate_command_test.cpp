// muster generate on the real program, with a stand-in for the engine that counts.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "run_muster.h"

namespace muster {
namespace {

// The stand-in's next token is the last one plus one: behind "az" ("a", "##z") come "0", "##0", "1"
// and "##1" of the vocabulary.
TEST(GenerateCommand, TakesItsPromptFromStandardInput) {
  Muster muster("generate_command");
  const auto model = muster.folder() / "model";
  std::filesystem::create_directory(model);
  std::filesystem::copy(tiny_model() + "/tokenizer.json", model);
  muster.write("model/config.json",
               R"({"model_type":"llama","vocab_size":80,"num_attention_heads":4,)"
               R"("num_hidden_layers":2,"hidden_size":32,"intermediate_size":40,)"
               R"("max_position_embeddings":64})");
  muster.write("model/tokenizer_config.json",
               R"({"chat_template":"{% for m in messages %}{{ m.content }}{% endfor %}"})");
  muster.write("prompt", "the\naz\n");
  const auto generate = [&](const std::string& prompt, const std::string& input) {
    return muster.run({"generate", model.string(), "-p", prompt, "--max-tokens", "4", "--json",
                       "--devices", "cpu:0", "--torch-root", "torch", "--worker-program",
                       MUSTER_BINARY_DIR "/bin/counting_worker"},
                      input);
  };
  const auto read = generate("-", "prompt");
  ASSERT_EQ(read.exit_code, 0) << read.err;
  const auto json = nlohmann::json::parse(read.out);
  EXPECT_EQ(json["text"], "00 11");
  EXPECT_EQ(json["prompt_tokens"], 3) << "both lines";
  EXPECT_EQ(json["completion_tokens"], 4);
  const auto given = generate("the az", "/dev/null");
  ASSERT_EQ(given.exit_code, 0) << given.err;
  EXPECT_EQ(nlohmann::json::parse(given.out)["text"], "00 11");
}

}  // namespace
}  // namespace muster
