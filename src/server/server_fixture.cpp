#include "server/server_fixture.h"

#include <unistd.h>

namespace muster {

ServerFixture::ServerFixture()
    : folder_(std::filesystem::path(::testing::TempDir()) /
              ("server." + std::to_string(::getpid()))) {
  std::filesystem::create_directories(folder_);
  ::setenv("ZERO_WORKER", "echo dim=32", 1);
  options_.http.listen = {.host = "127.0.0.1", .port = 0};
  options_.models = {
      {.name = "tiny", .model = std::string(MUSTER_SOURCE_DIR) + "/tests/models/tiny"}};
  options_.devices.resize(2);
  options_.devices[1].index = 1;
  options_.worker_program = std::string(MUSTER_BINARY_DIR) + "/bin/zero_worker";
  options_.cache_folder = folder_ / "cache";
  options_.canary_period = {};
  options_.texts_most = 4;
  hooks_.config_json = [](bool) { return std::string(R"({"strategy":{"value":"auto"}})"); };
  hooks_.recommendation_json = [](const ServedModelStatus& model) -> Result<std::string> {
    if (model.name == "strange") return Error{ErrorKind::Unsupported, "no such family"};
    return std::string(
        R"({"model":"of the file","recommended_device":"cpu:1","because":"it fits","devices":[],"hardware":[]})");
  };
  hooks_.change_config = [this](const SettingsChange& change) -> Status {
    if (change.values.contains("port"))
      return Error{ErrorKind::InvalidArgument, "port is not live"};
    changes_ = change.values;
    return Done{};
  };
}

}  // namespace muster
