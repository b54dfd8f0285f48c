// Parsing is done once and a run costs only what it executes. Three scopes lie above each other,
// from built-in functions through the conversation's variables to the template's own names, so a
// template may shadow a function but never change it for another run. The time comes from the
// input, which makes a run repeatable. Lists and maps that a function makes are charged to the
// budget, since templates come with models and are not trusted.

#include "chat/chat_template.h"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <utility>

#include "base/text.h"
#include "chat/filters.h"
#include "chat/template_parser.h"
#include "chat/template_run.h"

// A template is read once and run for each conversation; here are the variables and functions that
// it finds, as transformers' render_jinja_template hands them over.

namespace muster {
namespace {

using Value = Result<ChatValue>;

/// Jinja's sandbox allows no longer ranges. Source: Jinja 3.1, sandbox.py, MAX_RANGE.
constexpr std::int64_t kRangeMax = 100'000;

/// A function of the environment, as a plain one.
template <typename Body>
class BuiltIn final : public ChatFunction {
 public:
  explicit BuiltIn(Body body) : body_(std::move(body)) {}
  Value call(const ChatArguments& arguments, ChatBudget& budget) const override {
    return body_(arguments, budget);
  }

 private:
  const Body body_;
};

template <typename Body>
ChatValue function_of(Body body) {
  std::shared_ptr<const ChatFunction> function = std::make_shared<BuiltIn<Body>>(std::move(body));
  return ChatValue(std::move(function));
}

// A step may pass the end of 64 bits; the overflow ends the range as reaching its end would.
Value range(const ChatArguments& arguments, ChatBudget& budget) {
  MUSTER_TRY(check_arguments("range", arguments, SIZE_MAX, ""));
  std::array<std::int64_t, 3> bounds{0, 0, 1};
  const auto& values = arguments.values;
  if (values.empty() || values.size() > 3)
    return invalid_error("range takes one to three integers");
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto* integer = values[i].as_integer();
    if (integer == nullptr) return invalid_error("range takes one to three integers");
    bounds[values.size() == 1 ? 1 : i] = *integer;
  }
  const auto [begin, end, step] = bounds;
  if (step == 0) return invalid_error("a range with a step of 0");
  ChatValue::List list;
  for (auto i = begin; step > 0 ? i < end : i > end;) {
    if (static_cast<std::int64_t>(list.size()) >= kRangeMax) {
      return Error{ErrorKind::ResourceExhausted,
                   fmt::format("a range of more than {} integers", kRangeMax)};
    }
    MUSTER_TRY(budget.take(sizeof(ChatValue)));
    list.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return ChatValue(std::move(list));
}

// A name that is given twice keeps its place and takes the later value.
void put_entry(const std::string& name, const ChatValue& value, ChatValue::Map& map) {
  for (auto& [key, each] : map) {
    if (key != name) continue;
    each = value;
    return;
  }
  map.emplace_back(name, value);
}

// The one value that a template may change after it was made: assignments in a loop do not leave
// it.
Value make_namespace(const ChatArguments& arguments, ChatBudget& budget) {
  if (arguments.values.size() > 1) return invalid_error("namespace takes one map");
  auto made = std::make_shared<ChatValue::Namespace>();
  if (!arguments.values.empty()) {
    if (arguments.values.front().as_map() == nullptr) return invalid_error("namespace takes a map");
    made->fields = *arguments.values.front().as_map();
  }
  for (const auto& [name, value] : arguments.named) {
    if (value.as_namespace() != nullptr) {
      return Error{ErrorKind::Unsupported, "a namespace within a namespace is not known"};
    }
    MUSTER_TRY(budget.spend(made->fields.size()));
    put_entry(name, value, made->fields);
  }
  MUSTER_TRY(budget.take(made->fields.size() * sizeof(ChatValue)));
  return ChatValue(std::move(made));
}

Value make_map(const ChatArguments& arguments, ChatBudget& budget) {
  if (arguments.values.size() > 1) return invalid_error("dict takes one map");
  ChatValue::Map map;
  if (!arguments.values.empty()) {
    if (arguments.values.front().as_map() == nullptr) return invalid_error("dict takes a map");
    map = *arguments.values.front().as_map();
  }
  for (const auto& [name, value] : arguments.named) {
    MUSTER_TRY(budget.spend(map.size()));
    put_entry(name, value, map);
  }
  MUSTER_TRY(budget.take(map.size() * sizeof(ChatValue)));
  return ChatValue(std::move(map));
}

Value raise(const ChatArguments& arguments, ChatBudget& budget) {
  MUSTER_TRY(check_arguments("raise_exception", arguments, 1, "message"));
  const auto* message = arguments.find(0, "message");
  const auto reason = message == nullptr ? std::string("no reason given")
                                         : MUSTER_TRY(paid_text_of(*message, budget));
  return invalid_error("the template refuses the conversation: " + reason);
}

// In UTC, so that the result does not depend on the machine. The length is bounded because some
// fields of a format can be given any width.
Value show_time(std::int64_t now, const ChatArguments& arguments) {
  MUSTER_TRY(check_arguments("strftime_now", arguments, 1, "format"));
  const auto* format = arguments.find(0, "format");
  const auto* text = format == nullptr ? nullptr : format->as_text();
  if (text == nullptr || text->size() > 200) return invalid_error("strftime_now takes a format");
  const std::time_t seconds = now;
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return invalid_error("a time out of range");
  if (text->find('\0') != std::string::npos) return invalid_error("a time format with a NUL");
  // strftime says neither how long its text is nor whether an empty one is a fault. The mark stands
  // first, as a format may end in a lone %.
  std::array<char, 4096> buffer{};
  const auto size = std::strftime(buffer.data(), buffer.size(), ("x" + *text).c_str(), &parts);
  if (size == 0) return invalid_error("a time format that gives more than 4095 bytes");
  return ChatValue(std::string(buffer.data() + 1, size - 1));
}

std::shared_ptr<ChatScope> environment(std::int64_t now) {
  auto scope = std::make_shared<ChatScope>();
  scope->set("range", function_of(range));
  scope->set("namespace", function_of(make_namespace));
  scope->set("dict", function_of(make_map));
  scope->set("raise_exception", function_of(raise));
  scope->set("strftime_now",
             function_of([now](const ChatArguments& arguments, ChatBudget& /*budget*/) {
               return show_time(now, arguments);
             }));
  return scope;
}

}  // namespace

struct ChatTemplate::Program {
  TemplateBlock block;
};

ChatTemplate::ChatTemplate(std::unique_ptr<const Program> program) : program_(std::move(program)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view text) {
  auto program = std::make_unique<Program>();
  program->block = MUSTER_TRY(parse_template(text));
  return ChatTemplate(std::move(program));
}

// bos_token and eos_token are set only where the model has them: templates test whether they are
// defined.
Result<std::string> ChatTemplate::render(const ChatInput& input, const ChatLimits& limits) const {
  ChatBudget budget(limits);
  TemplateRun run(budget, limits.output_bytes_max);
  auto variables = std::make_shared<ChatScope>();
  variables->parent = environment(input.now_unix);
  for (const auto& [name, value] : input.variables) variables->set(name, value);
  variables->set("messages", input.messages);
  variables->set("tools", input.tools);
  variables->set("documents", input.documents);
  variables->set("add_generation_prompt", input.adds_generation_prompt);
  if (!input.bos_token.empty()) variables->set("bos_token", input.bos_token);
  if (!input.eos_token.empty()) variables->set("eos_token", input.eos_token);
  auto top = std::make_shared<ChatScope>();
  top->parent = variables;
  std::string out;
  MUSTER_TRY(run.run(program_->block, top, out));
  // A template's own text and a file's special tokens may be any bytes.
  if (const auto at = invalid_utf8_at(out)) {
    return invalid_error(fmt::format("the text of the conversation is not UTF-8 at byte {}", *at));
  }
  return out;
}

}  // namespace muster
