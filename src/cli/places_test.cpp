#include "cli/places.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>

namespace muster {
namespace {

namespace fs = std::filesystem;

// A variable of the environment for one scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

class PlacesTest : public testing::Test {
 protected:
  PlacesTest()
      : folder_(fs::path(testing::TempDir()) / ("muster_places_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~PlacesTest() override { fs::remove_all(folder_); }

  fs::path make_torch(const std::string& name, const std::string& version) {
    auto root = folder_ / name / "torch";
    fs::create_directories(root / "lib");
    std::ofstream(root / "lib/libtorch_cpu.so") << "";
    std::ofstream(root / "version.py")
        << "from typing import Optional\n__version__ = '" << version << "'\ndebug = False\n";
    return root;
  }

  static Config config_with(SettingId id, const std::string& value) {
    ConfigSources sources;
    sources.flags = {{id, value, "--flag"}};
    sources.working_folder = "/";
    return *Config::load(sources);
  }

  fs::path folder_;
};

TEST_F(PlacesTest, TakesTheFolderTorchOrTheOneThatHoldsIt) {
  const auto root = make_torch("site-packages", "2.11.0+cpu");
  for (const auto& given : {root, root.parent_path()}) {
    const auto found = check_torch_root(given);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(*found, root);
  }
  EXPECT_EQ(torch_version(root), "2.11.0+cpu");
  EXPECT_EQ(torch_version(folder_ / "none"), "");
}

TEST_F(PlacesTest, RefusesAnotherVersionByName) {
  const auto root = make_torch("old", "2.10.1+cu128");
  const auto found = check_torch_root(root);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::Unsupported);
  EXPECT_EQ(found.error().message,
            root.string() + ": muster needs torch 2.11, this is 2.10.1+cu128");
}

TEST_F(PlacesTest, SaysWhatIsMissing) {
  const auto found = find_torch_root(config_with(SettingId::TorchRoot, folder_.string()));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::NotFound);
  EXPECT_EQ(found.error().message,
            folder_.string() + ": no torch wheel here: lib/libtorch_cpu.so is missing");
}

TEST_F(PlacesTest, FindsTheWorkerThatWasNamed) {
  const auto program = folder_ / "worker";
  const auto config = config_with(SettingId::WorkerProgram, program.string());
  EXPECT_EQ(find_worker_program(config).error().kind, ErrorKind::NotFound);
  std::ofstream(program) << "#!/bin/sh\n";
  EXPECT_EQ(find_worker_program(config).error().kind, ErrorKind::InvalidArgument);
  fs::permissions(program, fs::perms::owner_all);
  const auto found = find_worker_program(config);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->path, program);
  EXPECT_EQ(found->how, "--flag");
}

TEST_F(PlacesTest, FollowsTheXdgSpecificationForTheCache) {
  ConfigSources sources;
  sources.working_folder = "/";
  const auto config = *Config::load(sources);
  const ScopedVariable home("HOME", "/var/home/me");
  {
    const ScopedVariable cache("XDG_CACHE_HOME", "/var/cache/someone");
    EXPECT_EQ(find_cache_folder(config)->path, "/var/cache/someone/muster");
  }
  {
    const ScopedVariable relative("XDG_CACHE_HOME", "not/absolute");
    EXPECT_EQ(find_cache_folder(config)->path, "/var/home/me/.cache/muster");
  }
  {
    const ScopedVariable unusable("HOME", "");
    const std::string of_user = getpwuid(getuid())->pw_dir;
    EXPECT_EQ(find_cache_folder(config)->path, of_user + "/.cache/muster");
  }
  EXPECT_EQ(find_cache_folder(config_with(SettingId::CacheDir, "/c"))->path, "/c");
}

}  // namespace
}  // namespace muster
