#include "chat/chat_template.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

/// The text of a template over {"x": [1, 2, 3], "t": "Text", "m": {"a": 1, "b": "two"}, "z": none}.
Result<std::string> render(const std::string& text, const ChatLimits& limits = {}) {
  const auto made = ChatTemplate::parse(text);
  if (!made) return made.error();
  ChatInput input;
  input.messages = *ChatValue::parse(R"([{"role": "user", "content": "Hi"}])");
  input.variables =
      *ChatValue::parse(R"({"x": [1, 2, 3], "t": "Text", "m": {"a": 1, "b": "two"}, "z": null})")
           ->as_map();
  input.bos_token = "<s>";
  return made->render(input, limits);
}

std::string shown(const std::string& text) {
  const auto out = render(text);
  return out ? *out : "error: " + out.error().message;
}

using Cases = std::vector<std::pair<std::string, std::string>>;

void check(const Cases& cases) {
  for (const auto& [text, expected] : cases) EXPECT_EQ(shown(text), expected) << text;
}

// What jinja2 3.1 with trim_blocks and lstrip_blocks gives, tried there one by one.

TEST(ChatTemplate, WhiteSpaceAroundTagsFollowsTheSigns) {
  check({
      {"a\n{% if true %}\nb\n{% endif %}\nc\n", "a\nb\nc"},
      {"a\n  {% if true %}\n  b\n  {% endif %}\nc", "a\n  b\nc"},
      {"a  {% if true %}b{% endif %}", "a  b"},
      {"a\n  {%+ if true %}b{% endif %}", "a\n  b"},
      {"a {%- if true -%} b {%- endif -%} c", "abc"},
      {"a\n {{- t -}} \n b", "aTextb"},
      {"a\n{{ t }}\nb", "a\nText\nb"},
      {"a\n {# note #}\nb", "a\nb"},
      {"a {#- note -#} b", "ab"},
      {"{% if true +%}\nb{% endif %}", "\nb"},
      {"{% raw %}{{ t }}{% endraw %}", "{{ t }}"},
      {"a\r\nb\r", "a\nb"},
      {"{{ '}}' }}{{ {'a': {'b': 1}}['a']['b'] }}", "}}1"},
  });
}

TEST(ChatTemplate, ExpressionsAreJinjas) {
  check({
      {"{{ 1 + 2 * 3 - 4 // 3 }} {{ 7 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 3 }}",
       "6 3.5 -4 2 8"},
      {"{{ 1 // 0.1 }} {{ 5.5 % 0.1 }} {{ -1.0 % 3 }} {{ 1 % -3.0 }} {{ 7.0 // -2 }}",
       "9.0 0.0999999999999997 2.0 -2.0 -4.0"},
      {"{{ -0.0 // 1 }} {{ 6.0 % -3 }} {{ -0.0 }} {{ +0.5 }} {{ 2 ** -1 }} {{ 2 ** 0.5 }}",
       "-0.0 -0.0 -0.0 0.5 0.5 1.4142135623730951"},
      {"{{ 9007199254740993 > 9007199254740992 }} {{ 2 ** 62 <= 2 ** 62 - 1 }}", "True False"},
      {"{{ 'a' ~ 1 ~ none ~ true }}", "a1NoneTrue"},
      {"{{ 'ab' * 2 }} {{ [1] + [2, 'x'] }}", "abab [1, 2, 'x']"},
      {"{{ 1 < 2 < 3 }} {{ 1 < 2 > 3 }} {{ 'a' in 'cat' }} {{ 2 not in x }} {{ 'a' in m }}",
       "True False True False True"},
      {"{{ not 0 or 1 }} {{ 0 or 'b' }} {{ 1 and '' }}|", "True b |"},
      {"{{ 'yes' if x else 'no' }} {{ 'yes' if false }}|", "yes |"},
      {"{{ x[0] }} {{ x[-1] }} {{ x[9] }}| {{ m.a }} {{ m['b'] }} {{ m.c }}| {{ x.0 }}",
       "1 3 | 1 two | 1"},
      {"{{ t[1:] }} {{ t[:-1] }} {{ t[::-1] }} {{ x[1:2] }} {{ 'é中'[1] }}", "ext Tex txeT [2] 中"},
      {"{{ 'a\\n\\u00e9\\x41\\q' }}", "a\néA\\q"},
      {"{{ 'a' 'b' }} {{ 1_000 }} {{ 1.50 }} {{ 1e16 }} {{ 0.00001 }}", "ab 1000 1.5 1e+16 1e-05"},
      {"{{ (1, 2) }} {{ {'k': 'v\\''} }} {{ [none, \"it's\"] }}",
       "(1, 2) {'k': \"v'\"} [None, \"it's\"]"},
      {"{{ (1, 2, 3)[1:] }} {{ (1, 2)[:1] }} {{ (1,) + (2, 'x') }}", "(2, 3) (1,) (1, 2, 'x')"},
      {"{{ -x[0] }} {{ +1 }} {{ - 2 | abs }}", "-1 1 2"},
      {"{{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' != 'b' }} {{ none == none }}", "True True True True"},
      {"{{ unknown }}|{{ unknown is defined }}|{{ unknown == unknown }}", "|False|True"},
      // A method that is not called is a function, behind a key of its name in a subscript.
      {"{{ 'x'.split is defined }} {{ x.index is defined }} {{ x.copy is callable }}",
       "True True True"},
      {"{{ m['items'] is defined }} {{ 'yes' if m['keys'] }} {{ m['items']['type'] is defined }}",
       "True yes False"},
      {"{{ {'items': 1}['items'] }} {{ {'items': 1}.items is callable }}", "1 True"},
      {"{{ 'x'['upper'] is string }} {{ [m] | map(attribute='keys') | first is callable }}",
       "False True"},
      // What the sandbox does not let through is undefined.
      {"{{ m['pop'] is defined }} {{ m.update is defined }}", "False False"},
      {"{{ 'x'.role is defined }} {{ x.append is defined }} {{ (1, 2).copy is defined }}",
       "False False False"},
  });
}

TEST(ChatTemplate, StatementsAreJinjas) {
  check({
      {"{% for i in x %}{{ loop.index }}/{{ loop.length }}{{ i }}{{ ',' if not loop.last }}"
       "{% endfor %}",
       "1/31,2/32,3/33"},
      {"{% for i in x if i > 1 %}{{ loop.index0 }}{{ i }}{% else %}none{% endfor %}", "0213"},
      {"{% for i in [] %}a{% else %}none{% endfor %}", "none"},
      {"{% for k, v in m.items() %}{{ k }}={{ v }};{% endfor %}", "a=1;b=two;"},
      {"{% for k in m %}{{ k }}{% endfor %}{% for c in 'é中' %}<{{ c }}>{% endfor %}", "ab<é><中>"},
      {"{% for i in range(3) %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "02"},
      {"{% for i in range(1, 9, 3) %}{% if i > 5 %}{% break %}{% endif %}{{ i }}{% endfor %}",
       "14"},
      {"{% for i in x %}{{ loop.cycle('a', 'b') }}{{ loop.previtem }}{% endfor %}", "ab1a2"},
      {"{% set a = 1 %}{% for i in x %}{% set a = a + i %}{{ a }}{% endfor %}{{ a }}", "2341"},
      {"{% set n = namespace(a=1) %}{% for i in x %}{% set n.a = n.a + i %}{% endfor %}{{ n.a }}",
       "7"},
      {"{% set n = namespace({'a': 1, 'b': 3}, a=2) %}{{ n.a }}{% set n.a = 4 %}{{ n.a }}{{ n.b }}",
       "243"},
      {"{% set a, b = 1, 2 %}{{ b }}{{ a }}", "21"},
      {"{% set a %}{{ t }}!{% endset %}{{ a }}{% set b | upper %}x{% endset %}{{ b }}", "Text!X"},
      {"{% if z %}a{% elif x %}b{% else %}c{% endif %}", "b"},
      {"{% macro f(a, b='d') %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, 2) }}{{ f(b=3, a=4) "
       "}}",
       "1d1243"},
      {"{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
       "3210"},
      {"{% filter upper %}a{{ t }}{% endfilter %}", "ATEXT"},
      {"{% generation %}g{% endgeneration %}", "g"},
      {"{% set a = 1 %}{% generation %}{% set a = 2 %}{{ a }}{% endgeneration %}{{ a }}", "21"},
      // A break or continue leaves the block that it stands in, too.
      {"{% for i in x %}{% set a %}b{% break %}{% endset %}{{ i }}{% endfor %}|{{ a }}", "|"},
      {"{% for i in x %}{% set a %}b{% if i == 2 %}{% continue %}{% endif %}{% endset %}"
       "{{ a }}{{ i }}{% endfor %}",
       "b1b3"},
      {"{% for i in x %}{{ i }}{% filter upper %}a{% continue %}{% endfilter %}b{% endfor %}",
       "123"},
      {"{% for i in x %}{{ i }}{% filter upper %}a{% break %}{% endfilter %}b{% endfor %}", "1"},
      // The else is for a loop no pass of which came to its end.
      {"{% for i in x %}{% continue %}{% else %}none{% endfor %}", "none"},
      {"{% for i in x %}{% break %}{% else %}none{% endfor %}", "none"},
      {"{% for i in x %}{% if i == 1 %}{% continue %}{% endif %}{% else %}none{% endfor %}", ""},
      {"{% for i in x %}{% if i == 2 %}{% break %}{% endif %}{% else %}none{% endfor %}", ""},
      {"{{ messages[0].role }}{{ bos_token }}{{ eos_token is defined }}", "user<s>False"},
  });
}

TEST(ChatTemplate, FiltersTestsAndMethodsAreJinjasAndPythons) {
  check({
      {"{{ '  a ' | trim }}|{{ t | lower }}{{ t | upper }}{{ 'ab cd-ef' | title }}",
       "a|textTEXTAb Cd-Ef"},
      {"{{ x | join('-') }} {{ [m] | join(',', attribute='a') }} {{ x | length }} {{ t | count }}",
       "1-2-3 1 3 4"},
      {"{{ u | default('d') }} {{ '' | default('d', true) }} {{ x | first }} {{ x | last }}",
       "d d 1 3"},
      {"{{ [3, 1, 2] | sort | list }} {{ ['b', 'A'] | sort }} {{ [1, 2] | reverse | list }}",
       "[1, 2, 3] ['A', 'b'] [2, 1]"},
      {"{{ {'b': 1, 'a': 2} | dictsort }} {{ m | items | list }}",
       "[('a', 2), ('b', 1)] [('a', 1), ('b', 'two')]"},
      {"{{ 'a\\nb' | indent(2) }} {{ 'aXb' | replace('X', '-') }} {{ '7' | int + 1 }}",
       "a\n  b a-b 8"},
      {"{{ 3.7 | int }} {{ '1.5' | float }} {{ 2.5 | round }} {{ [1, 3] | max }} {{ [1, 3] | sum "
       "}}",
       "3 1.5 2.0 3 4"},
      {"{{ 5 | round }} {{ true | round }} {{ 5 | round(2) }} {{ -0.4 | round }}", "5 1 5 -0.0"},
      {"{{ 2.675 | round(2) }} {{ 0.125 | round(2) }} {{ 1e300 | round(2) }} {{ 0.5 | round(15) }}",
       "2.67 0.12 1e+300 0.5"},
      {"{{ true | float }} {{ false | float }} {{ none | float }} {{ 'x' | float(3) }}",
       "1.0 0.0 0.0 3"},
      {"{{ '9007199254740993' | int }} {{ ' -12 ' | int }} {{ '+1_0' | int }} {{ '1__0' | int }}",
       "9007199254740993 -12 10 0"},
      {"{{ '9223372036854775807' | int }} {{ '1.9' | int }} {{ '1e3' | int }} {{ 'inf' | int }}",
       "9223372036854775807 1 1000 0"},
      {"{{ 'x' | int('none') }} {{ '' | int(default=7) }} {{ '_1' | int }} {{ '1_' | int }}",
       "none 7 0 0"},
      {"{{ m.get('a') }}{{ m.get('q') }}{{ m.get('q', 0) }}{{ m.keys() | list }}{{ m.values() | "
       "list }}",
       "1None0['a', 'b'][1, 'two']"},
      {"{{ 'a' is string }}{{ 1 is number }}{{ m is mapping }}{{ x is iterable }}{{ z is none }}",
       "TrueTrueTrueTrueTrue"},
      {"{{ 3 is odd }}{{ 4 is divisibleby 2 }}{{ x is not string }}{{ true is true }}{{ 1 is "
       "boolean }}",
       "TrueTrueTrueTrueFalse"},
      {"{{ strftime_now('%Y-%m-%d') }} {{ strftime_now('%d%') }}", "1970-01-01 01%"},
  });
}

TEST(ChatTemplate, JsonIsThatOfJsonDumps) {
  check({
      {"{{ m | tojson }} {{ 'é\\n\"' | tojson }} {{ [1.0, none, true] | tojson }}",
       "{\"a\": 1, \"b\": \"two\"} \"é\\n\\\"\" [1.0, null, true]"},
      {"{{ {'a': [1]} | tojson(indent=2) }}", "{\n  \"a\": [\n    1\n  ]\n}"},
      {"{{ {'a': [1]} | tojson(indent='\\t') }}", "{\n\t\"a\": [\n\t\t1\n\t]\n}"},
      {"{{ [1] | tojson(indent=0) }}{{ [1] | tojson(indent=-1) }}{{ [1] | tojson(indent=true) }}",
       "[\n1\n][\n1\n][\n 1\n]"},
      {"{{ [1, 2] | tojson(indent=none) }}{{ ([1] | tojson(indent=200)) | length }}",
       "[1, 2]205"},  // two brackets, two line feeds, the number
      {"{{ '\x7f' | tojson(ensure_ascii=true) }}{{ '\x7f' | tojson }}", "\"\\u007f\"\"\x7f\""},
  });
}

TEST(ChatTemplate, ItemsAreMappedAndSelectedAsInJinja) {
  check({
      {"{{ [m] | map(attribute='b') | list }} {{ ['a', 'b'] | map('upper') | join }}",
       "['two'] AB"},
      {"{{ [[1, 2]] | map(attribute='0') | list }} {{ [{'a': [5, 6]}] | map(attribute='a.1') | "
       "list "
       "}}",
       "[1] [6]"},
      {"{{ [m] | map(attribute='c.d', default='-') | list }} {{ [m] | map(attribute='c') | list }}",
       "['-'] [Undefined]"},
      {"{{ z | map('upper') | list }} {{ z | selectattr('a') | list }} {{ 0 | select | list }}",
       "[] [] []"},
      {"{{ x | select('odd') | list }} {{ x | reject('gt', 1) | list }}", "[1, 3] [1]"},
      {"{{ [m] | selectattr('a', 'equalto', 1) | list | length }}{{ [m] | rejectattr('c') | list | "
       "length }}",
       "11"},
  });
}

TEST(ChatTemplate, TextsAreCutAsInPython) {
  check({
      {"{{ 'xaxb'.split('x') }} {{ ' a  b '.split() }} {{ 'a,b,c'.split(',', 1)[1] }}",
       "['', 'a', 'b'] ['a', 'b'] b,c"},
      {"{{ '..a.'.strip('.') }}{{ ' a '.rstrip() }}|{{ 'ab'.startswith('a') }}{{ "
       "'ab'.endswith(('x', 'b')) }}",
       "a a|TrueTrue"},
      {"{{ 'a\\r\\nb\\u2028c\\n'.splitlines() }}{{ 'a\\r\\nb\\u2028\\f' | indent(2) }}|",
       "['a', 'b', 'c']a\n  b\n\n|"},
      {"{{ 'a\\n\\nb\\n' | indent(2, true) }}|{{ 'a\\n' | indent(2, false, true) }}|",
       "  a\n\n  b\n|a\n  |"},
      {"{{ '' | indent(2, true) }}|{{ ' a b '.split(none, 1) }}", "  |['a', 'b ']"},
      {"{{ 'a b c'.split(maxsplit=1) }}{{ ['x'] | map('int', default=7) | list }}",
       "['a', 'b c'][7]"},
  });
}

// Generators and iterators in Python: true whatever is in them, and gone over once.
TEST(ChatTemplate, WhatFiltersMakeIsAnIterator) {
  check({
      {"{{ 'yes' if x | select('gt', 9) }} {{ 'yes' if [] | reverse }} {{ 'no' if [] | list }}|",
       "yes yes |"},
      {"{% set g = x | map('string') %}{% for i in g %}{{ i }}{% endfor %}|"
       "{% for i in g %}{{ i }}{% else %}none{% endfor %}",
       "123|none"},
      {"{% set g = x | reject('odd') %}{{ 9 in g }}{{ g | list }}", "False[]"},
      {"{% for i in x | reverse %}{{ i }}{{ loop.length }}{% endfor %}", "332313"},
      {"{{ x | map('string') | reverse }} {{ x | reverse | first }} {{ 'ab' | reverse }}",
       "['3', '2', '1'] 3 ba"},
      {"{{ (x | select)[0] is defined }} {{ (x | select) is iterable }} {{ (x | select) is "
       "sequence "
       "}}",
       "False True False"},
      {"{{ x | unique | sum }} {{ m | items | map('first') | join }} {{ x | reverse == [3, 2, 1] "
       "}}",
       "6 ab False"},
      {"{{ x | select | length }}", "error: chat template, line 1: the length of iterator"},
      {"{{ x | select | last }}", "error: chat template, line 1: the last of an iterator"},
      {"{{ x | select | tojson }}", "error: chat template, line 1: tojson of iterator"},
      {"{{ (x | select) + [1] }}", "error: chat template, line 1: + between iterator and list"},
      {"{{ x | select }}",
       "error: chat template, line 1: the text of an iterator is not known; that of a list is"},
      {"{% set g = x | select %}{{ g | first }}{{ g | list }}",
       "error: chat template, line 1: what is left of an iterator is not known"},
      {"{% set g = x | select %}{% for i in g %}{% break %}{% endfor %}{{ g | list }}",
       "error: chat template, line 1: what is left of an iterator is not known"},
  });
}

TEST(ChatTemplate, WhatIsNotKnownIsRefusedWithItsLine) {
  check({
      {"a\n{% include 'x' %}",
       "error: chat template, line 2: a statement that is not known: include"},
      {"{{ t | uper }}",
       "error: chat template, line 1: a filter that is not known: uper; the "
       "nearest is upper"},
      {"\n\n{{ t is strin }}",
       "error: chat template, line 3: a test that is not known: strin; the nearest is string"},
      {"{{ t.swapcase() }}",
       "error: chat template, line 1: a method of str that is not known: "
       "swapcase"},
      {"{{ x.append(1) }}",
       "error: chat template, line 1: a method of list that is not known: append"},
      {"{{ f(*x) }}", "error: chat template, line 1: arguments from a list or map are not known"},
      {"{{ m['items']() }}",
       "error: chat template, line 1: a method that is called by a value is not known: items"},
      {"{{ m.items }}", "error: chat template, line 1: the text of a function is not known"},
      {"{{ m.items ~ '' }}", "error: chat template, line 1: the text of a function is not known"},
      // Python and Jinja have them, and give something else than without them.
      {"{{ 'abab'.find('a', 1) }}",
       "error: chat template, line 1: an argument of find that is not known: 2"},
      {"{{ 'abc'.startswith('b', 1) }}",
       "error: chat template, line 1: an argument of startswith that is not known: 2"},
      {"{{ 'aab'.count('a', 1) }}",
       "error: chat template, line 1: an argument of count that is not known: 2"},
      {"{{ 'a'.splitlines(true) }}",
       "error: chat template, line 1: an argument of splitlines that is not known: 1"},
      {"{{ 'ab'.strip(chars='a') }}",
       "error: chat template, line 1: an argument of strip that is not known: chars"},
      {"{{ x.index(2, 1) }}",
       "error: chat template, line 1: an argument of index that is not known: 2"},
      {"{{ m.get('a', 1, 2) }}",
       "error: chat template, line 1: an argument of get that is not known: 3"},
      {"{{ 'ff' | int(base=16) }}",
       "error: chat template, line 1: an argument of int that is not known: base"},
      {"{{ 'ff' | int(0, 16) }}",
       "error: chat template, line 1: an argument of int that is not known: 2"},
      {"{{ x | map(attribute='a', other=1) | list }}",
       "error: chat template, line 1: an argument of map that is not known: other"},
      {"{{ [m] | selectattr('a', 'divisibleby', num=1) | list }}",
       "error: chat template, line 1: an argument of select that is not known: num"},
      {"{{ range(3, step=2) }}",
       "error: chat template, line 1: an argument of range that is not known: step"},
      {"{{ nothing() }}", "error: chat template, line 1: a function that is not known: nothing"},
      {"{% for i in x recursive %}{% endfor %}",
       "error: chat template, line 1: a recursive for is not known"},
  });
}

TEST(ChatTemplate, FaultsNameTheirLine) {
  check({
      {"{% if x %}", "error: chat template, line 1: the template ends where endif is missing"},
      {"a\n{{ t", "error: chat template, line 2: a tag does not end"},
      {"{{ 'a }}", "error: chat template, line 1: a text does not end"},
      {"{{ (1 }}", "error: chat template, line 1: a bracket that was not opened: }"},
      {"{# a", "error: chat template, line 1: a comment does not end"},
      {"{{ 1 + }}", "error: chat template, line 1: expected an expression, found \"}}\""},
      {"{% endif %}", "error: chat template, line 1: a statement that is not known: endif"},
      {"{% break %}", "error: chat template, line 1: break outside of a for"},
      {"{% for i in x %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
       "error: chat template, line 1: break outside of a for"},
      {"\n{{ t + 1 }}", "error: chat template, line 2: + between str and int"},
      {"{{ x + (1,) }}", "error: chat template, line 1: + between list and tuple"},
      {"{{ 1 // 0 }}", "error: chat template, line 1: a division by zero"},
      {"{{ 0 ** -1 }}", "error: chat template, line 1: a division by zero"},
      {"{{ 10.0 ** 400 }}", "error: chat template, line 1: a power beyond the floats"},
      {"{{ (-8) ** 0.5 }}",
       "error: chat template, line 1: a power that is a complex number is not known"},
      // Python's integers have no end.
      {"{{ '9223372036854775808' | int }}",
       "error: chat template, line 1: an integer beyond 64 bits"},
      {"{{ 1e300 | int }}", "error: chat template, line 1: an integer beyond 64 bits"},
      {"{{ u.a }}", "error: chat template, line 1: u is undefined"},
      {"{{ u + 'a' }}", "error: chat template, line 1: u is undefined"},
      {"{{ u | int }}", "error: chat template, line 1: u is undefined"},
      {"{{ u | float(1) }}", "error: chat template, line 1: u is undefined"},
      {"{{ ', '.join(x) }}", "error: chat template, line 1: join takes texts, not int"},
      {"{{ u | dictsort }}", "error: chat template, line 1: u is undefined"},
      {"{{ m | dictsort(by='values') }}",
       "error: chat template, line 1: dictsort sorts by \"key\" or \"value\""},
      {"{{ strftime_now('%Y\\0') }}", "error: chat template, line 1: a time format with a NUL"},
      {"{{ u | tojson }}", "error: chat template, line 1: tojson of u, undefined"},
      {"{% for a, b in x %}{% endfor %}", "error: chat template, line 1: int cannot be gone over"},
      {"\n{{ raise_exception('no system role') }}",
       "error: chat template, line 2: the template refuses the conversation: no system role"},
  });
}

TEST(ChatTemplate, EveryRenderingIsBounded) {
  // Steps count elements and each 64 bytes too, so only one of the two limits is low at a time.
  ChatLimits few_steps;
  few_steps.steps_max = 10'000;
  few_steps.output_bytes_max = 1000;
  ChatLimits few_bytes;
  few_bytes.steps_max = std::numeric_limits<std::uint64_t>::max();
  few_bytes.bytes_max = 1'000'000;
  const auto error_of = [&](const std::string& text, const ChatLimits& limits) {
    const auto out = render(text, limits);
    EXPECT_FALSE(out) << text;
    if (out) return std::string();
    EXPECT_EQ(out.error().kind, ErrorKind::ResourceExhausted) << out.error().message;
    return out.error().message;
  };
  const std::string nested =
      "{% for i in range(2000) %}{% for j in range(2000) %}{% endfor %}{% endfor %}";
  EXPECT_EQ(error_of(nested, few_steps),
            "chat template, line 1: more steps than a rendering may take: 10000");
  EXPECT_EQ(error_of(nested, few_bytes),
            "chat template, line 1: more bytes than a rendering may take: 1000000");
  const auto holds = [&](const std::string& text, const ChatLimits& limits, const char* part) {
    const auto message = error_of(text, limits);
    EXPECT_NE(message.find(part), std::string::npos) << text << ": " << message;
  };
  holds("{% for i in range(9999) %}{% if i %}{% endif %}{% endfor %}", few_steps, "steps");
  holds("{% for i in range(500) %}abcdef{% endfor %}", few_steps, "longer than 1000 bytes");
  holds("{{ 'a' * 1000000000000 }}", few_bytes, "bytes");
  holds("{{ range(1000000) | length }}", few_bytes, "bytes");
  holds("{{ range(1000000) | length }}", {}, "range of more than");
  holds("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", few_steps, "levels");
  holds(
      "{% set n = namespace(s='ab') %}{% for i in range(99) %}{% set n.s = n.s + n.s "
      "%}{% endfor %}",
      few_bytes, "bytes");
}

// Without a bound on what is put into itself, the first of these overflows the stack when it is
// freed, and the second prints 2^90 texts.
TEST(ChatTemplate, ValuesThatGrowWithinThemselvesAreRefused) {
  const auto refusal = [](const std::string& text) {
    const auto out = render(text);
    return out ? "rendered: " + out->substr(0, 60) : out.error().message;
  };
  const std::string begin = "{% set n = namespace(l=['a']) %}{% for i in range(";
  EXPECT_EQ(refusal(begin + "100000) %}{% set n.l = [n.l] %}{% endfor %}"),
            "chat template, line 1: more lists and maps within each other than a rendering may "
            "take: 100");
  EXPECT_EQ(refusal(begin + "90) %}{% set n.l = {'a': n.l, 'b': n.l} %}{% endfor %}{{ n.l }}"),
            "chat template, line 1: more bytes than a rendering may take: 268435456");
  EXPECT_EQ(shown(begin + "50) %}{% set n.l = [n.l] %}{% endfor %}{{ n.l | string | length }}"),
            "105");  // 51 pairs of brackets around 'a'
  EXPECT_EQ(refusal("{% set n = namespace() %}{% set n.n = n %}"),
            "chat template, line 1: a namespace within a namespace is not known");
  EXPECT_EQ(refusal("{% set n = namespace() %}{{ namespace(n=n) }}"),
            "chat template, line 1: a namespace within a namespace is not known");
  EXPECT_EQ(refusal("{% set n = namespace() %}{{ [n] }}"),
            "chat template, line 1: a namespace within a list or map is not known");
}

TEST(ChatTemplate, ATextThatIsNotUtf8IsRefused) {
  EXPECT_EQ(shown("{{ t }} \xC3"), "error: the text of the conversation is not UTF-8 at byte 5");
}

TEST(ChatTemplate, AFilterThatMapsItselfIsAsDeepAsItsCalls) {
  std::string text = "{{ 'a' | map('map'";
  for (int i = 0; i < 1000; ++i) text += ", 'map'";
  const auto out = render(text + ") | list }}");
  ASSERT_FALSE(out);
  EXPECT_NE(out.error().message.find("more levels of calls"), std::string::npos)
      << out.error().message;
}

// Work that leaves nothing behind is paid for, too.
TEST(ChatTemplate, ComparisonsArePaidFor) {
  ChatLimits limits;
  limits.steps_max = 100'000;
  for (const auto* test :
       {"(i is in(l))", "(i in l)", "(l | unique)", "(l == k)", "(l is sameas k)"}) {
    const auto out = render(std::string("{% set l = range(10000) | list %}"
                                        "{% set k = range(10000) | list %}"
                                        "{% for i in range(500, 1500) %}{% if ") +
                                test + " %}{% endif %}{% endfor %}",
                            limits);
    ASSERT_FALSE(out) << test;
    EXPECT_NE(out.error().message.find("more steps"), std::string::npos) << out.error().message;
  }
}

// Long texts beside a short one: what is walked over or copied is not the text that is asked.
TEST(ChatTemplate, LongArgumentsAndKeysArePaidFor) {
  const std::string begin =
      "{% set long = 'ab' * 5000 %}{% set k = long ~ 'k' %}{% set map = {long ~ 'a': 1, k: 2} %}"
      "{% for i in range(1000) %}{% if ";
  const auto refusal = [&](const std::string& test, const ChatLimits& limits) {
    const auto out = render(begin + test + " %}{% endif %}{% endfor %}", limits);
    return out ? "rendered" : out.error().message;
  };
  ChatLimits few_bytes;
  few_bytes.bytes_max = 1'000'000;
  for (const auto* test : {"'c'.strip(long)", "'c' | trim(long)", "[] | join(long)"}) {
    EXPECT_NE(refusal(test, few_bytes).find("more bytes"), std::string::npos) << test;
  }
  ChatLimits few_steps;
  few_steps.steps_max = 100'000;
  for (const auto* test : {"map[k]", "map.get(k)", "k in map"}) {
    EXPECT_NE(refusal(test, few_steps).find("more steps"), std::string::npos) << test;
  }
}

// Letters change their case by way of UTF-16, and a text in a list is written with escapes.
TEST(ChatTemplate, WhatATextIsChangedThroughIsPaidFor) {
  ChatLimits limits;
  limits.bytes_max = 1'000'000;
  for (const auto* text :
       {"{{ ('A' * 200000) | lower | length }}", "{{ ['A' * 200000] | string | length }}"}) {
    const auto out = render(text, limits);
    ASSERT_FALSE(out) << text;
    EXPECT_NE(out.error().message.find("more bytes"), std::string::npos) << out.error().message;
  }
}

TEST(ChatTemplate, QuotingIsTheSameInEveryPartOfALongText) {
  // Characters of three bytes, which no part of 4096 bytes holds in whole numbers.
  EXPECT_EQ(shown(R"({{ ('中\n' * 2000) | tojson == '"' ~ '中\\n' * 2000 ~ '"' }})"), "True");
  EXPECT_EQ(
      shown(R"({{ ('中' * 4000) | tojson(ensure_ascii=true) == '"' ~ '\\u4e2d' * 4000 ~ '"' }})"),
      "True");
}

TEST(ChatTemplate, DeepAndLongTemplatesAreRefused) {
  const auto kind_of = [](const std::string& text) {
    const auto made = ChatTemplate::parse(text);
    EXPECT_FALSE(made);
    return made ? ErrorKind::Internal : made.error().kind;
  };
  EXPECT_EQ(kind_of(std::string((1 << 20) + 1, 'a')), ErrorKind::ResourceExhausted);
  EXPECT_EQ(kind_of("{{ " + std::string(1000, '(') + "1" + std::string(1000, ')') + " }}"),
            ErrorKind::ResourceExhausted);
  EXPECT_EQ(kind_of("{{ " + std::string(1000, '-') + "1 }}"), ErrorKind::ResourceExhausted);
  std::string chain = "{{ 1";
  for (int i = 0; i < 100'000; ++i) chain += " + 1";
  EXPECT_EQ(kind_of(chain + " }}"), ErrorKind::ResourceExhausted);
  std::string tests = "{{ 1";
  for (int i = 0; i < 100'000; ++i) tests += " is not string";
  EXPECT_EQ(kind_of(tests + " }}"), ErrorKind::ResourceExhausted);
  std::string blocks;
  for (int i = 0; i < 1000; ++i) blocks += "{% if 1 %}";
  EXPECT_EQ(kind_of(blocks), ErrorKind::ResourceExhausted);
}

}  // namespace
}  // namespace muster
