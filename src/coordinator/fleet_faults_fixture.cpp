#include "coordinator/fleet_faults_fixture.h"

#include "base/build_info.h"

namespace muster {

void FleetFaultsTest::start(std::string faults, std::size_t device_count, FleetModel model) {
  if (const auto at = faults.find('@'); at != std::string::npos) {
    faults.replace(at, 1, state_file_);
  }
  ::setenv("FAULTY_WORKER", faults.c_str(), 1);
  FleetOptions options;
  for (std::uint32_t i = 0; i < device_count; ++i) options.devices.emplace_back().index = i;
  options.worker_program = std::string(MUSTER_BINARY_DIR) + "/bin/muster-worker-faulty";
  options.batch_tokens = 100;
  options.build = std::string(build_name());
  options.gives_up = gives_up_;
  options.canary_period = canary_period_;
  FleetEvents events;
  events.on_row = [this](ItemKey key, std::span<const std::byte> bytes, std::size_t device) {
    on_row(key, bytes, device);
  };
  events.on_item_failed = [this](ItemKey key, const Error& error) {
    EXPECT_EQ(waiting_.erase(key), 1U) << key;
    failed_.emplace(key, error);
  };
  events.on_notice = [this](const std::string& notice, std::optional<std::size_t>) {
    notices_ += notice + "\n";
  };
  auto started = Fleet::start(std::move(options), std::move(events), clock_);
  ASSERT_TRUE(started) << started.error().message;
  fleet_ = *std::move(started);
  fleet_->models().load(kModel, std::move(model));
}

}  // namespace muster
