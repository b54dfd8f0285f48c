"""The checks of this folder find what they are for: each is shown a small tree with one fault."""

import json
import pathlib
import sys
import tempfile
import unittest

import check_arrows
import check_comments
import check_docs
import check_includes
import check_interfaces
import check_names
import check_paths
import check_sizes
import check_targets
import clang_tidy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cmake"))
import unity_groups

TABLE = "spec:\nplanner: spec\nscheduler: spec\ncli: *\n"


class Tree(unittest.TestCase):
    """A test with a repository of its own, made from {path: text}."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def write(self, files):
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


class Arrows(Tree):
    def setUp(self):
        super().setUp()
        self.write({
            "src/spec/CMakeLists.txt": "muster_module(spec DEPS base)",
            "src/planner/CMakeLists.txt": "muster_module(planner\n  DEPS spec base\n  SOURCES plan.cpp\n)",
            "src/scheduler/CMakeLists.txt": "muster_module(scheduler DEPS base)",
            "src/planner/plan.cpp": '#include "planner/plan.h"\n#include "spec/device.h"\n',
        })

    def faults(self):
        return check_arrows.faults_in(self.root, TABLE)

    def test_declared_includes_pass(self):
        self.assertEqual(self.faults(), [])

    def test_an_undeclared_include_is_refused(self):
        self.write({"src/planner/plan.h": '#include "scheduler/batch.h"\n'})
        self.assertEqual(self.faults(), ["src/planner/plan.h: planner -> scheduler is not declared in "
                                         "src/planner/CMakeLists.txt"])

    def test_a_declared_arrow_outside_the_table_is_refused(self):
        self.write({"src/scheduler/CMakeLists.txt": "muster_module(scheduler DEPS planner base)",
                    "src/scheduler/a.h": '#include "planner/plan.h"\n'})
        self.assertEqual(self.faults(), ["src/scheduler: scheduler -> planner is not in arrows.txt"])

    def test_a_folder_without_a_row_is_refused(self):
        self.write({"src/extras/CMakeLists.txt": "muster_module(extras DEPS base)"})
        self.assertEqual(self.faults(), ["src/extras: arrows.txt does not know this folder"])

    def test_the_command_line_never_links_the_engine(self):
        self.write({"src/cli/CMakeLists.txt": "muster_module(cli DEPS engine base)",
                    "src/cli/a.h": '#include "engine/engine.h"\n'})
        self.assertEqual(self.faults(), ["src/cli: cli -> engine is not in arrows.txt"])

    def test_an_arrow_that_no_file_uses_is_refused(self):
        self.write({"src/planner/plan.cpp": '#include "planner/plan.h"\n'})
        self.assertEqual(self.faults(), ["planner: no file includes anything of spec, which its CMakeLists.txt declares"])

    def test_the_table_and_the_page_say_what_is_declared(self):
        table = "spec:\nplanner: spec\nscheduler:\n"
        page = "| `spec/` | nouns | – |\n| `planner/` | plans | spec |\n| `scheduler/` | queues | – |\n"
        self.assertEqual(check_arrows.table_faults(self.root, table, page), [])
        self.assertEqual(check_arrows.table_faults(self.root, "wing:\nspec:\nplanner: spec\nscheduler: spec\n", page),
                         ["arrows.txt: there is no folder wing",
                          "arrows.txt: scheduler -> spec is an arrow that its CMakeLists.txt does not declare",
                          "ARCHITECTURE.md: its row of scheduler must name spec"])

    def test_a_circle_is_refused(self):
        self.write({"src/spec/CMakeLists.txt": "muster_module(spec DEPS planner base)"})
        self.assertIn("src/spec: the arrows from spec lead back to it", self.faults())


class Includes(Tree):
    def test_torch_outside_its_folders_is_refused(self):
        self.write({"src/engine/a.cpp": "#include <ATen/core/Tensor.h>\n",
                    "src/planner/a.cpp": "#include <ATen/core/Tensor.h>\n"})
        self.assertEqual(check_includes.faults_in(self.root),
                         ["src/planner/a.cpp:1: torch belongs to engine/, worker/ and the stand-in device"])

    def test_a_clock_in_a_pure_folder_is_refused(self):
        self.write({"src/scheduler/a.cpp": "auto t = std::chrono::steady_clock::now();\n",
                    "src/hw/a.cpp": "auto t = std::chrono::steady_clock::now();\n"})
        self.assertEqual(check_includes.faults_in(self.root),
                         ["src/scheduler/a.cpp:1: scheduler/ is pure: auto t = std::chrono::steady_clock::now();"])

    def test_a_file_or_thread_in_a_pure_folder_is_refused(self):
        self.write({"src/planner/a.h": "#include <fstream>\n#include <thread>\n#include <vector>\n"})
        self.assertEqual(len(check_includes.faults_in(self.root)), 2)


    def test_a_header_that_wants_a_test_program_is_refused(self):
        self.write({"src/hw/a_fixture.h": "auto place = MUSTER_BINARY_DIR;\n",
                    "src/hw/a_test.cpp": "auto place = MUSTER_BINARY_DIR;\n"})
        self.assertEqual(check_includes.faults_in(self.root),
                         ["src/hw/a_fixture.h:1: a header alone has no MUSTER_BINARY_DIR; use it in a .cpp file"])

    def test_a_source_that_is_included_is_refused(self):
        self.write({"src/hw/a.cpp": '#include "hw/b.cpp"\n#include "hw/b.h"\n'})
        self.assertEqual(check_includes.faults_in(self.root),
                         ['src/hw/a.cpp:1: a source is compiled, not included: #include "hw/b.cpp"'])


class Names(Tree):
    def faults(self, first, second):
        self.write({"src/hw/a.h": f"namespace muster {{\n\n{first}\n\n}}\n",
                    "src/net/b.h": f"namespace muster {{\n\n{second}\n\n}}\n"})
        return check_names.faults_in(self.root)

    def test_two_types_of_one_name_are_refused(self):
        for second in ("enum class Row : int {", "class Row final : public Base {"):
            self.assertEqual(self.faults("struct Row {", second),
                             ["src/net/b.h:3: muster::Row is defined in src/hw/a.h:3 too"])

    def test_a_declaration_or_another_namespace_is_not(self):
        self.assertEqual(self.faults("struct Row {", "struct Row;"), [])
        self.assertEqual(self.faults("struct Row {", "}\nnamespace muster::net {\nstruct Row {"), [])


class Sizes(unittest.TestCase):
    def function(self, body_lines, above="", head="int sum(int first,\n        int second) {"):
        return f"{above}{head}\n" + "  step();\n" * body_lines + "}\n"

    def faults(self, text):
        return check_sizes.faults_of(pathlib.Path("a.cpp"), text)

    def test_a_function_of_sixty_lines_passes(self):
        self.assertEqual(self.faults(self.function(57)), [])

    def test_a_longer_function_is_refused(self):
        self.assertEqual(len(self.faults(self.function(58))), 1)

    def test_a_reason_allows_it(self):
        self.assertEqual(self.faults(self.function(90, "// Long because it is one table of cases.\n")), [])

    def test_a_method_is_measured_and_a_class_is_not(self):
        method = "class Queue final : public Base {\n public:\n  int size() const override {\n"
        text = method + "    step();\n" * 80 + "  }\n};\n"
        self.assertEqual(len(self.faults(text)), 1)
        self.assertEqual(self.faults("struct Wide {\n" + "  int x = 0;\n" * 90 + "};\n"), [])

    def test_a_constructor_with_initialisers_ends_where_it_ends(self):
        head = "Queue::Queue(int size)\n    : size_(size),\n      items_(size) {"
        self.assertEqual(self.faults(self.function(3, head=head) + "int x;\n" * 90 + "}\n"), [])
        self.assertEqual(len(self.faults(self.function(70, head=head))), 1)

    def test_a_parenthesis_in_a_literal_does_not_count(self):
        head = 'bool find(int x) {\n  while (!has(")")) {\n  }'
        self.assertEqual(self.faults("#include <a>\n" + "int x;\n" * 90 + self.function(3, head=head)), [])

    def test_a_file_above_six_hundred_lines_is_refused(self):
        self.assertEqual(len(self.faults("int x;\n" * 601)), 1)
        self.assertEqual(self.faults("// Long because it is a table.\n" + "int x;\n" * 601), [])


class Interfaces(Tree):
    def faults(self, methods, comment=""):
        self.write({"src/net/a.h": f"{comment}class Fleet {{\n public:\n" + "  virtual int f(\n      int x) const = 0;\n" * methods + "};\n"})
        return check_interfaces.faults_in(self.root)

    def test_an_interface_of_six_methods_passes(self):
        self.assertEqual(self.faults(6), [])

    def test_a_larger_one_is_refused_but_for_a_reason(self):
        self.assertEqual(len(self.faults(7)), 1)
        self.assertEqual(self.faults(7, "/// Sealed: its factory alone makes one.\n"), [])


class Comments(Tree):
    def faults(self, *texts):
        self.write({f"src/net/{number}.cpp": text for number, text in enumerate(texts)})
        return check_comments.faults_in(self.root)

    def test_a_silent_source_is_named(self):
        self.assertEqual(self.faults("// Adds.\n" * 10 + "int x;\n" * 50, "int x;\n" * 41),
                         ["src/net/1.cpp: does not begin with a comment that says its idea"])

    def test_too_few_comments_in_all_are_refused(self):
        self.assertEqual(self.faults("// Adds.\n" + "int x;\n" * 50),
                         ["src: 2.0% of the lines of sources are comments; 8% are asked for"])

    def test_a_comment_behind_code_counts(self):
        self.assertEqual(self.faults("int x;  // why\n" * 4 + "int x;\n" * 26), [])


class Targets(Tree):
    def test_a_test_that_no_target_builds_is_refused(self):
        self.write({"src/spec/CMakeLists.txt": "muster_module(spec DEPS base TESTS device_test.cpp)",
                    "src/spec/device_test.cpp": "", "src/spec/vice_test.cpp": ""})
        self.assertEqual(check_targets.faults_in(self.root),
                         ["src/spec/vice_test.cpp: in no target of src/spec/CMakeLists.txt"])


class Docs(Tree):
    def test_a_link_that_leads_nowhere_is_refused(self):
        self.write({"docs/a.md": "[there](b.md#part) [not there](c.md) `[code](d.md)`", "docs/b.md": "x"})
        self.assertEqual(check_docs.faults_in(self.root), ["docs/a.md: the link c.md leads nowhere"])

    def test_a_module_needs_a_short_readme(self):
        self.write({"src/spec/CMakeLists.txt": "", "src/net/CMakeLists.txt": "", "src/net/README.md": "x\n" * 61})
        self.assertEqual(check_docs.faults_in(self.root),
                         ["src/net/README.md: more than 60 lines", "src/spec: no README.md"])

    def test_a_readme_names_each_header_but_those_of_tests(self):
        self.write({"src/net/CMakeLists.txt": "", "src/net/README.md": "`a`, `sub/b.h`: both; c is not code\n"} |
                   {f"src/net/{name}.h": "" for name in ("a", "sub/b", "c", "d_fixture")})
        self.assertEqual(check_docs.faults_in(self.root), ["src/net/README.md: c.h is not named"])

    def test_a_link_that_a_formatter_broke_is_found(self):
        self.write({"docs/a.md": "[there](b.md \"title\") [broken](../ b.md)", "docs/b.md": "x"})
        self.assertEqual(check_docs.faults_in(self.root), ["docs/a.md: white space in a link: ](../ b.md)"])

    def test_a_route_that_the_server_does_not_have_is_found(self):
        self.write({"docs/openapi.yaml": "paths:\n  /v1/gpu/{id}/stats:\n    get:\n      tags: []\n",
                    "docs/from-the-documents.md": "`GET /of/another`",
                    "docs/a.md": "`GET /v1/gpu/{gpu_id}/stats?x=1`, `POST /v1/gpu/{id}/stats`, `GET /v1/config`"})
        self.assertEqual(check_docs.faults_in(self.root),
                         ["docs/a.md: POST /v1/gpu/{id}/stats is not in docs/openapi.yaml",
                          "docs/a.md: GET /v1/config is not in docs/openapi.yaml"])


class ClangTidy(Tree):
    def setUp(self):
        super().setUp()
        self.write({
            ".clang-tidy": "Checks: x",
            "src/spec/a.cpp": '#include "spec/a.h"\n',
            "src/spec/a.h": '# include "base/b.h"\n',
            "src/base/b.h": '#include <vector>\n#include "base/b.h"\n',
            "src/base/c.h": "int c;\n",
        })

    def passed_before(self):
        return clang_tidy.fingerprint(self.root, [self.root / "src/spec/a.cpp"])

    def test_what_a_file_includes_by_another_makes_it_be_checked_again(self):
        for name in ("src/base/b.h", "src/spec/a.h", "src/spec/a.cpp", ".clang-tidy"):
            before = self.passed_before()
            with open(self.root / name, "a") as file:
                file.write("\n")
            self.assertNotEqual(self.passed_before(), before, name)

    def test_another_header_does_not(self):
        before = self.passed_before()
        self.write({"src/base/c.h": "long c;\n"})
        self.assertEqual(self.passed_before(), before)

    def test_sources_of_all_folders_are_grouped_and_one_with_its_own_flags_is_alone(self):
        names = ["spec/a.cpp", "base/b.cpp", "cli/alone.cpp", "spec/a_test.cpp"]
        self.write({f"src/{name}": "" for name in names} | {
            f"build/{number}/Unity/unity_0_cxx.cxx": f'#include "{self.root}/src/{name}"\n'
            for number, name in enumerate(names[:2])})
        files = [self.root / f"build/{number}/Unity/unity_0_cxx.cxx" for number in range(2)]
        files += [self.root / "src" / name for name in names[2:]]
        flags = ["-DA -Ione", "-DB -isystem two -std=c++20", "-DALONE", ""]
        self.write({"build/compile_commands.json": json.dumps([
            {"file": str(file), "command": f"/usr/bin/ccache c++ {flag} -c {file}"} for file, flag in zip(files, flags)])})
        group = self.root / "build/tidy-groups/group_0.cxx"
        alone = self.root / "src/cli/alone.cpp"
        self.assertEqual(clang_tidy.units_to_check(self.root, self.root / "build"),
                         {group: [self.root / "src/base/b.cpp", self.root / "src/spec/a.cpp"], alone: [alone]})
        entry = json.loads((self.root / "build/tidy-groups/compile_commands.json").read_text())[-1]
        self.assertEqual(entry["arguments"], ["c++", "-DA", "-Ione", "-DB", "-isystem", "two", "-c", str(group)])

    def test_what_headers_define_counts_as_a_word_of_the_source(self):
        self.write({"src/spec/a.h": "enum class Role : std::uint8_t { A };\nclass Later;\nstruct Both final : Base {\n"
                                    "inline constexpr int kMost = 1;\n"})
        self.assertEqual(clang_tidy.names_of_headers(self.root, self.root / "src/spec/a.cpp"), {"Role", "Both", "kMost"})


class UnityGroups(Tree):
    def groups(self, *texts):
        names = [f"{letter}.cpp" for letter in "abcdefg"[:len(texts)]]
        self.write(dict(zip(names, texts)))
        return [[names.index(pathlib.Path(p).name) for p in group]
                for group in unity_groups.groups([str(self.root / name) for name in names], 12)]

    def own(self, declaration):
        return "namespace {\n\n" + declaration + "\n\n}  // namespace\n"

    def test_files_without_a_clash_share_a_group(self):
        self.assertEqual(self.groups(self.own("int sum(int x) {\n  return x;\n}"), self.own("constexpr int kMost = 3;"),
                                     "int f() { return text.sum(1); }"), [[0, 1, 2]])

    def test_a_function_of_the_same_name_clashes(self):
        sum_ = self.own("int sum(int x) {\n  return x;\n}")
        self.assertEqual(self.groups(sum_, sum_, "int f() { return sum(1); }"), [[0], [1], [2]])

    def test_the_same_using_may_stand_in_several(self):
        for declaration in ("using Json = nlohmann::json;", "using std::chrono::seconds;", "using enum Reading;",
                            "using Json =\n    nlohmann::json;"):
            self.assertEqual(self.groups(self.own(declaration), self.own(declaration)), [[0, 1]], declaration)
        self.assertEqual(self.groups(self.own("using Json = nlohmann::json;"),
                                     self.own("using Json = nlohmann::ordered_json;")), [[0], [1]])
        self.assertEqual(self.groups(self.own("using enum Reading;"), "void f(Reading reading);\n"), [[0], [1]])

    def test_an_assertion_is_no_name(self):
        assertion = self.own('static_assert(sizeof(int) == 4, "as it is sent");')
        self.assertEqual(self.groups(assertion, assertion), [[0, 1]])

    def test_a_type_alias_or_constant_that_another_names_clashes(self):
        for declaration in ("using Row = int;", "struct Row {", "constexpr int Row = 1;"):
            self.assertEqual(self.groups(self.own(declaration), "void f(Row row);\n"), [[0], [1]], declaration)

    def test_a_macro_and_a_test_of_the_same_name_clash(self):
        self.assertEqual(self.groups("#define ROW 1\n", "int x = ROW;\n"), [[0], [1]])
        self.assertEqual(self.groups("TEST(A, B) {\n}\n", "TEST(A, B) {\n}\n", "TEST(A, C) {\n}\n"), [[0, 2], [1]])

    def test_a_file_for_another_instruction_set_stays_alone(self):
        self.assertEqual(self.groups("int x;\n", '#pragma GCC target("avx2")\n', "int y;\n"), [[0, 2], [1]])

    def test_a_file_that_includes_curses_stays_alone(self):
        self.assertEqual(self.groups("int x;\n", "#include <curses.h>\n", "int y;\n"), [[0, 2], [1]])


class Paths(Tree):
    def test_a_machine_path_and_a_registry_host_are_refused(self):
        self.write({"tools/a.sh": "cd /wor" + "k/main\n", "tools/b.sh": "curl pypi" + ".org\n",
                    "tools/c.sh": "cd /usr/share\n"})
        self.assertEqual(check_paths.faults_in(self.root),
                         ["tools/a.sh:1: a folder of one machine: /wor" + "k/",
                          "tools/b.sh:1: a registry's host: pypi" + ".org"])


if __name__ == "__main__":
    unittest.main()
