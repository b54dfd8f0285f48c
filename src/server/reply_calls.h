#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "server/exchange.h"
#include "serving/generation_service.h"

namespace muster {

// What every API for replies does with a body that has been read: the service's admission, the
// keys' limits, deadlines and the memory for answers are the same for all of them.
//
// Threads: the loop's.

/// How the fields are called in the body, for messages.
struct ReplyFieldNames {
  std::string_view prompt = "prompt";
  std::string_view token_limit = "max_tokens";
  std::string_view choices = "n";
};

/// What the request itself adds to a call: who asks, its deadline, the first decoder where the
/// model's name is empty. It is known to the audit log then.
///
/// Errors: 400, also for the name of a model that does not generate.
ApiStatus complete_reply(Exchange& exchange, GenerationCall& call);

/// Why the service did not do a call, naming the field of the body. A template that refuses a
/// prompt, or that it takes beyond a limit, would do so again: nobody should come again with it.
ApiError reply_error(const CallError& error, const ReplyFieldNames& names);

/// Of a whole answer, which is kept until its end; a stream keeps little. A part of the most that
/// it may take is held from the start, and more of it in pieces as it comes: few replies have their
/// limit of tokens, and a request that held all of that would keep others out for as long as it
/// runs.
class HeldReply {
 public:
  /// What could never be held is not computed: with log-probabilities an answer is far longer than
  /// its text.
  ///
  /// Errors: 400 for what is more than the server holds for a request, 503 where there is no room.
  /// calls: of one request, to one model.
  static ApiResult<HeldReply> hold(Exchange& exchange, std::span<const GenerationCall> calls,
                                   const ReplyFieldNames& names);

  /// So many bytes more have come. Errors: 503 where there is no room.
  ApiStatus keep(Exchange& exchange, std::uint64_t bytes);

 private:
  std::uint64_t held_bytes_ = 0;
  std::uint64_t kept_bytes_ = 0;
};

/// Of a stream, or of one of its choices, what is kept for a client that reads slowly. What is more
/// is written all the same: it counts for the server's memory then, and who takes nothing is cut
/// off.
inline constexpr std::size_t kUnsentReplyMost = 256 << 10;

/// What a stream of a reply begins with: no proxy is to hold its parts back. content_type: outlives
/// the response.
HttpResponse reply_stream_head(std::string_view content_type);

/// Known for the audit log however the reply ends, with its client too.
void count_reply_tokens(Exchange& exchange, const GenerationUsage& usage);

/// Gives a call to the service; it is cancelled when its client goes. What is returned cancels it,
/// too.
std::function<void()> begin_reply(const ExchangePtr& exchange, GenerationCall call,
                                  GenerationSink events);

}  // namespace muster
