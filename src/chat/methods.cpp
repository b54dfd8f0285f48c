// Methods of Python's str, dict and list that templates call. Only those that chat templates use
// are there; another one is refused by name instead of guessed. A method that would change its
// object is left out: values are shared between runs and never change. Where a filter does the same
// work the method calls it. Places in texts count characters, as in Python.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "chat/filters.h"
#include "chat/list_filters.h"
#include "chat/text_work.h"

namespace muster {
namespace {

using Value = Result<ChatValue>;

constexpr std::array<std::string_view, 11> kMapMethods{
    "clear", "copy",    "fromkeys",   "get",    "items", "keys",
    "pop",   "popitem", "setdefault", "update", "values"};
constexpr auto kTextMethods = std::to_array<std::string_view>(
    {"capitalize",   "casefold",    "center",    "count",      "encode",       "endswith",
     "expandtabs",   "find",        "format",    "format_map", "index",        "isalnum",
     "isalpha",      "isascii",     "isdecimal", "isdigit",    "isidentifier", "islower",
     "isnumeric",    "isprintable", "isspace",   "istitle",    "isupper",      "join",
     "ljust",        "lower",       "lstrip",    "maketrans",  "partition",    "removeprefix",
     "removesuffix", "replace",     "rfind",     "rindex",     "rjust",        "rpartition",
     "rsplit",       "rstrip",      "split",     "splitlines", "startswith",   "strip",
     "swapcase",     "title",       "translate", "upper",      "zfill"});
// Of a list and a tuple. Jinja's sandbox leaves out those that change a list.
constexpr auto kListMethods = std::to_array<std::string_view>({"count", "index"});

/// What of a method's arguments is read: so many by place, and these by name.
struct Method {
  std::string_view name;
  std::size_t place_count;
  std::string_view names = {};
};
// `join`, `get` and the like are not there without their first argument; they look themselves.
constexpr auto kTextArguments = std::to_array<Method>({
    {"capitalize", 0},
    {"count", 1},
    {"endswith", 1},
    {"find", 1},
    {"isdigit", 0},
    {"join", 1},
    {"lower", 0},
    {"lstrip", 1},
    {"replace", 3},
    {"rfind", 1},
    {"rstrip", 1},
    {"split", 2, "sep maxsplit"},
    {"splitlines", 0},
    {"startswith", 1},
    {"strip", 1},
    {"upper", 0},
});
constexpr auto kMapArguments =
    std::to_array<Method>({{"copy", 0}, {"get", 2}, {"items", 0}, {"keys", 0}, {"values", 0}});
constexpr auto kListArguments = std::to_array<Method>({{"count", 1}, {"index", 1}});

/// Python has more arguments of some methods: where a search begins, whether ends of lines are
/// kept.
template <std::size_t kCount>
Status check_method(const std::array<Method, kCount>& methods, std::string_view name,
                    const ChatArguments& arguments) {
  const auto* found = std::find_if(methods.begin(), methods.end(),
                                   [&](const Method& each) { return each.name == name; });
  if (found == methods.end()) return Done{};
  return check_arguments(name, arguments, found->place_count, found->names);
}

Error unknown(const ChatValue& object, std::string_view name) {
  return Error{ErrorKind::Unsupported, fmt::format("a method of {} that is not known: {}",
                                                   kind_name(object), name.substr(0, 40))};
}

/// A text argument; none counts as absent.
Result<std::optional<std::string_view>> text_at(const ChatArguments& arguments, std::size_t place,
                                                std::string_view name) {
  const auto* found = arguments.find(place, name);
  if (found == nullptr || found->is_none()) return std::optional<std::string_view>();
  if (found->as_text() == nullptr) {
    return invalid_error(fmt::format("a text is expected, not {}", kind_name(*found)));
  }
  return std::optional<std::string_view>(*found->as_text());
}

std::optional<std::int64_t> integer_at(const ChatArguments& arguments, std::size_t place,
                                       std::string_view name) {
  const auto* found = arguments.find(place, name);
  const auto* integer = found == nullptr ? nullptr : found->as_integer();
  return integer == nullptr ? std::nullopt : std::optional(*integer);
}

Value strip(const std::string& text, std::string_view name, const ChatArguments& arguments,
            ChatBudget& budget) {
  const auto characters = MUSTER_TRY(text_at(arguments, 0, "chars"));
  if (characters) MUSTER_TRY(budget.take(characters->size() * sizeof(char32_t)));
  const auto ends = name == "lstrip"   ? StripEnds::Left
                    : name == "rstrip" ? StripEnds::Right
                                       : StripEnds::Both;
  const auto stripped = stripped_text(text, ends, characters);
  MUSTER_TRY(budget.take(stripped.size()));
  return ChatValue(stripped);
}

/// startswith, endswith: a text, or any of a list of them.
Value meets(const std::string& text, std::string_view name, const ChatArguments& arguments,
            ChatBudget& budget) {
  const auto* found = arguments.find(0, "");
  if (found == nullptr) return invalid_error(fmt::format("{} takes a text", name));
  const auto* list = found->as_list();
  const auto options =
      list != nullptr ? std::span<const ChatValue>(*list) : std::span<const ChatValue>(found, 1);
  for (const auto& option : options) {
    MUSTER_TRY(budget.spend(std::min<std::uint64_t>(option.measure().weight, text.size())));
    if (option.as_text() == nullptr) return invalid_error(fmt::format("{} takes a text", name));
    const auto& part = *option.as_text();
    if (name == "startswith" ? text.starts_with(part) : text.ends_with(part))
      return ChatValue(true);
  }
  return ChatValue(false);
}

Value split(const std::string& text, const ChatArguments& arguments, ChatBudget& budget) {
  const auto separator = MUSTER_TRY(text_at(arguments, 0, "sep"));
  if (separator && separator->empty()) return invalid_error("split at an empty text");
  constexpr auto kPart = sizeof(ChatValue) + sizeof(std::string);
  MUSTER_TRY(budget.take(text.size() + most_parts(text, separator) * kPart));
  auto parts = split_text(text, separator, integer_at(arguments, 1, "maxsplit"));
  ChatValue::List list;
  for (auto& part : parts) list.emplace_back(std::move(part));
  return ChatValue(std::move(list));
}

Value split_lines(const std::string& text, ChatBudget& budget) {
  MUSTER_TRY(budget.take(text.size() * 2));
  ChatValue::List list;
  for (std::string_view left = text; !left.empty();) {
    const auto line = first_line(left);
    list.emplace_back(line.text);
    left.remove_prefix(line.size);
    MUSTER_TRY(budget.take(sizeof(ChatValue)));
  }
  return ChatValue(std::move(list));
}

// std::string finds bytes, so the place is counted in characters afterwards. In UTF-8 a whole
// character is never found inside another one.
Value find(const std::string& text, std::string_view name, const ChatArguments& arguments) {
  const auto part = MUSTER_TRY(text_at(arguments, 0, ""));
  if (!part) return invalid_error(fmt::format("{} takes a text", name));
  const auto at = name == "find" ? find_text(text, *part, 0) : find_last_text(text, *part);
  if (at == std::string::npos) return ChatValue(std::int64_t{-1});
  return ChatValue(static_cast<std::int64_t>(character_count(text.substr(0, at))));
}

Value count(const std::string& text, const ChatArguments& arguments) {
  const auto part = MUSTER_TRY(text_at(arguments, 0, ""));
  if (!part || part->empty()) return invalid_error("count takes a text");
  std::int64_t found = 0;
  for (std::size_t at = 0; (at = find_text(text, *part, at)) != std::string::npos;
       at += part->size()) {
    ++found;
  }
  return ChatValue(found);
}

/// Methods that a filter of the same name does the work of.
Value as_filter(const ChatValue& object, std::string_view name, const ChatArguments& arguments,
                ChatBudget& budget) {
  return apply_filter(name, object, arguments, budget);
}

Value call_text(const ChatValue& object, std::string_view name, const ChatArguments& arguments,
                ChatBudget& budget) {
  const auto& text = *object.as_text();
  MUSTER_TRY(budget.spend(text.size()));
  MUSTER_TRY(check_method(kTextArguments, name, arguments));
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    return strip(text, name, arguments, budget);
  }
  if (name == "startswith" || name == "endswith") return meets(text, name, arguments, budget);
  if (name == "split") return split(text, arguments, budget);
  if (name == "splitlines") return split_lines(text, budget);
  if (name == "find" || name == "rfind") return find(text, name, arguments);
  if (name == "count") return count(text, arguments);
  if (name == "isdigit") return ChatValue(is_digits(text));
  if (name == "join") {
    ChatArguments separator;
    separator.values.push_back(object);
    const auto* items = arguments.find(0, "");
    if (items == nullptr) return invalid_error("join takes a list");
    // The filter of that name writes any value.
    for (const auto& item : MUSTER_TRY(elements_of(*items, budget))) {
      if (item.as_text() != nullptr) continue;
      return invalid_error(fmt::format("join takes texts, not {}", kind_name(item)));
    }
    return joined_items(*items, separator, budget);
  }
  for (const auto* each : {"lower", "upper", "capitalize", "replace"}) {
    if (name == each) return as_filter(object, name, arguments, budget);
  }
  return unknown(object, name);
}

// A key that is missing gives None here, not an undefined value: that is the point of `get`.
Value call_map(const ChatValue& object, std::string_view name, const ChatArguments& arguments,
               ChatBudget& budget) {
  const auto& map = *object.as_map();
  MUSTER_TRY(budget.spend(map.size()));
  MUSTER_TRY(check_method(kMapArguments, name, arguments));
  if (name == "get") {
    const auto* key = arguments.find(0, "");
    if (key == nullptr) return invalid_error("get takes a key");
    if (const auto* text = key->as_text()) {
      MUSTER_TRY(pay_for_look_up(map, *text, budget));
      if (const auto* found = object.find(*text)) return *found;
    }
    const auto* absent = arguments.find(1, "");
    return absent == nullptr ? ChatValue() : *absent;
  }
  if (name == "items") return map_items(object, {}, budget);
  if (name == "keys") return ChatValue(MUSTER_TRY(elements_of(object, budget)));
  if (name == "copy") return object;
  if (name != "values") return unknown(object, name);
  ChatValue::List values;
  MUSTER_TRY(budget.take(map.size() * sizeof(ChatValue)));
  for (const auto& [key, value] : map) values.push_back(value);
  return ChatValue(std::move(values));
}

// `cycle` is the one method of the variable `loop`; other namespaces have none.
Value call_loop(const ChatValue& object, std::string_view name, const ChatArguments& arguments) {
  const auto& fields = **object.as_namespace();
  if (!fields.is_loop || name != "cycle" || arguments.values.empty()) return unknown(object, name);
  MUSTER_TRY(check_arguments(name, arguments, SIZE_MAX, ""));
  std::int64_t index = 0;
  for (const auto& [key, value] : fields.fields) {
    if (key == "index0") index = *value.as_integer();
  }
  return arguments.values[static_cast<std::size_t>(index) % arguments.values.size()];
}

// append, pop and the like would change the list and are not known.
Value call_list(const ChatValue& object, std::string_view name, const ChatArguments& arguments,
                ChatBudget& budget) {
  const auto& list = *object.as_list();
  MUSTER_TRY(check_method(kListArguments, name, arguments));
  const auto* item = arguments.find(0, "");
  if (item == nullptr || (name != "index" && name != "count")) return unknown(object, name);
  MUSTER_TRY(pay_for_comparisons(list, *item, budget));
  const auto is_item = [&](const ChatValue& each) { return are_equal(each, *item); };
  if (name == "count") {
    return ChatValue(std::int64_t{std::count_if(list.begin(), list.end(), is_item)});
  }
  const auto found = std::find_if(list.begin(), list.end(), is_item);
  if (found == list.end()) return invalid_error("index of an item that is not in the list");
  return ChatValue(std::int64_t{found - list.begin()});
}

class UncalledMethod final : public ChatFunction {
 public:
  explicit UncalledMethod(std::string_view name) : name_(name) {}
  Value call(const ChatArguments& /*arguments*/, ChatBudget& /*budget*/) const override {
    return Error{ErrorKind::Unsupported,
                 fmt::format("a method that is called by a value is not known: {}", name_)};
  }

 private:
  const std::string name_;
};

}  // namespace

// Source: Jinja 3.1, sandbox.py, modifies_known_mutable.
ChatValue uncalled_method(std::string_view name) {
  constexpr std::array<std::string_view, 5> kChanging{"clear", "pop", "popitem", "setdefault",
                                                      "update"};
  if (std::find(kChanging.begin(), kChanging.end(), name) != kChanging.end()) {
    return ChatValue(ChatValue::Undefined{std::string(name)});
  }
  std::shared_ptr<const ChatFunction> method = std::make_shared<UncalledMethod>(name);
  return ChatValue(std::move(method));
}

// Also names that are not callable here: a map without such a field must not read as undefined
// where Python has a method, and templates tell a text from a list by what it has.
bool has_method(const ChatValue& value, std::string_view name) {
  const auto is_in = [&](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (value.as_map() != nullptr) return is_in(kMapMethods);
  if (value.as_text() != nullptr) return is_in(kTextMethods);
  if (value.as_list() == nullptr) return false;
  return is_in(kListMethods) || (name == "copy" && !value.is_tuple());
}

Result<ChatValue> call_method(const ChatValue& object, std::string_view name,
                              const ChatArguments& arguments, ChatBudget& budget) {
  if (object.is_undefined()) return invalid_error(object.as_undefined()->name + " is undefined");
  if (object.as_text() != nullptr) return call_text(object, name, arguments, budget);
  if (object.as_map() != nullptr) return call_map(object, name, arguments, budget);
  if (object.as_namespace() != nullptr) return call_loop(object, name, arguments);
  if (object.as_list() != nullptr) return call_list(object, name, arguments, budget);
  return unknown(object, name);
}

}  // namespace muster
