#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "chat/chat_message.h"
#include "chat/chat_template.h"
#include "chat/decoder_text.h"
#include "chat/template_variables.h"
#include "jobs/decoder_session.h"
#include "jobs/generate.h"

namespace muster {

struct ConversationOptions {
  std::filesystem::path source;  // a GGUF file or a folder in Hugging Face's layout
  std::uint32_t context_tokens =
      4096;  // of prompt and reply; the model's own limit if that is less
  DecoderPrecision precision = DecoderPrecision::Own;
  KvCacheDtype kv_cache_dtype = KvCacheDtype::Auto;
  TemplateVariables template_variables = {};
  bool has_prefix_cache = true;  // a reply is computed behind what the ones before have left
  std::uint32_t drafted_tokens_most = 0;  // as DecoderSessionOptions
  Device device;
  std::filesystem::path worker_program;
  std::filesystem::path torch_root;
};

/// How replies are made; may be another for each.
struct ReplySettings {
  std::optional<std::string> system;    // before all messages
  std::uint32_t token_limit = 1024;     // of a reply
  std::vector<std::string> stops = {};  // texts that end it; they are left out of it
  SamplingOptions sampling = {};
};

/// What a reply took.
struct ConversationReply {
  GenerateEnd end = GenerateEnd::Length;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t reply_tokens = 0;
  std::size_t left_out_count = 0;  // oldest messages for which the context had no room
  bool is_context_full = false;    // it ended because the context did
  double first_token_seconds = 0;  // from the question; 0 where no token came
  double decode_seconds = 0;       // from the first token to the last
};

/// A conversation with one decoder on one device. The worker keeps nothing of it that must survive:
/// each reply is asked for with all messages, and goes on after the death of the worker.
///
/// Threads: not thread-safe.
class Conversation {
 public:
  struct Events {
    /// Text of a reply as it is certain; never ends within a character.
    std::function<Status(std::string_view)> on_text;
    std::function<void(const std::string&)> on_notice;
  };

  /// Starts the worker and reads the model's text side; the decoder loads while the caller goes on.
  ///
  /// Errors: those of the model's files; NotFound for a model without a chat template; those of
  /// DecoderSession::start.
  static Result<std::unique_ptr<Conversation>> start(ConversationOptions options, Events events,
                                                     const Clock& clock);
  ~Conversation();

  /// Says something, and streams the reply; both are messages from then on, a reply that was
  /// cancelled as far as it came, and neither where nothing came. Messages that are too old for the
  /// context are left out of what the model sees, and stay; what has to go makes room for a reply
  /// of token_limit tokens or a quarter of the context, whichever is less.
  ///
  /// Errors: InvalidArgument (not UTF-8, or longer than the context by itself), those of the
  /// template, of DecoderSession and of on_text. Then neither is a message.
  Result<ConversationReply> say(const std::string& text, const ReplySettings& settings,
                                const std::function<bool()>& cancelled);

  const std::vector<ChatMessage>& messages() const { return messages_; }
  void set_messages(std::vector<ChatMessage> messages) { messages_ = std::move(messages); }

  /// Tokens of prompt and reply together; may become less when the worker has loaded the model.
  std::uint32_t context_tokens() const { return context_tokens_; }

 private:
  struct Inside;

  Conversation(Events events, const Clock& clock);
  Result<std::vector<TokenId>> ids_of(const std::vector<ChatMessage>& messages) const;
  Result<std::vector<TokenId>> fitting_ids(const ReplySettings& settings,
                                           std::size_t& left_out) const;

  const Events events_;
  const Clock& clock_;
  std::uint32_t context_tokens_ = 0;
  std::vector<ChatMessage> messages_;
  std::unique_ptr<Inside> inside_;
};

}  // namespace muster
