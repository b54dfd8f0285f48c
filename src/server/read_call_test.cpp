#include "server/read_call.h"

#include <future>
#include <string>
#include <thread>

#include "server/exchange_fixture.h"

namespace muster {
namespace {

class ReadCallTest : public ExchangeFixture {
 protected:
  ExchangePtr exchange_with_body(std::size_t bytes) { return exchange(std::string(bytes, 'x')); }

  // Reads a body of so many bytes; says whether that was over before the loop ran.
  bool is_read_at_once(std::size_t body_bytes) {
    std::size_t size = 0;
    read_call(
        exchange_with_body(body_bytes),
        [](const std::string& body) { return ApiResult<std::size_t>(body.size()); },
        [&](const ExchangePtr&, std::size_t read) {
          size = read;
          taken_by_ = std::this_thread::get_id();
          loop_.stop();
        });
    const bool at_once = size > 0;
    loop_.run();
    EXPECT_EQ(size, body_bytes);
    EXPECT_EQ(taken_by_, std::this_thread::get_id());
    return at_once;
  }

  std::thread::id taken_by_;
};

TEST_F(ReadCallTest, AShortBodyIsReadAtOnceAndALongOneIsNot) {
  EXPECT_TRUE(is_read_at_once(kLongBody));
  EXPECT_FALSE(is_read_at_once(kLongBody + 1));
}

// Were it read on the loop, the loop could not do what the reading waits for.
TEST_F(ReadCallTest, TheLoopServesOthersWhileALongBodyIsRead) {
  std::promise<void> served;
  const auto is_served = served.get_future().share();
  bool was_served = false;
  read_call(
      exchange_with_body(kLongBody + 1),
      [is_served](const std::string& /*body*/) {
        return ApiResult<bool>(is_served.wait_for(std::chrono::seconds(20)) ==
                               std::future_status::ready);
      },
      [&](const ExchangePtr&, bool read) {
        was_served = read;
        taken_by_ = std::this_thread::get_id();
        loop_.stop();
      });
  loop_.post([&] { served.set_value(); });
  loop_.run();
  EXPECT_TRUE(was_served);
  EXPECT_EQ(taken_by_, std::this_thread::get_id());
}

TEST_F(ReadCallTest, ABodyThatCannotBeReadIsRefusedWhateverItsLength) {
  for (const auto bytes : {kLongBody, kLongBody + 1}) {
    client_->answer.reset();
    read_call(
        exchange_with_body(bytes),
        [](const std::string&) -> ApiResult<int> { return wrong_field("a", "b", "c"); },
        [](const ExchangePtr&, int) { FAIL(); });
    // Whatever reads it is done when what comes behind it is.
    read_call(
        exchange_with_body(kLongBody + 1), [](const std::string&) -> ApiResult<int> { return 1; },
        [&](const ExchangePtr&, int) { loop_.post([&] { loop_.stop(); }); });
    loop_.run();
    ASSERT_TRUE(client_->answer) << bytes;
    EXPECT_EQ(client_->answer->status, 400);
  }
}

TEST_F(ReadCallTest, NothingIsTakenOfAClientThatHasGone) {
  read_call(
      exchange_with_body(kLongBody + 1), [](const std::string&) -> ApiResult<int> { return 1; },
      [](const ExchangePtr&, int) { FAIL(); });
  client_->gone();
  read_call(
      exchange_with_body(kLongBody + 1), [](const std::string&) -> ApiResult<int> { return 1; },
      [&](const ExchangePtr&, int) { loop_.post([&] { loop_.stop(); }); });
  loop_.run();
}

}  // namespace
}  // namespace muster
