#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "coordinator/decoder_fixture.h"
#include "net/connect_fixture.h"
#include "server/server_fixture.h"

namespace muster {

/// A server with a decoder that counts (stand_ins/counting_worker), and streams read by their
/// events.
class GenerationFixture : public ServerFixture {
 protected:
  void add_decoder(const std::string& orders) {
    write_counting_decoder(folder_ / "counting");
    ::setenv("COUNTING_WORKER", orders.c_str(), 1);
    options_.decoders = {{.name = "chat", .model = (folder_ / "counting").string()}};
    decoder_program_ = counting_worker();
  }

  // A server with a decoder alone.
  void start_counting(const std::string& orders = "") {
    options_.models.clear();
    add_decoder(orders);
    start();
  }
  ~GenerationFixture() override { ::unsetenv("COUNTING_WORKER"); }

  HttpAnswer ask_chat(const std::string& more, const std::string& content = "x") {
    return post("/v1/chat/completions",
                R"({"model":"chat","messages":[{"role":"user","content":")" + content + R"("}])" +
                    more + "}");
  }

  // The objects of a stream; "[DONE]" is checked to be the last.
  static std::vector<Json> events(const HttpAnswer& answer) {
    std::vector<Json> all;
    std::string body = answer.body;
    bool is_done = false;
    while (!body.empty()) {
      const auto end = body.find("\n\n");
      if (end == std::string::npos || !body.starts_with("data: ") || is_done) {
        ADD_FAILURE() << body;
        break;
      }
      const auto line = body.substr(6, end - 6);
      body.erase(0, end + 2);
      is_done = line == "[DONE]";
      if (!is_done) all.push_back(Json::parse(line));
    }
    EXPECT_TRUE(is_done) << answer.body;
    return all;
  }

  // Asks for a stream on a connection of its own.
  UniqueFd begin_stream(
      const std::string& body = R"({"model":"chat","prompt":"a","stream":true})") {
    return begin_post("/v1/completions", body);
  }

  // Sends a request on a connection of its own and does not wait for the answer.
  UniqueFd begin_post(const std::string& path, const std::string& body) {
    auto client = connect_to(server_->port());
    const std::string request = "POST " + path +
                                " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                                "Content-Length: " +
                                std::to_string(body.size()) + "\r\n\r\n" + body;
    EXPECT_EQ(::send(client.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    return client;
  }

  // What comes, up to the piece with `mark`.
  static std::string read_until(const UniqueFd& client, std::string_view mark) {
    std::string got;
    while (got.find(mark) == std::string::npos) {
      std::array<char, 4096> piece{};
      const auto size = ::recv(client.get(), piece.data(), piece.size(), 0);
      if (size <= 0) {
        ADD_FAILURE() << got;
        break;
      }
      got.append(piece.data(), static_cast<std::size_t>(size));
    }
    return got;
  }

  // Waits until no reply is with a device; so many have been cancelled then.
  void expect_cancelled(std::size_t count) {
    while (metric("generation_running") != "0") std::this_thread::yield();
    const auto text = get("/metrics").body;
    const auto line =
        "muster_generation_ended_total{reason=\"cancelled\"} " + std::to_string(count) + "\n";
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }

  std::string metric(const std::string& name) {
    const auto text = get("/metrics").body;
    const auto at = text.find("\nmuster_" + name + " ");
    if (at == std::string::npos) return "none";
    const auto begin = at + name.size() + 9;
    return text.substr(begin, text.find('\n', begin) - begin);
  }
};

}  // namespace muster
