#include "modelfile/decoder_hash.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <set>

namespace muster {
namespace {

namespace fs = std::filesystem;

class DecoderHashTest : public testing::Test {
 protected:
  DecoderHashTest()
      : folder_(fs::path(testing::TempDir()) / ("decoder_hash." + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "additional_chat_templates");
  }
  ~DecoderHashTest() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name) << content;
  }

  std::string hash(const std::string& name = "") const {
    const auto hash = decoder_hash(name.empty() ? folder_ : folder_ / name);
    EXPECT_TRUE(hash) << hash.error().message;
    return hash ? *hash : "";
  }

  const fs::path folder_;
};

TEST_F(DecoderHashTest, AFileIsItsContentUnderWhateverName) {
  write("a.gguf", "GGUF and more");
  write("b.gguf", "GGUF and more");
  write("c.gguf", "GGUF and mere");
  EXPECT_EQ(hash("a.gguf"), hash("b.gguf"));
  EXPECT_NE(hash("a.gguf"), hash("c.gguf"));
  EXPECT_EQ(decoder_hash(folder_ / "none.gguf").error().kind, ErrorKind::NotFound);
}

TEST_F(DecoderHashTest, OfAFolderEveryFileCountsThatCanChangeAReply) {
  write("config.json", "{}");
  std::set<std::string> seen{hash()};
  for (const char* name : {"generation_config.json", "tokenizer.json", "tokenizer_config.json",
                           "chat_template.json", "chat_template.jinja", "special_tokens_map.json",
                           "additional_chat_templates/rag.jinja", "model.safetensors"}) {
    write(name, "x");
    EXPECT_TRUE(seen.insert(hash()).second) << name;
    write(name, "y");
    EXPECT_TRUE(seen.insert(hash()).second) << name;
  }
  const auto before = hash();
  write("README.md", "words");
  EXPECT_EQ(hash(), before);
}

}  // namespace
}  // namespace muster
