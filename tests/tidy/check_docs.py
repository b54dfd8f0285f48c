"""Every module has a README of at most 60 lines that names each of its headers, every relative link of a document leads
somewhere, and every route that docs/ names is in the server's description."""

import re

from sources import module_lists, report, root_from_arguments, tracked_files

README_LINES_MAX = 60
LINK = re.compile(r"\]\(([^)\s]+)\)")
BROKEN_LINK = re.compile(r"\]\([^)\s\"]*\s[^)\"]*\)")  # white space in an address, as a formatter leaves it
OUTSIDE = ("http:", "https:", "mailto:", "#")
ROUTE = re.compile(r"`(GET|POST|PUT|PATCH|DELETE) (/[^\s`?]*)")
OTHERS_ROUTES = "docs/from-the-documents.md"  # names routes that were asked for, and says which of them are not there


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def unnamed_headers(root, folder, text):
    """Headers of `folder` that no code span of its README names, but for those of tests."""
    words = {word for span in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"\w+", span)}
    headers = [path for path in tracked_files(root) if path.suffix == ".h" and (root / path).is_relative_to(folder)]
    return [path for path in headers if not path.stem.endswith(("_fixture", "_test")) and path.stem not in words]


def nameless(route):
    """/gpu/{id} as /gpu/{}: documents may name a parameter as they like."""
    return re.sub(r"{\w+}", "{}", route)


def described_routes(root):
    """{(METHOD, nameless path)} of docs/openapi.yaml, which ./test compares with the routes of the server."""
    path, routes = None, set()
    for line in (root / "docs" / "openapi.yaml").read_text().splitlines():
        if found := re.match(r"  (/[^:]*):", line):
            path = nameless(found.group(1))
        elif found := re.match(r"    (get|post|put|patch|delete):", line):
            routes.add((found.group(1).upper(), path))
    return routes


def unknown_routes(root):
    """Of `METHOD /path` in docs/."""
    documents = [path for path in tracked_files(root)
                 if path.suffix == ".md" and path.is_relative_to("docs") and str(path) != OTHERS_ROUTES]
    named = [(path, *found) for path in documents for found in ROUTE.findall((root / path).read_text())]
    known = described_routes(root) if named else set()
    return [f"{path}: {method} {route} is not in docs/openapi.yaml"
            for path, method, route in named if (method, nameless(route)) not in known]


def faults_in(root):
    faults = []
    for cmake in module_lists(root):
        readme = cmake.parent / "README.md"
        if not readme.exists():
            faults.append(f"{cmake.parent.relative_to(root)}: no README.md")
            continue
        name, text = readme.relative_to(root), readme.read_text()
        if len(text.splitlines()) > README_LINES_MAX:
            faults.append(f"{name}: more than {README_LINES_MAX} lines")
        faults += [f"{name}: {path.name} is not named" for path in unnamed_headers(root, cmake.parent, text)]
    for path in tracked_files(root):
        if path.suffix != ".md":
            continue
        text = without_code((root / path).read_text())
        faults += [f"{path}: white space in a link: {link}" for link in BROKEN_LINK.findall(text)]
        for link in LINK.findall(text):
            target = link.split("#")[0]
            if not link.startswith(OUTSIDE) and not ((root / path).parent / target).exists():
                faults.append(f"{path}: the link {link} leads nowhere")
    return faults + unknown_routes(root)


if __name__ == "__main__":
    report(faults_in(root_from_arguments()), "every module has its README, which names its headers; links and routes lead somewhere")
