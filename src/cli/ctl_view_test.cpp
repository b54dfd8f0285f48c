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

TEST(CtlDevices, ShowTheDecodersOnThem) {
  auto decoders = chat(2);
  decoders.push_back({{"name", "old"},
                      {"state", "draining"},
                      {"is_unloading", true},
                      {"in_flight_replies", 1},
                      {"restart_count", 3}});
  decoders.push_back({{"name", "next"}, {"state", "starting"}, {"in_flight_replies", 0}});
  EXPECT_EQ(ctl_device_table(Json::array({device("ready", decoders)}), kWide),
            "device  state  texts  in flight  decoders                                replies in "
            "flight  restarts  why\n"
            "cpu:0   ready      5          0  chat, old (unloading), next (starting)               "
            "   3         4\n");
}

TEST(CtlDevices, AChangeNamesTheDecodersThatCannotBeLoaded) {
  EXPECT_EQ(changed_device_text(device("drained", Json::array())), "cpu:0: drained\n");
  EXPECT_EQ(changed_device_text(device("idle", Json::array())), "cpu:0: idle, no model is on it\n");
  const auto failed =
      Json::array({{{"name", "chat"}, {"state", "given up"}, {"reason", "no memory"}}});
  EXPECT_EQ(changed_device_text(device("ready", failed)),
            "cpu:0: ready; chat cannot be loaded: no memory\n");
}

TEST(CtlDevices, AChangeNamesTheModelsThatCannotBeLoaded) {
  auto one = device("ready", Json::array());
  one["models"] = Json::array({{{"name", "tiny"}, {"state", "ready"}},
                               {{"name", "other"}, {"state", "failed"}, {"reason", "no weights"}},
                               {{"name", "large"},
                                {"state", "failed"},
                                {"reason", "cuda:0 is full"},
                                {"waits_for_memory", true}}});
  EXPECT_EQ(changed_device_text(one),
            "cpu:0: ready; other cannot be loaded: no weights; large waits for memory: cuda:0 is "
            "full\n");
}

TEST(CtlDevices, WhatWaitsForMemoryIsNamed) {
  auto one =
      device("restarting",
             Json::array({{{"name", "chat"},
                           {"state", "restarting"},
                           {"reason", "no room"},
                           {"waits_for_memory", true}},
                          {{"name", "old"}, {"is_unloading", true}, {"waits_for_memory", true}}}));
  EXPECT_EQ(memory_wait_text(one), "chat waits for memory: no room");
  one["models"] = Json::array(
      {{{"name", "tiny"}, {"waits_for_memory", false}},
       {{"name", "other"}, {"state", "loading"}, {"reason", "full"}, {"waits_for_memory", true}}});
  EXPECT_EQ(memory_wait_text(one), "other waits for memory: full; chat waits for memory: no room");
  EXPECT_EQ(memory_wait_text(device("ready", chat(0))), "");
}

TEST(CtlModels, AnUnloadSaysWhatGoesOn) {
  EXPECT_EQ(unloaded_text("tiny", Json{{"state", "absent"}}), "tiny: unloaded\n");
  EXPECT_EQ(unloaded_text("chat", Json{{"in_flight_replies", 1}}),
            "chat: unloaded; 1 of its replies goes on to its end\n");
  EXPECT_EQ(unloaded_text("chat", Json{{"in_flight_replies", 3}}),
            "chat: unloaded; 3 of its replies go on to their end\n");
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
