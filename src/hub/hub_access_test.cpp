#include "hub/hub_access.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/file.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

class HubAccessTest : public testing::Test {
 protected:
  HubAccessTest()
      : home_(fs::path(testing::TempDir()) / ("hub_access." + std::to_string(::getpid()))) {
    for (const char* name :
         {"HF_ENDPOINT", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_CACHE",
          "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "SSL_CERT_FILE",
          "HF_HUB_DISABLE_IMPLICIT_TOKEN", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}) {
      ::unsetenv(name);
    }
    fs::create_directories(home_);
    ::setenv("HF_HOME", home_.c_str(), 1);
  }
  ~HubAccessTest() override { fs::remove_all(home_); }

  static std::string fault() {
    const auto access = find_hub_access({});
    return access ? "no error" : access.error().message;
  }

  fs::path home_;
};

TEST_F(HubAccessTest, IsThePublicHubWithoutATokenWhereNothingIsSet) {
  const auto access = find_hub_access({});
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->endpoint, "https://huggingface.co");
  EXPECT_EQ(access->token, "");
  EXPECT_EQ(access->cache, home_ / "hub");
}

TEST_F(HubAccessTest, ATokenComesFromTheVariableElseFromTheFile) {
  ASSERT_TRUE(write_file_atomically(home_ / "token", " hf_file\r\n"));
  EXPECT_EQ(find_hub_access({})->token, "hf_file");
  EXPECT_EQ(find_hub_access({})->token_place, (home_ / "token").string());
  ASSERT_TRUE(write_file_atomically(home_ / "other", "hf_other"));
  ::setenv("HF_TOKEN_PATH", "$HF_HOME/other", 1);
  EXPECT_EQ(find_hub_access({})->token, "hf_other");
  ::setenv("HUGGING_FACE_HUB_TOKEN", "hf_old", 1);
  EXPECT_EQ(find_hub_access({})->token, "hf_old");
  ::setenv("HF_TOKEN", "hf_new\n", 1);
  EXPECT_EQ(find_hub_access({})->token, "hf_new");
  EXPECT_EQ(find_hub_access({})->token_place, "HF_TOKEN");
  ::setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1", 1);
  EXPECT_EQ(find_hub_access({})->token, "");
}

TEST_F(HubAccessTest, ATokenThatWouldMakeAHeaderIsRefused) {
  ::setenv("HF_TOKEN", "hf_a\r\nX-Admin: 1", 1);
  EXPECT_EQ(fault(), "the token of HF_TOKEN holds a character that no token has");
}

TEST_F(HubAccessTest, TheEndpointIsTheFlagsElseTheVariables) {
  ::setenv("HF_ENDPOINT", "https://mirror.example/base//", 1);
  EXPECT_EQ(find_hub_access({})->endpoint, "https://mirror.example/base");
  EXPECT_EQ(find_hub_access({.endpoint = "http://127.0.0.1:8080/", .cache = {}})->endpoint,
            "http://127.0.0.1:8080");
  ::setenv("HF_ENDPOINT", "mirror.example", 1);
  EXPECT_EQ(fault(),
            "HF_ENDPOINT: \"mirror.example\" is no hub's URL; an example is "
            "https://huggingface.co");
}

TEST_F(HubAccessTest, OfflineIsRefusedByName) {
  ::setenv("TRANSFORMERS_OFFLINE", "yes", 1);
  EXPECT_EQ(fault(), "TRANSFORMERS_OFFLINE=yes forbids to ask a hub: unset it to fetch a model");
  ::setenv("HF_HUB_OFFLINE", "0", 1);  // it goes before the other
  EXPECT_EQ(fault(), "no error");
  ::setenv("HF_HUB_OFFLINE", "1", 1);
  EXPECT_EQ(fault(), "HF_HUB_OFFLINE=1 forbids to ask a hub: unset it to fetch a model");
}

}  // namespace
}  // namespace muster
