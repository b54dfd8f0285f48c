#include "jobs/prompt_encoder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "coordinator/decoder_fixture.h"

namespace muster {
namespace {

/// The fixture's decoder: a token a letter (a is 1), and a template that joins all contents.
class PromptEncoderTest : public testing::Test {
 protected:
  PromptEncoderTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("prompt_encoder." + std::to_string(::getpid()))) {
    write_counting_decoder(folder_);
    text_ = *load_decoder_text(folder_);
  }
  ~PromptEncoderTest() override { std::filesystem::remove_all(folder_); }

  PromptEncoder encoder(PromptForm form = {}) const {
    auto made = PromptEncoder::make(text_, std::move(form));
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }

  static std::string shown(const Result<std::vector<TokenId>>& ids) {
    return ids ? nlohmann::json(*ids).dump() : ids.error().message;
  }

  const std::filesystem::path folder_;
  DecoderText text_;
};

TEST_F(PromptEncoderTest, PutsAPromptThroughTheTemplate) {
  EXPECT_EQ(shown(encoder().encode("ab", 100)), "[1,2]");
  EXPECT_EQ(shown(encoder({.system = "c"}).encode("ab", 100)), "[3,1,2]");
  EXPECT_EQ(shown(encoder().encode("", 100)), "the prompt is empty: there is nothing to continue");
  EXPECT_EQ(shown(encoder().encode("no", 100)),
            "chat template, line 1: the template refuses the conversation: not this");
}

TEST_F(PromptEncoderTest, TakesConversationsWithTheirOwnSystemOrOurs) {
  const std::string_view asked = R"([{"role":"user","content":"a"},
                                     {"role":"assistant","content":"b"},
                                     {"role":"user","content":"c"}])";
  EXPECT_EQ(shown(encoder().encode_messages(asked, 100)), "[1,2,3]");
  EXPECT_EQ(shown(encoder({.system = "z"}).encode_messages(asked, 100)), "[26,1,2,3]");
  EXPECT_EQ(shown(encoder({.system = "z"})
                      .encode_messages(R"([{"role":"system","content":"y"},
                                           {"role":"user","content":"a"}])",
                                       100)),
            "[25,1]");
  EXPECT_EQ(shown(encoder().encode_messages(R"([{"role":"user"}])", 100)),
            "messages[0] has no content");
  EXPECT_EQ(shown(encoder().encode_messages(R"([{"role":"user","content":""}])", 100)),
            "the chat template makes nothing of this prompt");
}

TEST_F(PromptEncoderTest, LeavesARawPromptAsItIs) {
  auto raw = encoder({.is_raw = true});
  EXPECT_EQ(shown(raw.encode("no", 100)), "[14,15]");
  EXPECT_EQ(shown(raw.encode_messages("[]", 100)),
            "messages need the chat template, which --raw leaves out");
}

// The vocabulary has no capital letters, and none that stands for what it lacks.
TEST_F(PromptEncoderTest, ARawPromptOfWhichNoTokenIsMadeIsEmpty) {
  const auto ids = encoder({.is_raw = true}).encode("Z", 100);
  EXPECT_EQ(shown(ids), "the prompt is empty: there is nothing to continue");
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().kind, ErrorKind::InvalidArgument);
}

TEST_F(PromptEncoderTest, ReadsOfALongPromptOnlyTheBeginning) {
  EXPECT_EQ(encoder().encode(std::string(1000, 'a'), 10)->size(), 10U);
  EXPECT_EQ(encoder({.is_raw = true}).encode(std::string(1000, 'a'), 10)->size(), 10U);
}

TEST_F(PromptEncoderTest, SaysWhatToDoWithoutATemplate) {
  text_.templates.clear();
  const auto made = PromptEncoder::make(text_, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::NotFound);
  EXPECT_EQ(made.error().message,
            "the model has no chat template; with --raw the prompt is continued as it is");
}

TEST_F(PromptEncoderTest, ATemplateThatShowsTheDateIsGivenIt) {
  EXPECT_FALSE(shows_date(text_));
  text_.templates = {{"default", "{{ strftime_now('%d') }}"}};
  EXPECT_TRUE(shows_date(text_));
  // Day 4 of October 2024 is 20,000 days after 1970-01-01; "0" is 29 and "4" is 33.
  EXPECT_EQ(shown(encoder({.now_unix = 20'000LL * 86'400}).encode("a", 100)), "[29,33]");
}

}  // namespace
}  // namespace muster
