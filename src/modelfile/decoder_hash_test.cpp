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

// Of the two MiB behind the first one, pieces of 4,096 bytes begin (2^21 - 4096) / 63 = 33,223
// bytes apart.
TEST_F(DecoderHashTest, ASampleTellsWeightsApartByPiecesOfThem) {
  const auto sample = [this](const std::string& content) {
    write("a.gguf", content);
    const auto hash = decoder_sample_hash(folder_ / "a.gguf");
    EXPECT_TRUE(hash) << hash.error().message;
    return hash ? *hash : "";
  };
  constexpr std::size_t kMiB = 1 << 20;
  const std::string content(3 * kMiB, 'x');
  const auto before = sample(content);
  EXPECT_EQ(sample(content), before);
  const auto changed = [&](std::size_t at) {
    auto other = content;
    other[at] = 'y';
    return sample(other);
  };
  for (const std::size_t at :
       {std::size_t{0}, kMiB - 1, kMiB, kMiB + 33223, kMiB + 63 * 33223 + 4095}) {
    EXPECT_NE(changed(at), before) << at;
  }
  EXPECT_EQ(changed(kMiB + 4096), before) << "between two pieces";
  EXPECT_EQ(changed(kMiB + 33222), before) << "before the second one";
  EXPECT_NE(sample(content + "x"), before);
  EXPECT_EQ(decoder_sample_hash(folder_ / "none.gguf").error().kind, ErrorKind::NotFound);
}

TEST_F(DecoderHashTest, ASampleOfAFolderIsOfItsConfigAndWeights) {
  const auto sample = [this] { return *decoder_sample_hash(folder_); };
  write("config.json", "{}");
  std::set<std::string> seen{sample()};
  for (const char* name : {"config.json", "model.safetensors"}) {
    write(name, "x");
    EXPECT_TRUE(seen.insert(sample()).second) << name;
  }
  const auto before = sample();
  write("tokenizer.json", "x");
  EXPECT_EQ(sample(), before);
}

TEST_F(DecoderHashTest, AStampTellsThatAFileWasReplacedOrWrittenTo) {
  write("a.gguf", "GGUF");
  const DecoderStamp stamp(folder_ / "a.gguf");
  EXPECT_EQ(hash("a.gguf").size(), 32U);
  EXPECT_FALSE(stamp.has_changed()) << "it was only read";
  write("b.gguf", "GGML");
  fs::last_write_time(folder_ / "b.gguf", fs::last_write_time(folder_ / "a.gguf"));
  fs::rename(folder_ / "b.gguf", folder_ / "a.gguf");
  EXPECT_TRUE(stamp.has_changed()) << "of the same size and time";
  const DecoderStamp other(folder_ / "a.gguf");
  EXPECT_FALSE(other.has_changed());
  write("a.gguf", "GGUF and more");
  EXPECT_TRUE(other.has_changed());
  fs::remove(folder_ / "a.gguf");
  EXPECT_FALSE(other.has_changed()) << "whoever loads it says what is missing";
  const DecoderStamp none(folder_ / "a.gguf");
  write("a.gguf", "GGUF");
  EXPECT_FALSE(none.has_changed()) << "nothing was known of it";
}

TEST_F(DecoderHashTest, AStampIsOfAllFilesThatAWorkerLoads) {
  write("m-00001-of-00002.gguf", "one");
  write("m-00002-of-00002.gguf", "two");
  const DecoderStamp split(folder_ / "m-00001-of-00002.gguf");
  EXPECT_FALSE(split.has_changed());
  write("m-00002-of-00002.gguf", "other");
  EXPECT_TRUE(split.has_changed());
  write("config.json", "{}");
  write("model.safetensors", "x");
  for (const char* name : {"config.json", "model.safetensors"}) {
    const DecoderStamp folder(folder_);
    write("tokenizer.json", name);
    EXPECT_FALSE(folder.has_changed());
    write(name, "longer");
    EXPECT_TRUE(folder.has_changed()) << name;
  }
}

}  // namespace
}  // namespace muster
