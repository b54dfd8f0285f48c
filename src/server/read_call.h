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

/// A longer body is read beside the loop. It takes a millisecond a mebibyte, half of that for pages
/// that are touched for the first time: 15 texts of 1 MiB took 12 to 20 ms of one turn (2026-11-27,
/// the attacks of `./accept ground.5`, two cores with AVX512).
inline constexpr std::size_t kLongBody = 128 << 10;

/// Has the body of a request read by `parse` and gives what it says to `take`; a body that cannot
/// be read is refused with what `parse` found. A long one is read on a thread beside the loop, one
/// after the other; all others are read at once. A request whose client goes meanwhile is dropped.
///
/// parse: ApiResult<Call>(std::string body). It keeps no reference to what is the loop's.
/// take: void(const ExchangePtr&, Call). It is called on the loop.
/// Threads: the loop's.
template <typename Parse, typename Take>
void read_call(const ExchangePtr& exchange, Parse parse, Take take) {
  using Read = std::invoke_result_t<Parse, std::string>;
  std::string text = std::move(exchange->request.body);
  auto go_on = [exchange, take = std::move(take)](Read read) {
    if (exchange->is_answered()) return;
    if (!read) return exchange->refuse(read.error());
    take(exchange, *std::move(read));
  };
  if (text.size() <= kLongBody) return go_on(parse(std::move(text)));
  struct Body {
    std::string text;
    std::optional<Read> read = {};
  };
  const auto body = std::make_shared<Body>(Body{.text = std::move(text)});
  auto read = [body, parse = std::move(parse)] {
    body->read.emplace(parse(std::move(body->text)));
    return true;
  };
  StepThread& readers = *exchange->state().readers;
  const auto id = readers.run(std::move(read), [body, go_on] { go_on(*std::move(body->read)); });
  exchange->on_client_gone([&readers, id] { readers.cancel(id); });
}

}  // namespace muster
