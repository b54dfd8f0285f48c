// Values are made from JSON once and then shared: lists, maps and texts are never changed, so a
// copy costs a pointer. The document is parsed to simdjson's tree, whose depth limit protects the
// recursion here. A key that comes twice keeps its first place and its last value, as in Python.
// Equality and truth are Python's, with flags as numbers.

#include "chat/value.h"

#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>

#include "chat/function.h"

namespace muster {
namespace {

using Element = simdjson::dom::element;

constexpr std::size_t kDepthMax = 64;

Result<ChatValue> value_of(Element element);

Result<ChatValue> map_of(simdjson::dom::object object) {
  ChatValue::Map map;
  std::unordered_map<std::string_view, std::size_t> places;
  for (const auto [key, item] : object) {
    auto value = MUSTER_TRY(value_of(item));
    const auto [place, is_new] = places.emplace(key, map.size());
    if (is_new) {
      map.emplace_back(key, std::move(value));
    } else {
      map[place->second].second = std::move(value);
    }
  }
  return ChatValue(std::move(map));
}

/// A parsed document as values; texts are copied once.
Result<ChatValue> value_of(Element element) {
  switch (element.type()) {
    case simdjson::dom::element_type::BOOL:
      return ChatValue(element.get_bool().value_unsafe());
    case simdjson::dom::element_type::INT64:
      return ChatValue(element.get_int64().value_unsafe());
    case simdjson::dom::element_type::UINT64:
      return invalid_error("an integer beyond 64 bits: " +
                           std::to_string(element.get_uint64().value_unsafe()));
    case simdjson::dom::element_type::DOUBLE:
      return ChatValue(element.get_double().value_unsafe());
    case simdjson::dom::element_type::STRING:
      return ChatValue(element.get_string().value_unsafe());
    case simdjson::dom::element_type::ARRAY: {
      ChatValue::List list;
      // By its name: a range-for would not keep the temporary that holds it.
      const auto items = element.get_array().value_unsafe();
      for (const Element item : items) {
        list.push_back(MUSTER_TRY(value_of(item)));
      }
      return ChatValue(std::move(list));
    }
    case simdjson::dom::element_type::OBJECT:
      return map_of(element.get_object().value_unsafe());
    case simdjson::dom::element_type::NULL_VALUE:
      break;
  }
  return ChatValue();
}

/// Adds an item of a list or map to what is known of its holder.
void count_in(const ChatValue& item, ChatValue::Measure& holder) {
  const auto one = item.measure();
  holder.weight += std::min(one.weight, UINT64_MAX - holder.weight);
  holder.depth = std::max(holder.depth, one.depth + 1);
  holder.holds_namespace =
      holder.holds_namespace || one.holds_namespace || item.as_namespace() != nullptr;
}

std::optional<double> number_of(const ChatValue& value) {
  if (const auto* flag = value.as_flag()) return *flag ? 1 : 0;
  if (const auto* integer = value.as_integer()) return static_cast<double>(*integer);
  if (const auto* real = value.as_float()) return *real;
  return std::nullopt;
}

}  // namespace

Result<ChatValue> ChatValue::parse(std::string_view json) {
  simdjson::dom::parser parser;
  auto code = parser.allocate(std::max<std::size_t>(json.size(), 64), kDepthMax);
  Element document;
  if (code == simdjson::SUCCESS) code = parser.parse(json.data(), json.size()).get(document);
  if (code == simdjson::DEPTH_ERROR) return invalid_error("JSON nested deeper than 64");
  if (code != simdjson::SUCCESS) {
    return invalid_error(std::string("not valid JSON: ") + simdjson::error_message(code));
  }
  return value_of(document);
}

ChatValue ChatValue::tuple(List list) {
  ChatValue value;
  value.value_ = items_of(std::move(list), true);
  return value;
}

ChatValue ChatValue::iterator(List list) {
  ChatValue value;
  value.value_ = std::make_shared<Iterator>(Iterator{items_of(std::move(list), false)});
  return value;
}

Result<ChatValue::List> ChatValue::walk() const {
  auto& walked = *std::get<std::shared_ptr<Iterator>>(value_);
  if (walked.state == Iterator::State::Left) {
    return Error{ErrorKind::Unsupported, "what is left of an iterator is not known"};
  }
  if (std::exchange(walked.state, Iterator::State::Spent) == Iterator::State::Spent) {
    return List();
  }
  return walked.items->list;
}

void ChatValue::leave_walk() const {
  const auto* walked = std::get_if<std::shared_ptr<Iterator>>(&value_);
  if (walked != nullptr) (*walked)->state = Iterator::State::Left;
}

ChatValue::Measure ChatValue::measure() const {
  if (const auto* walked = pointer_of<std::shared_ptr<Iterator>>()) return walked->items->measure;
  if (const auto* items = pointer_of<std::shared_ptr<const Items>>()) return items->measure;
  if (const auto* entries = pointer_of<std::shared_ptr<const Entries>>()) return entries->measure;
  const auto* text = as_text();
  return {.weight = 1 + (text == nullptr ? 0 : text->size())};
}

std::shared_ptr<const ChatValue::Items> ChatValue::items_of(List list, bool is_tuple) {
  Measure measure{.depth = 1};
  for (const auto& item : list) count_in(item, measure);
  return std::make_shared<const Items>(Items{std::move(list), is_tuple, measure});
}

std::shared_ptr<const ChatValue::Entries> ChatValue::entries_of(Map map) {
  Measure measure{.depth = 1};
  for (const auto& [key, item] : map) {
    measure.weight += std::min<std::uint64_t>(key.size(), UINT64_MAX - measure.weight);
    count_in(item, measure);
  }
  return std::make_shared<const Entries>(Entries{std::move(map), measure});
}

const ChatValue* ChatValue::find(std::string_view key) const {
  const auto* map = as_map();
  if (map == nullptr) return nullptr;
  for (const auto& [name, value] : *map) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::string_view kind_name(const ChatValue& value) {
  if (value.is_none()) return "None";
  if (value.is_undefined()) return "undefined";
  if (value.as_flag() != nullptr) return "bool";
  if (value.as_integer() != nullptr) return "int";
  if (value.as_float() != nullptr) return "float";
  if (value.as_text() != nullptr) return "str";
  if (value.as_list() != nullptr) return value.is_tuple() ? "tuple" : "list";
  if (value.as_map() != nullptr) return "dict";
  if (value.is_iterator()) return "iterator";
  return value.as_namespace() != nullptr ? "namespace" : "function";
}

// Functions, namespaces and iterators are true, as objects are in Python.
bool is_true(const ChatValue& value) {
  if (const auto number = number_of(value)) return *number != 0;
  if (const auto* text = value.as_text()) return !text->empty();
  if (const auto* list = value.as_list()) return !list->empty();
  if (const auto* map = value.as_map()) return !map->empty();
  return !value.is_none() && !value.is_undefined();
}

// Integers are compared as integers first: as doubles two that differ above 2^53 could be equal.
bool are_equal(const ChatValue& a, const ChatValue& b) {
  if (a.as_integer() != nullptr && b.as_integer() != nullptr) {
    return *a.as_integer() == *b.as_integer();
  }
  const auto left = number_of(a);
  const auto right = number_of(b);
  if (left || right) return left && right && *left == *right;
  if (a.as_text() != nullptr && b.as_text() != nullptr) return *a.as_text() == *b.as_text();
  if (a.as_list() != nullptr && b.as_list() != nullptr) {
    const auto& x = *a.as_list();
    const auto& y = *b.as_list();
    if (x.size() != y.size() || a.is_tuple() != b.is_tuple()) return false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!are_equal(x[i], y[i])) return false;
    }
    return true;
  }
  if (a.as_map() != nullptr && b.as_map() != nullptr) {
    if (a.as_map()->size() != b.as_map()->size()) return false;
    for (const auto& [key, value] : *a.as_map()) {
      const auto* other = b.find(key);
      if (other == nullptr || !are_equal(value, *other)) return false;
    }
    return true;
  }
  if (a.as_namespace() != nullptr && b.as_namespace() != nullptr) {
    return *a.as_namespace() == *b.as_namespace();
  }
  if (a.as_function() != nullptr) return a.as_function() == b.as_function();
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

}  // namespace muster
