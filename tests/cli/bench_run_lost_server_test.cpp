// `muster bench run` where the server that runs already is lost.

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "bench_run_fixture.h"
#include "net/http_server.h"

namespace muster {
namespace {

const std::vector<std::string> kSlowServer{"--law", "deterministic", "--mean", "0.02"};
const std::string kVector =
    R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,0.5]}],)"
    R"("model":"null","usage":{"prompt_tokens":8,"total_tokens":8}})";

TEST_F(BenchRunCommand, KeepsWhatIsFinishedWhenTheServerIsLost) {
  const auto url = null_server(kSlowServer);
  write_slow_sweep(url);
  const auto pid = muster_.start({"bench", "run", "b.yaml"});
  wait_for_points(1, pid);
  server_.reset();
  const auto finished = muster_.wait(pid);
  EXPECT_EQ(finished.exit_code, 6) << finished.err;
  EXPECT_NE(finished.err.find(" of 6 points are in x.csv; --resume measures the others\n"),
            std::string::npos)
      << finished.err;
  const auto kept = records().size();
  EXPECT_GE(kept, 1U);
  EXPECT_LT(kept, 6U);
  expect_table_equals_files();
  null_server(kSlowServer, url.substr(7));
  measure({"--resume"});
  EXPECT_EQ(table().row_count(), 6U);
}

// The server is this process. It is gone with the last request of the first point, of which three
// were answered: whether it was lost, no run of failures shows.
TEST_F(BenchRunCommand, MeasuresAPointAgainWhoseLastRequestLostTheServer) {
  std::vector<HttpRespond> held;
  std::promise<void> last;
  std::atomic<int> asked = 0;
  HttpServerOptions options;
  options.listen = {"127.0.0.1", 0};
  auto server =
      HttpServer::start(options, [&](const HttpRequest& request, const HttpRespond& respond) {
        if (request.method != "POST") return respond({.status = 200, .body = "{}"});
        if (++asked != 4) return respond({.status = 200, .body = kVector});
        held.push_back(respond);
        last.set_value();
      });
  ASSERT_TRUE(server) << server.error().message;
  muster_.write("b.yaml", "backend: {url: \"http://127.0.0.1:" + std::to_string((*server)->port()) +
                              "\", model: \"null\", task: embed}\n"
                              "scenario: {num_samples: 4, warm_up: none, "
                              "input_shapes: {sequence_length: [8, 9]}}\n"
                              "metrics: {enabled: false}\nreporter: {output_file: x.csv}\n");
  const auto pid = muster_.start({"bench", "run", "b.yaml"});
  const auto come = last.get_future().wait_for(std::chrono::seconds(60));
  EXPECT_EQ(come, std::future_status::ready);
  (*server).reset();
  const auto finished = muster_.wait(pid);
  EXPECT_EQ(finished.exit_code, 6) << finished.err;
  EXPECT_NE(finished.err.find("muster: not measured: the server was lost meanwhile: "),
            std::string::npos)
      << finished.err;
  EXPECT_TRUE(
      finished.err.ends_with("; 0 of 2 points are in x.csv; --resume measures the others\n"))
      << finished.err;
  EXPECT_TRUE(records().empty());
}

}  // namespace
}  // namespace muster
