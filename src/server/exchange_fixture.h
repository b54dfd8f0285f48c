#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/exchange.h"
#include "server/routes.h"
#include "server/server_fixture.h"

namespace muster {

/// Exchanges without a connection, with the service of ServerFixture. Its loop runs in the test's
/// own thread, when the test runs it: what is done at once can be told from what waits for a turn.
class ExchangeFixture : public ServerFixture {
 protected:
  /// The client of one exchange: what it was answered, and what happens when it goes.
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

  void SetUp() override {
    start_service();
    ASSERT_TRUE(service_);
    start_generation();
    ASSERT_TRUE(generation_);
    state_ = std::make_shared<ServerState>(ServerState{.options = options_,
                                                       .service = *service_,
                                                       .generation = *generation_,
                                                       .collector = nullptr,
                                                       .loop = loop_,
                                                       .hooks = {},
                                                       .clock = clock_,
                                                       .started = clock_.now()});
    state_->log = std::make_unique<RequestLog>(nullptr, LogLevel::Info, loop_, clock_);
  }

  void TearDown() override {
    state_->readers.reset();
    state_->tasks.reset();
  }

  ExchangePtr exchange(std::string body = {}) {
    auto made = std::make_shared<Exchange>(state_, routes().front(), "", "id");
    HttpRequest request;
    request.body = std::move(body);
    made->begin(std::move(request), HttpRespond(client_));
    return made;
  }

  std::shared_ptr<ServerState> state_;
  std::shared_ptr<Client> client_ = std::make_shared<Client>();
};

}  // namespace muster
