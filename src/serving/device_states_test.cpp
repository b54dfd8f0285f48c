#include "serving/device_states.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Worker = ServedDecoderStatus::Device;

GroupStatus device(GroupState state, bool is_to_rest = false) {
  GroupStatus device;
  device.name = "cpu:0";
  device.state = state;
  device.is_to_rest = is_to_rest;
  return device;
}

GroupStatus joined(const GroupStatus& device, const std::vector<Worker>& workers) {
  std::vector<ServedDecoderStatus> decoders;
  for (const auto& worker : workers) decoders.push_back({.devices = {worker}});
  return with_decoders({device}, {}, decoders).front();
}

TEST(DeviceStates, ADeviceWithoutDecodersIsAsItsGroupIs) {
  EXPECT_EQ(joined(device(GroupState::Idle), {}).state, GroupState::Idle);
  const Worker elsewhere{.name = "cpu:1", .state = GroupState::Draining};
  EXPECT_EQ(joined(device(GroupState::Ready), {elsewhere}).state, GroupState::Ready);
}

TEST(DeviceStates, ADeviceHasDrainedWhenAllOnItHave) {
  const auto resting = device(GroupState::Drained, true);
  const Worker done{.name = "cpu:0", .state = GroupState::Drained};
  const Worker busy{.name = "cpu:0", .state = GroupState::Draining};
  EXPECT_EQ(joined(resting, {done}).state, GroupState::Drained);
  EXPECT_EQ(joined(resting, {done, busy}).state, GroupState::Draining);
  EXPECT_EQ(joined(device(GroupState::Draining, true), {done}).state, GroupState::Draining);
}

TEST(DeviceStates, ARestartIsOverWhenTheWorkersOfDecodersAreReadyToo) {
  const auto ready = device(GroupState::Ready);
  const auto state_with = [&](GroupState state, bool is_asked_for) {
    return joined(ready, {{.name = "cpu:0", .state = state, .is_asked_for = is_asked_for}}).state;
  };
  EXPECT_EQ(state_with(GroupState::Draining, true), GroupState::Draining);
  EXPECT_EQ(state_with(GroupState::Restarting, true), GroupState::Restarting);
  EXPECT_EQ(state_with(GroupState::Starting, true), GroupState::Restarting);
  EXPECT_EQ(state_with(GroupState::GivenUp, true), GroupState::Ready) << "it tries no more";
  EXPECT_EQ(state_with(GroupState::Restarting, false), GroupState::Ready)
      << "a decoder that comes back by itself takes nothing from those that embed";
}

TEST(DeviceStates, ADeviceWithDecodersAloneIsAsTheBestOfThemIs) {
  const auto idle = device(GroupState::Idle);
  const Worker ready{.name = "cpu:0", .state = GroupState::Ready};
  const Worker loading{.name = "cpu:0", .state = GroupState::Starting};
  const Worker failed{.name = "cpu:0", .state = GroupState::GivenUp, .reason = "no such file"};
  EXPECT_EQ(joined(idle, {failed, loading, ready}).state, GroupState::Ready);
  EXPECT_EQ(joined(idle, {failed, loading}).state, GroupState::Starting);
  const auto given_up = joined(idle, {failed});
  EXPECT_EQ(given_up.state, GroupState::GivenUp);
  EXPECT_EQ(given_up.reason, "no such file");
}

GroupModelStatus hosted(ModelState state, const std::string& reason = "") {
  GroupModelStatus status;
  status.state = state;
  status.reason = reason;
  return status;
}

TEST(DeviceStates, ADeviceLoadsWhileAModelIsOnItsWayIntoItsWorker) {
  auto one = device(GroupState::Ready);
  one.members.push_back({.device = {}, .pid = 7});
  EXPECT_FALSE(is_loading(one));
  one.models[1] = hosted(ModelState::Ready);
  one.models[2] = hosted(ModelState::Failed);
  EXPECT_FALSE(is_loading(one));
  one.models[3] = hosted(ModelState::Loading);
  EXPECT_TRUE(is_loading(one));
  one.models[3].waits_for_memory = true;
  EXPECT_FALSE(is_loading(one)) << "it is tried again later";
  one.models[4] = hosted(ModelState::Absent);
  EXPECT_TRUE(is_loading(one)) << "its worker has not greeted yet";
  auto resting = one;
  resting.is_to_rest = true;
  EXPECT_FALSE(is_loading(resting));
  one.members[0].pid = std::nullopt;
  EXPECT_FALSE(is_loading(one)) << "no process runs";
}

// One model that works makes a device ready, and hides the others that do not.
TEST(DeviceStates, AReadyDeviceNamesTheModelsThatItLacks) {
  const std::vector<ServedModelStatus> models{
      {.id = 1, .name = "tiny"}, {.id = 2, .name = "other"}, {.id = 3, .name = "large"}};
  auto mixed = device(GroupState::Ready);
  mixed.reason = "a model cannot be loaded: no weights";
  mixed.models[1] = hosted(ModelState::Ready);
  mixed.models[2] = hosted(ModelState::Failed, "no weights");
  mixed.models[3] = hosted(ModelState::Loading, "cpu:0 is full");
  mixed.models[3].waits_for_memory = true;
  mixed.models[4] = hosted(ModelState::Failed, "it is being unloaded");
  const Worker failed{.name = "cpu:0", .state = GroupState::GivenUp, .reason = "no such file"};
  const Worker elsewhere{.name = "cpu:1", .state = GroupState::GivenUp, .reason = "no memory"};
  const std::vector<ServedDecoderStatus> decoders{
      {.name = "chat", .devices = {failed}},
      {.name = "old", .is_leaving = true, .devices = {failed}},
      {.name = "next", .devices = {elsewhere}}};
  const auto shown = with_decoders({mixed}, models, decoders).front();
  EXPECT_EQ(shown.state, GroupState::Ready);
  EXPECT_EQ(shown.reason,
            "other cannot be loaded: no weights; large waits for memory: cpu:0 is full; "
            "chat cannot be loaded: no such file");
  mixed.models[2] = hosted(ModelState::Loading);
  mixed.models[3] = hosted(ModelState::Absent);
  EXPECT_EQ(missing_models(mixed, models, {}), "") << "they are on their way";
}

TEST(DeviceStates, ADeviceOfDecodersAloneNamesTheOneThatItLacks) {
  const Worker ready{.name = "cpu:0", .state = GroupState::Ready};
  const Worker failed{.name = "cpu:0", .state = GroupState::GivenUp, .reason = "no such file"};
  const std::vector<ServedDecoderStatus> decoders{{.name = "good", .devices = {ready}},
                                                  {.name = "chat", .devices = {failed}}};
  const auto shown = with_decoders({device(GroupState::Idle)}, {}, decoders).front();
  EXPECT_EQ(shown.state, GroupState::Ready);
  EXPECT_EQ(shown.reason, "chat cannot be loaded: no such file");
}

// A worker that fails at its canary is started again and again, later each time.
TEST(DeviceStates, AReadyDeviceNamesADecoderThatFailsAgainAndAgain) {
  const Worker ready{.name = "cpu:0", .state = GroupState::Ready};
  const Worker again{.name = "cpu:0", .state = GroupState::Restarting, .reason = "no numbers"};
  std::vector<ServedDecoderStatus> decoders{
      {.name = "good", .state = ModelState::Ready, .devices = {ready}},
      {.name = "chat", .state = ModelState::Failed, .devices = {again}}};
  const auto idle = device(GroupState::Idle);
  EXPECT_EQ(with_decoders({idle}, {}, decoders).front().reason,
            "chat cannot be loaded: no numbers");
  decoders[1].state = ModelState::Loading;
  EXPECT_EQ(missing_models(idle, {}, decoders), "") << "it is on its way";
}

GroupStatus loading_device(GroupState state, ModelState model) {
  auto made = device(state);
  made.models[1] = {
      .state = model, .reason = "no memory", .failure_kind = ErrorKind::ResourceExhausted};
  return made;
}

const ServedModelStatus kTiny{.id = 1, .name = "tiny"};

ServedDecoderStatus decoder(std::vector<Worker> workers) {
  return {.name = "chat", .devices = std::move(workers)};
}

const Worker kFailed{.name = "cpu:0",
                     .state = GroupState::GivenUp,
                     .reason = "no weights",
                     .failure_kind = ErrorKind::Corrupt};

TEST(HopelessError, SaysWhyNothingWillBeServed) {
  const auto failed = loading_device(GroupState::GivenUp, ModelState::Failed);
  const auto error = hopeless_error({failed, failed}, {kTiny}, {});
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, ErrorKind::ResourceExhausted);
  EXPECT_EQ(error->message, "no device can load what is to be served: tiny: cpu:0: no memory");
  const auto of_decoder = hopeless_error({device(GroupState::Idle)}, {}, {decoder({kFailed})});
  ASSERT_TRUE(of_decoder);
  EXPECT_EQ(of_decoder->kind, ErrorKind::Corrupt);
  EXPECT_EQ(of_decoder->message,
            "no device can load what is to be served: chat: cpu:0: no weights");
  EXPECT_TRUE(hopeless_error({failed}, {kTiny}, {decoder({kFailed})}));
}

// The workers of a decoder that end at each start, though they are started again.
TEST(HopelessError, SaysWhatTheWorkersLastSaidThatNeverStart) {
  const Worker ending{.name = "cpu:0",
                      .state = GroupState::Restarting,
                      .reason = "its worker ended with exit code 3; it last said: told to exit",
                      .start_failure = "its worker ended with exit code 3"};
  const auto error = hopeless_error({}, {}, {decoder({ending, kFailed})});
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, ErrorKind::Unavailable);
  EXPECT_EQ(error->message,
            "no device can load what is to be served: chat: cpu:0: its worker ended with exit code "
            "3; it last said: told to exit");
  const auto damaged_first = hopeless_error({}, {}, {decoder({kFailed, ending})});
  ASSERT_TRUE(damaged_first);
  EXPECT_EQ(damaged_first->kind, ErrorKind::Unavailable) << "not every worker calls it damaged";
  const Worker ready{.name = "cpu:1", .state = GroupState::Ready};
  EXPECT_FALSE(hopeless_error({}, {}, {decoder({ending, ready})}));
  EXPECT_FALSE(hopeless_error({}, {}, {decoder({ending}), decoder({ready})}))
      << "another model is served";
  const auto embeds = loading_device(GroupState::Ready, ModelState::Ready);
  EXPECT_FALSE(hopeless_error({embeds}, {kTiny}, {decoder({ending})}));
}

TEST(HopelessError, IsNoneWhereSomethingServesOrMayYet) {
  const auto failed = loading_device(GroupState::GivenUp, ModelState::Failed);
  const auto with = [&](const GroupStatus& other) {
    return hopeless_error({failed, other}, {kTiny}, {}).has_value();
  };
  EXPECT_FALSE(with(loading_device(GroupState::Ready, ModelState::Ready)));
  EXPECT_FALSE(with(loading_device(GroupState::Starting, ModelState::Loading)));
  EXPECT_FALSE(with(loading_device(GroupState::Restarting, ModelState::Absent)));
  // A new worker of it loads anew.
  EXPECT_FALSE(with(loading_device(GroupState::Quarantined, ModelState::Failed)));
  EXPECT_FALSE(with(loading_device(GroupState::Restarting, ModelState::Failed)));
  auto full = failed;
  full.models.begin()->second.waits_for_memory = true;
  EXPECT_FALSE(with(full));
  auto resting = loading_device(GroupState::Drained, ModelState::Absent);
  resting.is_to_rest = true;
  EXPECT_FALSE(with(resting));
  EXPECT_TRUE(with(device(GroupState::Ready))) << "the model is not to be there";
  const Worker coming{.name = "cpu:1", .state = GroupState::Restarting};
  EXPECT_FALSE(hopeless_error({failed}, {kTiny}, {decoder({kFailed, coming})}));
  EXPECT_FALSE(hopeless_error({failed}, {}, {})) << "one may be loaded while it runs";
  EXPECT_FALSE(hopeless_error({device(GroupState::Idle)}, {kTiny}, {})) << "it is not placed yet";
}

}  // namespace
}  // namespace muster
