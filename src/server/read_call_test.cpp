#include "server/read_call.h"

#include <future>
#include <string>
#include <thread>

#include "server/server_fixture.h"

namespace muster {
namespace {

// The client of one exchange: what it was answered, and what happens when it goes.
struct Client final : HttpExchange {
  void respond(HttpResponse response) override { answer = std::move(response); }
  void on_client_gone(std::function<void()> call) override { gone = std::move(call); }
  bool hold(std::uint64_t /*bytes*/) override { return true; }
  bool begin_stream(HttpResponse /*head*/, std::function<void()> /*on_room*/) override {
    return false;
  }
  bool write(std::string_view /*bytes*/) override { return true; }
  void end_stream() override {}

  std::optional<HttpResponse> answer;
  std::function<void()> gone;
};

// Exchanges on a loop that runs in the test's own thread.
class ReadCallTest : public ServerFixture {
 protected:
  void SetUp() override {
    start_unready();
    state_ = std::make_shared<ServerState>(ServerState{.options = options_,
                                                       .service = *service_,
                                                       .generation = *generation_,
                                                       .collector = nullptr,
                                                       .loop = own_loop_,
                                                       .hooks = {},
                                                       .clock = clock_,
                                                       .started = clock_.now()});
    state_->log = std::make_unique<RequestLog>(nullptr, LogLevel::Info, own_loop_, clock_);
  }

  void TearDown() override {
    state_->readers.reset();
    state_->tasks.reset();
  }

  ExchangePtr exchange(std::size_t body_bytes) {
    auto made = std::make_shared<Exchange>(state_, routes().front(), "", "id");
    HttpRequest request;
    request.body.assign(body_bytes, 'x');
    made->begin(std::move(request), HttpRespond(client_));
    return made;
  }

  // Reads a body of so many bytes; says whether that was over before the loop ran.
  bool is_read_at_once(std::size_t body_bytes) {
    std::size_t size = 0;
    read_call(
        exchange(body_bytes),
        [](const std::string& body) { return ApiResult<std::size_t>(body.size()); },
        [&](const ExchangePtr&, std::size_t read) {
          size = read;
          taken_by_ = std::this_thread::get_id();
          own_loop_.stop();
        });
    const bool at_once = size > 0;
    own_loop_.run();
    EXPECT_EQ(size, body_bytes);
    EXPECT_EQ(taken_by_, std::this_thread::get_id());
    return at_once;
  }

  EventLoop own_loop_;
  std::shared_ptr<ServerState> state_;
  std::shared_ptr<Client> client_ = std::make_shared<Client>();
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
      exchange(kLongBody + 1),
      [is_served](const std::string& /*body*/) {
        return ApiResult<bool>(is_served.wait_for(std::chrono::seconds(20)) ==
                               std::future_status::ready);
      },
      [&](const ExchangePtr&, bool read) {
        was_served = read;
        taken_by_ = std::this_thread::get_id();
        own_loop_.stop();
      });
  own_loop_.post([&] { served.set_value(); });
  own_loop_.run();
  EXPECT_TRUE(was_served);
  EXPECT_EQ(taken_by_, std::this_thread::get_id());
}

TEST_F(ReadCallTest, ABodyThatCannotBeReadIsRefusedWhateverItsLength) {
  for (const auto bytes : {kLongBody, kLongBody + 1}) {
    client_->answer.reset();
    read_call(
        exchange(bytes),
        [](const std::string&) -> ApiResult<int> { return wrong_field("a", "b", "c"); },
        [](const ExchangePtr&, int) { FAIL(); });
    // Whatever reads it is done when what comes behind it is.
    read_call(
        exchange(kLongBody + 1), [](const std::string&) -> ApiResult<int> { return 1; },
        [&](const ExchangePtr&, int) { own_loop_.post([&] { own_loop_.stop(); }); });
    own_loop_.run();
    ASSERT_TRUE(client_->answer) << bytes;
    EXPECT_EQ(client_->answer->status, 400);
  }
}

TEST_F(ReadCallTest, NothingIsTakenOfAClientThatHasGone) {
  read_call(
      exchange(kLongBody + 1), [](const std::string&) -> ApiResult<int> { return 1; },
      [](const ExchangePtr&, int) { FAIL(); });
  client_->gone();
  read_call(
      exchange(kLongBody + 1), [](const std::string&) -> ApiResult<int> { return 1; },
      [&](const ExchangePtr&, int) { own_loop_.post([&] { own_loop_.stop(); }); });
  own_loop_.run();
}

}  // namespace
}  // namespace muster
