#include "chat/decoder_text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "modelfile/gguf_file.h"
#include "tokenizer/reading/gguf_tokenizer.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<TokenId>;

const std::string kTokenizers = MUSTER_SOURCE_DIR "/src/chat/testdata/tokenizers/";

Ids ids_in(const ChatValue& list) {
  Ids ids;
  for (const auto& id : *list.as_list()) ids.push_back(static_cast<TokenId>(*id.as_integer()));
  return ids;
}

TEST(GgufTokenizers, GiveTheIdsAndEndsThatLlamaCppGives) {
  // Made by tools/fixtures/gguf_tokenizers.py with llama-cpp-python 0.3.36.
  std::ifstream rows(kTokenizers + "expected.jsonl");
  ASSERT_TRUE(rows);
  std::unique_ptr<const Tokenizer> tokenizer;
  ChatValue::List texts;
  std::string pre;
  std::size_t tokenizer_count = 0;
  for (std::string line; std::getline(rows, line);) {
    const auto row = *ChatValue::parse(line);
    if (const auto* list = row.find("texts")) texts = *list->as_list();
    if (const auto* stops = row.find("stops")) {
      const auto file = GgufFile::open(kTokenizers + text_of(*row.find("file")) + ".gguf");
      ASSERT_TRUE(file) << file.error().message;
      auto tokens = *file->tokens();
      EXPECT_EQ(tokens.stop_ids, ids_in(*stops));
      pre = text_of(*row.find("pre"));
      if (tokens.model == "gpt2") tokens.pre = pre;
      tokens.adds_space_prefix = pre != "no prefix";
      auto made = make_gguf_tokenizer(tokens);
      ASSERT_TRUE(made) << made.error().message;
      tokenizer = *std::move(made);
      ++tokenizer_count;
      continue;
    }
    if (row.find("ids") == nullptr) continue;
    const auto text = text_of(texts[static_cast<std::size_t>(*row.find("text")->as_integer())]);
    Ids ids;
    tokenizer->encode(text, std::numeric_limits<std::uint32_t>::max(), *tokenizer->make_scratch(),
                      ids);
    EXPECT_EQ(ids, ids_in(*row.find("ids"))) << pre << ": " << text;
  }
  EXPECT_EQ(tokenizer_count, 19U);
}

class FolderTest : public testing::Test {
 protected:
  FolderTest()
      : folder_(fs::path(testing::TempDir()) / ("decoder_text." + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "additional_chat_templates");
    fs::copy_file(MUSTER_SOURCE_DIR "/src/tokenizer/testdata/llama3/tokenizer.json",
                  folder_ / "tokenizer.json", fs::copy_options::overwrite_existing);
  }
  ~FolderTest() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file_atomically(folder_ / name, text));
  }

  const fs::path folder_;
};

constexpr const char* kConfig =
    R"({"model_type": "llama", "vocab_size": 1500, "num_attention_heads": 2, "num_hidden_layers": 1,
        "hidden_size": 8, "intermediate_size": 8, "eos_token_id": [7, 5]})";

TEST_F(FolderTest, TemplatesTokensAndEndsComeFromTheirFiles) {
  write("config.json", kConfig);
  write("tokenizer_config.json",
        R"({"bos_token": {"content": "<|begin_of_text|>"}, "eos_token": "<|eot_id|>",
            "chat_template": "{{ bos_token }}{{ messages[0].content }}"})");
  const auto text = load_decoder_text(folder_);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(text->bos_token, "<|begin_of_text|>");
  EXPECT_EQ(text->eos_token, "<|eot_id|>");
  EXPECT_EQ(text->stop_ids, (Ids{2, 5, 7}));  // <|eot_id|> is 2
  const auto chat = text->find_template(std::nullopt, false);
  ASSERT_TRUE(chat) << chat.error().message;
  ChatInput input;
  input.messages = *ChatValue::parse(R"([{"role": "user", "content": "Hi<|eot_id|>"}])");
  input.bos_token = text->bos_token;
  const auto rendered = chat->render(input);
  ASSERT_TRUE(rendered);
  EXPECT_EQ(*rendered, "<|begin_of_text|>Hi<|eot_id|>");
  // BOS once, as the template wrote it, and special tokens found.
  const auto ids = encode_rendered(*text->tokenizer, *rendered, *text->tokenizer->make_scratch());
  ASSERT_GE(ids.size(), 3U);
  EXPECT_EQ(ids.front(), 0U);
  EXPECT_NE(ids[1], 0U);
  EXPECT_EQ(ids.back(), 2U);
}

TEST_F(FolderTest, NewerFilesGoBeforeAndNamedTemplatesAreFound) {
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "default", "template": "old"},
                              {"name": "rag", "template": "rag"}]})");
  write("chat_template.jinja", "new");
  write("additional_chat_templates/tool_use.jinja", "tools");
  const auto text = load_decoder_text(folder_);
  ASSERT_TRUE(text) << text.error().message;
  const auto rendered = [&](std::optional<std::string_view> name, bool has_tools) {
    const auto chat = text->find_template(name, has_tools);
    return chat ? *chat->render({}) : chat.error().message;
  };
  EXPECT_EQ(rendered(std::nullopt, false), "new");
  EXPECT_EQ(rendered(std::nullopt, true), "tools");
  EXPECT_EQ(rendered("rag", true), "rag");
  EXPECT_EQ(rendered("nothing", false),
            "the model has no chat template of that name: nothing (it has default, rag, tool_use)");
}

TEST_F(FolderTest, ABrokenTokenizerIsNamedWithItsFolder) {
  const auto path = (folder_ / "tokenizer.json").string();
  write("tokenizer.json", R"({"model": {"type": "WordLevel"}})");
  const auto unknown = load_decoder_text(folder_);
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(unknown.error().message.starts_with(path + ": ")) << unknown.error().message;
  fs::remove(path);
  const auto missing = load_decoder_text(folder_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::NotFound);
  const auto at = missing.error().message.find(path);
  ASSERT_NE(at, std::string::npos) << missing.error().message;
  EXPECT_EQ(missing.error().message.find(path, at + 1), std::string::npos) << "named once";
}

TEST_F(FolderTest, AModelWithoutATemplateSaysSo) {
  const auto text = load_decoder_text(folder_);
  ASSERT_TRUE(text) << text.error().message;
  const auto chat = text->find_template(std::nullopt, false);
  ASSERT_FALSE(chat);
  EXPECT_EQ(chat.error().message, "the model has no chat template");
}

TEST(DecoderText, OfAGgufFileIsItsMetadata) {
  const auto text = load_decoder_text(kTokenizers + "byte_level.gguf");
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(text->bos_token, "<|begin_of_text|>");
  EXPECT_EQ(text->eos_token, "<|end_of_text|>");
  EXPECT_FALSE(text->find_template(std::nullopt, false));
  const auto none = load_decoder_text(MUSTER_SOURCE_DIR "/src/modelfile/testdata/types.gguf");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::NotFound);
}

}  // namespace
}  // namespace muster
