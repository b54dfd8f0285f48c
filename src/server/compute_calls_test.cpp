#include "server/compute_calls.h"

#include "server/exchange_fixture.h"

namespace muster {
namespace {

class ComputeCallsTest : public ExchangeFixture {
 protected:
  // Asks for the vectors of so many texts.
  void ask(std::size_t text_count) {
    EmbedCall call;
    call.texts.assign(text_count, "word");
    compute_rows(exchange(), std::move(call), {});
  }

  // Calls that the service has seen.
  std::uint64_t seen() const {
    const auto status = service_->status();
    return status.request_count + status.refused_count;
  }

  void run_a_turn() {
    loop_.post([this] { loop_.stop(); });
    loop_.run();
  }
};

TEST_F(ComputeCallsTest, ACallOfManyTextsHasATurnOfTheLoopForItself) {
  ask(256);
  EXPECT_EQ(seen(), 1U);
  ask(257);
  ask(257);
  EXPECT_EQ(seen(), 1U);
  run_a_turn();
  EXPECT_EQ(seen(), 2U);
  run_a_turn();
  EXPECT_EQ(seen(), 3U);
}

TEST_F(ComputeCallsTest, TheServiceSeesNoCallWhoseClientHasGone) {
  ask(257);
  client_->gone();
  run_a_turn();
  EXPECT_EQ(seen(), 0U);
}

}  // namespace
}  // namespace muster
