#include "cli/embed_server_options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace muster {
namespace {

ListedModel listed(const std::string& name, bool embeds = true) {
  ListedModel model;
  model.name = name;
  model.embeds = embeds;
  return model;
}

class ServedWordsTest : public testing::Test {
 protected:
  ServedWordsTest()
      : file_(std::filesystem::path(testing::TempDir()) /
              ("served_words." + std::to_string(::getpid()))) {
    std::ofstream(file_) << "a\n";
  }
  ~ServedWordsTest() override { std::filesystem::remove(file_); }

  const std::filesystem::path file_;
  const std::vector<ListedModel> one_{listed("tiny"), listed("ranker", false)};
  const std::vector<ListedModel> two_{listed("tiny"), listed("large")};
};

TEST_F(ServedWordsTest, TheFirstWordNamesTheModel) {
  const auto words = sort_served_words(two_, {"large", file_, "-"});
  ASSERT_TRUE(words) << words.error().message;
  EXPECT_EQ(words->model, "large");
  EXPECT_EQ(words->inputs, (std::vector<std::string>{file_, "-"}));
}

TEST_F(ServedWordsTest, TheOnlyModelThatEmbedsNeedsNoName) {
  for (const std::string& input : {file_.string(), std::string("-")}) {
    const auto words = sort_served_words(one_, {input});
    ASSERT_TRUE(words) << words.error().message;
    EXPECT_EQ(words->model, "tiny");
    EXPECT_EQ(words->inputs, std::vector<std::string>{input});
  }
}

TEST_F(ServedWordsTest, RefusesWhatIsNoModelAndNoInput) {
  EXPECT_EQ(sort_served_words(one_, {"tinny", file_}).error().message,
            "the server has no model of that name: tinny; did you mean tiny?");
  EXPECT_EQ(sort_served_words(two_, {file_}).error().message,
            "which model of the server? Name it before the inputs; it serves tiny, large");
  EXPECT_EQ(sort_served_words(one_, {"tiny"}).error().message,
            "which texts? Name a file after the model tiny");
  EXPECT_EQ(sort_served_words({listed("ranker", false)}, {file_}).error().message,
            "the server serves no model that embeds");
  EXPECT_EQ(sort_served_words(one_, {"ranker", file_}).error().message,
            "the server's model ranker does not embed: name one that does (tiny)");
}

TEST(EmbedServerFlags, RefusesByNameWhatTheServerHasSettled) {
  Arguments arguments;
  arguments.flags["--server"] = "http://127.0.0.1:8000";
  EXPECT_TRUE(check_with_server(arguments));
  arguments.settings = {{SettingId::Field, "body", "--field"},
                        {SettingId::PromptName, "query", "--prompt-name"}};
  EXPECT_TRUE(check_with_server(arguments));
  for (const auto& [id, flag] :
       {std::pair(SettingId::Devices, "--devices"), std::pair(SettingId::Precision, "--precision"),
        std::pair(SettingId::BatchTokens, "--batch-tokens"),
        std::pair(SettingId::Pooling, "--pooling"),
        std::pair(SettingId::Normalize, "--no-normalize"),
        std::pair(SettingId::MaxLength, "--max-length")}) {
    auto with = arguments;
    with.settings.push_back({id, "x", flag});
    const auto refused = check_with_server(with);
    ASSERT_FALSE(refused) << flag;
    EXPECT_EQ(refused.error().kind, ErrorKind::InvalidArgument);
    EXPECT_TRUE(refused.error().message.starts_with(std::string(flag) + " cannot be used"));
  }
  arguments.flags["--plan"] = "plan.yaml";
  EXPECT_FALSE(check_with_server(arguments));
}

TEST(EmbedServerFlags, RefusesAServersFlagsWithoutAServer) {
  Arguments arguments;
  EXPECT_TRUE(check_without_server(arguments));
  arguments.flags["--api-key-file"] = "key";
  EXPECT_EQ(check_without_server(arguments).error().message,
            "--api-key-file is for a server: name it with --server URL");
  arguments.flags["--server"] = "http://127.0.0.1:8000";
  EXPECT_TRUE(check_without_server(arguments));
}

}  // namespace
}  // namespace muster
