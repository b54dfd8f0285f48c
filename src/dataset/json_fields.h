#pragma once

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// The value of a field: `name` is a key of the object, or leads into objects within it by dots:
/// "doc.text". A key that has the dots in itself goes first. Of a key that is there twice the last
/// one counts, as in Python and JavaScript.
std::optional<simdjson::dom::element> find_json_field(simdjson::dom::object object,
                                                      std::string_view name);

/// A key that is there twice; nullopt: none is. Valid as long as the object.
std::optional<std::string_view> doubled_json_key(simdjson::dom::object object);

/// The same of the objects that `find_json_field` goes into for `name`, with the keys before it:
/// "doc.text".
std::optional<std::string> doubled_json_key_on_way(simdjson::dom::object object,
                                                   std::string_view name);

/// The same of all objects in a value, with what is written behind its name: "[1].content".
std::optional<std::string> doubled_json_key_within(simdjson::dom::element value);

/// Names that lead to a value, for a message about one that does not: keys, and those of objects
/// within by dots. At most 64.
std::vector<std::string> json_field_names(simdjson::dom::object object);

/// Appends a text, a number, true, false or a list of these as JSON, each number in its shortest
/// form; nothing for null. False, and nothing is appended, for anything else. `out` is not a
/// record's fault: strings are valid UTF-8 or become so with U+FFFD.
bool append_json_value(simdjson::dom::element value, std::string& out);

/// "an array", "a number": for messages.
std::string_view json_type_words(simdjson::dom::element_type type);

/// Adds a field to the JSON object in `fields`, which is empty at first. `json` is its value.
void append_kept_field(std::string_view name, std::string_view json, std::string& fields);

}  // namespace muster
