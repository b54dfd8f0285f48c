// The public face of the server. All work is done by HttpServerCore on the loop's thread; here
// it is only decided whose thread that is. A server with a loop of its own stops that loop and
// joins its thread before the core goes, so no callback can come after the destructor.

#include "net/http_server.h"

#include <utility>

#include "net/http_server_core.h"

namespace muster {

HttpServer::HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options,
                                                      EventLoop& loop, HttpHandler handler) {
  std::unique_ptr<HttpServer> server(new HttpServer());
  server->core_ = std::make_unique<HttpServerCore>(options, loop, std::move(handler));
  MUSTER_TRY(server->core_->listen());
  return server;
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options,
                                                      HttpHandler handler) {
  auto loop = std::make_unique<EventLoop>();
  auto server = MUSTER_TRY(start(options, *loop, std::move(handler)));
  server->own_loop_ = std::move(loop);
  server->own_thread_ = std::jthread([own = server->own_loop_.get()] { own->run(); });
  return server;
}

HttpServer::~HttpServer() {
  if (!own_thread_.joinable()) return;
  own_loop_->stop();
  own_thread_.join();
}

std::uint16_t HttpServer::port() const { return core_->port(); }
void HttpServer::stop_listening() { core_->stop_listening(); }
void HttpServer::drain(std::function<void()> on_sent) { core_->drain(std::move(on_sent)); }
bool HttpServer::is_draining() const { return core_->is_closing; }
void HttpServer::give_up() { core_->give_up(); }
Status HttpServer::reload_tls(const TlsOptions& options) { return core_->reload_tls(options); }
std::size_t HttpServer::connection_count() const { return core_->connection_count(); }
const MemoryBudget& HttpServer::memory() const { return core_->budget; }
const HttpServerCounters& HttpServer::counters() const { return core_->counters; }

}  // namespace muster
