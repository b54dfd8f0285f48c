// `muster doctor` on the real program, with a driver for tests.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "run_muster.h"

namespace muster {
namespace {

TEST(DoctorCommand, ALostGpuIsMissingWhereAllGpusAreNamed) {
  Muster muster("doctor_command");
  muster.set("MUSTER_NVML_PATH", MUSTER_BINARY_DIR "/lib/libfakenvml.so");
  muster.set("FAKENVML_SCENARIO", (muster.folder() / "gpus.json").string());
  muster.write("gpus.json", R"({"fake_nvml":1,"gpus":[
      {"model":"H200"},{"model":"H200","lost":{"from":0}}]})");
  const auto finished = muster.run({"doctor", "--no-compute", "--devices", "cuda", "--json"});
  EXPECT_EQ(finished.exit_code, 21) << finished.err;
  const auto availability = nlohmann::json::parse(finished.out)["availability"];
  EXPECT_EQ(availability["requested"], (nlohmann::json{"cuda:0", "cuda:1"}));
  EXPECT_EQ(availability["all_available"], false);
  const auto reason = availability["errors"].value("cuda:1", "");
  EXPECT_TRUE(reason.starts_with("cuda:1 is lost: GPU is lost (NVML 15)")) << reason;
}

}  // namespace
}  // namespace muster
