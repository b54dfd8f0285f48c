#include "cli/ctl_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

constexpr TerminalInfo kWide{.width = 200};

Json device(const std::string& state, const Json& decoders) {
  return {{"name", "cpu:0"},    {"state", state},    {"text_count", 5},     {"in_flight_texts", 0},
          {"restart_count", 1}, {"reason", nullptr}, {"decoders", decoders}};
}

Json chat(int replies) {
  return Json::array({{{"name", "chat"}, {"state", "ready"}, {"in_flight_replies", replies}}});
}

TEST(CtlDevices, AreAsBeforeWithoutDecoders) {
  const std::string expected =
      "device  state    texts  in flight  restarts  why\n"
      "cpu:0   drained      5          0         1\n";
  auto one = device("drained", Json::array());
  EXPECT_EQ(ctl_device_table(Json::array({one}), kWide), expected);
  one.erase("decoders");
  EXPECT_EQ(ctl_device_table(Json::array({one}), kWide), expected) << "a server of before";
}

TEST(CtlDevices, AreNotCalledDrainedWhileAReplyIsComputedThere) {
  const auto busy = ctl_device_table(Json::array({device("drained", chat(2))}), kWide);
  EXPECT_EQ(busy,
            "device  state       texts  in flight  replies in flight  restarts  why\n"
            "cpu:0   generating      5          0                  2         1  drained of texts "
            "alone; chat is not\n");
  const auto idle = ctl_device_table(Json::array({device("drained", chat(0))}), kWide);
  EXPECT_NE(idle.find("  drained of texts alone; chat is not\n"), std::string::npos) << idle;
  const auto ready = ctl_device_table(Json::array({device("ready", chat(1))}), kWide);
  EXPECT_NE(ready.find("cpu:0   ready      5          0                  1         1\n"),
            std::string::npos)
      << ready;
}

TEST(CtlDevices, AChangeSaysWhatItLeavesOut) {
  EXPECT_EQ(changed_device_text("cpu:0", "drained", ""), "cpu:0: drained\n");
  EXPECT_EQ(changed_device_text("cpu:0", "drained",
                                "a drain leaves decoders out: nothing changes for chat"),
            "cpu:0: drained of texts; a drain leaves decoders out: nothing changes for chat\n");
}

TEST(CtlModels, AreListedByNameKindAndState) {
  const Json models = Json::array(
      {{{"id", "tiny"}, {"task", "embed"}, {"state", "ready"}, {"requests", 12}},
       {{"id", "chat"}, {"task", "generate"}, {"state", "failed"}, {"reason", "no memory"}}});
  EXPECT_EQ(ctl_model_table(models, kWide),
            "model  kind      state   requests  why\n"
            "tiny   embed     ready         12\n"
            "chat   generate  failed         -  no memory\n");
}

}  // namespace
}  // namespace muster
