#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "server/exchange.h"
#include "serving/step_thread.h"

namespace muster {

// Where a body is read, by its length in bytes. A short one has a few texts. One of medium length
// may have 2,048: then looking for their vectors in the cache takes the loop 2 ms. Reading a long
// one takes a millisecond a mebibyte, half of it for pages that are touched for the first time: 15
// texts of 1 MiB took 12 to 20 ms of one turn. Measured on 2026-11-27 with the attacks of `./accept
// ground.5`, on two cores with AVX512.
inline constexpr std::size_t kShortBody = 4 << 10;
inline constexpr std::size_t kMediumBody = 128 << 10;

/// Has the body of a request read by `parse` and gives what it says to `take`; a body that cannot
/// be read is refused with what `parse` found. A short one is read at once, one of medium length in
/// a turn of the loop of its own. A long one is read on a thread beside the loop, one after the
/// other. A request whose client goes meanwhile is dropped.
///
/// parse: ApiResult<Call>(std::string body). It keeps no reference to what is the loop's.
/// take: void(Call). It is called on the loop.
/// Threads: the loop's.
template <typename Parse, typename Take>
void read_call(const ExchangePtr& exchange, Parse parse, Take take) {
  using Read = std::invoke_result_t<Parse, std::string>;
  std::string text = std::move(exchange->request.body);
  const auto size = text.size();
  auto go_on = [exchange, take = std::move(take)](Read read) {
    if (!read) return exchange->refuse(read.error());
    take(*std::move(read));
  };
  if (size <= kShortBody) return go_on(parse(std::move(text)));
  struct Body {
    std::string text;
    std::optional<Read> read = {};
  };
  const auto body = std::make_shared<Body>(Body{.text = std::move(text)});
  auto read = [body, parse = std::move(parse)] {
    body->read.emplace(parse(std::move(body->text)));
    return true;
  };
  if (size > kMediumBody) {
    StepThread& readers = *exchange->state().readers;
    const auto id = readers.run(std::move(read), [body, go_on] { go_on(*std::move(body->read)); });
    return exchange->on_client_gone([&readers, id] { readers.cancel(id); });
  }
  exchange->on_client_gone([] {});
  exchange->state().tasks->add([exchange, body, read, go_on] {
    if (exchange->is_answered()) return false;  // the client has gone
    read();
    go_on(*std::move(body->read));
    return false;
  });
}

}  // namespace muster
