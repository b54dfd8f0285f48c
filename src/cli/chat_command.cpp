// muster chat: questions and replies in turns, on a terminal or line by line from a pipe. What is
// said goes to standard output, all else to standard error. Ctrl-C stops a reply, not the
// conversation; a reply that was stopped stays as far as it came.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/chat_file.h"
#include "cli/command.h"
#include "cli/decoder_choice.h"
#include "cli/decoder_flags.h"
#include "cli/find_machine.h"
#include "cli/flag_number.h"
#include "cli/generate_report.h"
#include "cli/interrupt.h"
#include "cli/message_reader.h"
#include "cli/messages.h"
#include "cli/places.h"
#include "jobs/conversation.h"
#include "jobs/decoder_source.h"
#include "terminal/text_width.h"
#include "tokenizer/stop_strings.h"

namespace muster {
namespace {

constexpr std::uint64_t kContextMost = 1U << 20U;

constexpr std::string_view kHelp =
    "  /set NAME VALUE  system, max-tokens, temperature, top-k, top-p, min-p, seed,\n"
    "                   repetition-penalty, presence-penalty, frequency-penalty;\n"
    "                   without a value: as at the start\n"
    "  /show            what is set, and how long the conversation is\n"
    "  /clear           forgets what was said\n"
    "  /save FILE       keeps it, as a list of messages in JSON\n"
    "  /load FILE       goes on with what was kept\n"
    "  /bye             ends, as Ctrl-D does; Ctrl-C stops a reply\n"
    "A line that ends in \\ goes on in the next one; \"\"\" begins and ends several lines,\n"
    "and a message that begins with /.\n";

CommandSpec chat_spec() {
  return {
      .name = "chat",
      .summary = "talk with a decoder, in turns",
      .usage = "MODEL",
      .positional_least = 1,
      .positional_most = 1,
      .groups = {{"Conversation",
                  {},
                  {{"--system", "TEXT", "what the chat template puts before it"},
                   template_variables_flag(),
                   {"--load", "FILE", "go on with a conversation that /save has kept"},
                   {"--context", "N",
                    "tokens of all that is said, at most (default: 4096, or the model's limit)"}}},
                 {"Replies",
                  {},
                  joined({{"--max-tokens", "N", "tokens of a reply at most (default: 1024)"},
                          {"--stop", "TEXT", "ends a reply before this text; may be repeated", "",
                           true}},
                         sampling_flags())},
                 {"Output", {}, {{"--quiet", "", "the replies alone"}}},
                 {"Machine",
                  {SettingId::Devices, SettingId::DeviceCountMost, SettingId::CoresPerDevice,
                   SettingId::PrefixCache, SettingId::SpeculativeTokens, SettingId::KvCacheDtype,
                   SettingId::TorchRoot, SettingId::WorkerProgram, SettingId::CacheDir},
                  {{"--precision", "P",
                    "auto (measures; GPU: bf16), own (file's bits), bf16, fp32, int8"}}}},
      .examples =
          "  muster chat SmolLM2-135M-Instruct.Q4_1.gguf\n"
          "  muster chat MODEL --system \"Answer in one sentence.\" --temperature 0.8\n"
          "  printf 'Why is the sky blue?\\nAnd at night?\\n' | muster chat MODEL --quiet\n"
          "\n"
          "MODEL is a GGUF file, a folder in Hugging Face's layout or a name in the local hub\n"
          "cache. /help shows what can be typed beside messages. It runs on one CPU device,\n"
          "with all of its cores, or on the GPU that --devices names.\n",
  };
}

/// The loop of one conversation.
class ChatLoop {
 public:
  /// loaded: what was said before.
  ChatLoop(const CommandContext& context, ReplySettings settings, std::vector<ChatMessage> loaded)
      : context_(context),
        loaded_(std::move(loaded)),
        first_(settings),
        settings_(std::move(settings)),
        is_quiet_(context.arguments.has("--quiet")),
        is_terminal_(::isatty(STDIN_FILENO) != 0),
        shows_prompt_(is_terminal_ && ::isatty(STDERR_FILENO) != 0),
        is_read_by_person_(::isatty(STDOUT_FILENO) != 0),
        reader_(STDIN_FILENO, [this](bool is_first) { prompt(is_first); }) {}

  Result<int> run(ConversationOptions options) {
    Conversation::Events events;
    events.on_text = [this](std::string_view text) { return put(text); };
    events.on_notice = [this](const std::string& sentence) { say(sentence); };
    conversation_ = MUSTER_TRY(Conversation::start(std::move(options), events, context_.clock));
    conversation_->set_messages(std::move(loaded_));
    if (is_terminal_ && !is_quiet_) say("/help shows what can be typed; Ctrl-D ends");
    while (!is_over_) {
      const auto next = MUSTER_TRY(reader_.next([] { return interrupt_signal() != 0; }));
      if (next.why == MessageReader::Why::End) break;
      if (next.why == MessageReader::Why::Interrupted) {
        if (ends_at_interrupt()) return 128 + interrupt_signal();
        fmt::print(stderr, "\n");
        say("Ctrl-D or /bye ends");
        forget_interrupt();
        continue;
      }
      if (trim(next.message.text).empty()) continue;
      MUSTER_TRY(next.message.is_command ? run_command(next.message.text) : reply_to(next.message));
      if (context_.output.is_reader_gone()) break;
      if (interrupt_signal() != 0) {
        if (ends_at_interrupt()) return 128 + interrupt_signal();
        forget_interrupt();
      }
    }
    if (shows_prompt_ && !is_over_) fmt::print(stderr, "\n");
    return first_wrong_ ? exit_code(*first_wrong_) : 0;
  }

 private:
  // A person can say /bye; a script has only the signal.
  bool ends_at_interrupt() const { return !is_terminal_ || interrupt_signal() != SIGINT; }

  void prompt(bool is_first) const {
    if (shows_prompt_) fmt::print(stderr, "{}", is_first ? "> " : "  ");
  }
  void say(const std::string& sentence) const {
    if (!is_quiet_) muster::say(Tone::Notice, sentence, context_.color);
  }
  void complain(const Error& error) const {
    muster::say(Tone::Error, error.message, context_.color);
  }

  // A reply is text from outside: a person's terminal does nothing that it says.
  Status put(std::string_view text) {
    auto done = is_read_by_person_ ? context_.output.append(printable_lines(text))
                                   : context_.output.append(text);
    if (done) done = context_.output.flush();
    is_output_broken_ |= !done;
    return done;
  }

  // A person sees what is wrong and types it again. A script goes on, too, but for a conversation
  // that is not there, and its exit code tells.
  Status run_command(const std::string& line) {
    const auto done = command(line);
    if (done) return done;
    if (!is_terminal_ && line.starts_with("/load")) return done;
    complain(done.error());
    if (!is_terminal_ && !first_wrong_) first_wrong_ = done.error().kind;
    return Done{};
  }

  // A script ends at what cannot be answered. A person's conversation goes on where only this
  // message is wrong, and where there is something that can still be saved.
  Status reply_to(const MessageReader::Message& message) {
    if (message.may_be_cut) {
      complain({ErrorKind::InvalidArgument,
                "a terminal passes on the first 4,095 bytes of a line, and this one may be longer: "
                "put it into several lines between \"\"\", or into a file before a pipe"});
      return Done{};
    }
    const auto reply = conversation_->say(message.text, settings_, [this] {
      return interrupt_signal() != 0 || context_.output.is_reader_gone();
    });
    if (reply) {
      MUSTER_TRY(put("\n"));
      if (!is_quiet_) tell(*reply);
      return Done{};
    }
    const bool can_go_on =
        reply.error().kind == ErrorKind::InvalidArgument || !conversation_->messages().empty();
    if (!is_terminal_ || is_output_broken_ || !can_go_on) return reply.error();
    complain(reply.error());
    return Done{};
  }

  static std::optional<std::string> nearest_command(std::string_view name) {
    const std::vector<std::string> known{"set", "show", "clear", "save", "load", "bye", "help"};
    return nearest_name(std::string(name), known);
  }

  void tell(const ConversationReply& reply) const {
    if (reply.left_out_count > 0) {
      say(fmt::format("the context of {} tokens is full: the oldest {} messages were left out",
                      conversation_->context_tokens(), reply.left_out_count));
    }
    if (reply.reply_tokens == 0) {
      return say(reply.end == GenerateEnd::Interrupted ? "stopped before the first token"
                                                       : "the reply is empty");
    }
    std::string text = fmt::format("{} tokens, the first after {:.2f} s", reply.reply_tokens,
                                   reply.first_token_seconds);
    if (reply.reply_tokens > 1 && reply.decode_seconds > 0) {
      text += fmt::format(", {:.1f} tokens/s", (reply.reply_tokens - 1) / reply.decode_seconds);
    }
    text += cut_words(reply.end, reply.is_context_full);
    say(text);
  }

  Status command(const std::string& line) {
    const auto words = std::string_view(line).substr(1);
    const auto space = words.find(' ');
    const auto name = words.substr(0, space);
    const std::string rest(space == std::string_view::npos ? std::string_view()
                                                           : trim(words.substr(space + 1)));
    const bool takes_file = name == "save" || name == "load";
    if (takes_file && rest.empty()) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("/{} wants a file: /{} talk.json", name, name)};
    }
    if (name == "save") return save_chat(rest, {settings_.system, conversation_->messages()});
    if (name == "load") return load(rest);
    if (name == "set") return set(rest);
    if (name == "help") {
      fmt::print(stderr, "{}", kHelp);
    } else if (name == "show") {
      show();
    } else if (name == "clear") {
      conversation_->set_messages({});
    } else if (name == "bye" || name == "exit" || name == "quit") {
      is_over_ = true;
    } else {
      const auto nearest = nearest_command(name);
      return Error{
          ErrorKind::InvalidArgument,
          fmt::format("there is no /{}{}", name,
                      nearest ? "; nearest is /" + *nearest : "; /help shows what there is")};
    }
    return Done{};
  }

  Status load(const std::string& file) {
    std::error_code ignored;
    const auto status = std::filesystem::status(file, ignored);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
      return Error{ErrorKind::InvalidArgument, file + ": this is not a file with a conversation"};
    }
    auto chat = MUSTER_TRY(load_chat(file));
    conversation_->set_messages(std::move(chat.messages));
    settings_.system = chat.system ? std::move(chat.system) : first_.system;
    return Done{};
  }

  // `system Answer briefly.`, `top-k 40`, `top-k`.
  Status set(const std::string& words) {
    const auto space = words.find(' ');
    auto name = words.substr(0, space);
    std::replace(name.begin(), name.end(), '_', '-');
    const auto value = space == std::string::npos
                           ? ""
                           : std::string(trim(std::string_view(words).substr(space + 1)));
    if (name == "system") {
      MUSTER_TRY(check_prompt_text("the system's text", value));
      settings_.system = value.empty() ? first_.system : std::optional(value);
      return Done{};
    }
    if (name == "max-tokens") {
      settings_.token_limit =
          value.empty() ? first_.token_limit : MUSTER_TRY(reply_tokens("/set " + name, value));
      return Done{};
    }
    std::vector<std::string> names{"system", "max-tokens"};
    for (const auto& flag : sampling_flags()) names.push_back(flag.name.substr(2));
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const auto nearest = nearest_name(name, names);
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("/set knows no \"{}\"{}", name,
                               nearest ? "; nearest is " + *nearest
                                       : fmt::format(": {}", fmt::join(names, ", ")))};
    }
    if (value.empty()) {
      reset_sampling("--" + name, first_.sampling, settings_.sampling);
      return Done{};
    }
    MUSTER_TRY(set_sampling("--" + name, "/set " + name, value, settings_.sampling));
    const bool is_of_draws = name == "top-k" || name == "top-p" || name == "min-p";
    if (is_of_draws && settings_.sampling.temperature == 0) {
      say(name + " counts where tokens are drawn: /set temperature 0.8");
    }
    return Done{};
  }

  void show() const {
    const auto& sampling = settings_.sampling;
    fmt::print(stderr,
               "  system              {}\n  max-tokens          {}\n  temperature         {}\n"
               "  top-k               {}\n  top-p               {}\n  min-p               {}\n"
               "  repetition-penalty  {}\n  presence-penalty    {}\n  frequency-penalty   {}\n"
               "  seed                {}\n  {} messages; the context has {} tokens\n",
               printable(settings_.system.value_or("none")), settings_.token_limit,
               sampling.temperature, top_k_text(sampling), sampling.top_p, sampling.min_p,
               sampling.repetition_penalty, sampling.presence_penalty, sampling.frequency_penalty,
               sampling.seed, conversation_->messages().size(), conversation_->context_tokens());
  }

  const CommandContext& context_;
  std::vector<ChatMessage> loaded_;
  const ReplySettings first_;  // as the command line has them
  ReplySettings settings_;
  const bool is_quiet_;
  const bool is_terminal_;        // a person types
  const bool shows_prompt_;       // and sees what is said
  const bool is_read_by_person_;  // what the model says
  MessageReader reader_;
  std::unique_ptr<Conversation> conversation_;
  bool is_over_ = false;
  bool is_output_broken_ = false;
  std::optional<ErrorKind> first_wrong_;  // of a script's commands
};

Result<DecoderPrecision> settled_precision(const CommandContext& context,
                                           const ConversationOptions& options) {
  const auto say = [&](const std::string& sentence) {
    if (!context.arguments.has("--quiet")) muster::say(Tone::Notice, sentence, context.color);
  };
  const auto choice = MUSTER_TRY(chosen_precision(context,
                                                  {.source = options.source,
                                                   .device = options.device,
                                                   .memory_bytes = available_memory(context.config),
                                                   .worker_program = options.worker_program,
                                                   .torch_root = options.torch_root},
                                                  say));
  if (const auto why = precision_sentence(choice); !why.empty()) say(why);
  return choice.precision;
}

Result<int> run_chat(const CommandContext& context) {
  const auto& arguments = context.arguments;
  ReplySettings settings;
  std::vector<ChatMessage> loaded;
  if (const auto file = arguments.value("--load")) {
    auto chat = MUSTER_TRY(load_chat(*file));
    settings.system = std::move(chat.system);
    loaded = std::move(chat.messages);
  }
  if (const auto system = arguments.value("--system")) settings.system = system;
  MUSTER_TRY(check_prompt_text("the system's text", settings.system.value_or("")));
  settings.token_limit = MUSTER_TRY(reply_tokens_of(arguments, settings.token_limit));
  settings.stops = arguments.values("--stop");
  for (const auto& stop : settings.stops) MUSTER_TRY(check_prompt_text("--stop", stop));
  MUSTER_TRY(StopStrings::make(settings.stops));
  settings.sampling = MUSTER_TRY(sampling_options(arguments));
  ConversationOptions options;
  if (const auto tokens = arguments.value("--context")) {
    options.context_tokens = static_cast<std::uint32_t>(
        MUSTER_TRY(whole_number_of("--context", *tokens, {16, kContextMost, 4096})));
  }
  options.template_variables = MUSTER_TRY(template_variables_of(arguments));
  const auto named = MUSTER_TRY(named_precision(arguments));
  options.source = MUSTER_TRY(find_decoder_source(arguments.positionals.front()));
  options.device = MUSTER_TRY(decoder_device(context));
  MUSTER_TRY(check_decoder_numbers(named, context.config, options.device));
  options.kv_cache_dtype = kv_cache_dtype_of(context.config);
  options.has_prefix_cache = context.config.is_on(SettingId::PrefixCache).value_or(true);
  options.drafted_tokens_most = drafted_tokens_most(context.config);
  options.worker_program = MUSTER_TRY(find_worker_program(context.config)).path;
  options.torch_root = MUSTER_TRY(find_torch_root(context.config)).path;
  catch_interrupts();
  const auto precision = settled_precision(context, options);
  if (!precision) return ended_before_reply(context, precision.error());
  options.precision = *precision;
  return ChatLoop(context, std::move(settings), std::move(loaded)).run(std::move(options));
}

}  // namespace

Command chat_command() { return {chat_spec(), run_chat}; }

}  // namespace muster
