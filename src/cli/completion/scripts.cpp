// The three scripts are thin: they cut the command line into words, ask the program, and hand the
// answer to their shell. What is offered is decided in candidates.cpp alone.
#include "cli/completion/scripts.h"

#include <array>
#include <utility>

#include "terminal/text_width.h"

namespace muster {
namespace {

// bash cuts words at ":" and "=" as well (COMP_WORDBREAKS) and replaces only the last piece, so the
// pieces that touch are put together here, and what is before the last is taken off again.
constexpr std::string_view kBash = R"(# bash completion of muster: source it, or put it into
# ~/.local/share/bash-completion/completions/muster
_muster() {
  local i piece whole cut value path_cut line kind rest=$COMP_LINE words=() names=()
  for ((i = 0; i <= COMP_CWORD; i++)); do
    piece=${COMP_WORDS[i]}
    if ((i == 0)) || [[ $rest == [[:blank:]]* ]]; then
      words+=("$piece")
    else
      words[${#words[@]} - 1]+=$piece
    fi
    rest=${rest#"${rest%%[![:blank:]]*}"}
    rest=${rest#"$piece"}
  done
  whole=${words[${#words[@]} - 1]}
  [[ $piece == [:=]* ]] && piece=${piece##*[:=]}
  cut=${whole%"$piece"}
  value=$whole
  [[ $whole == --*=* ]] && value=${whole#*=}
  path_cut=${value%"$piece"}
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :goes-on) compopt -o nospace ;;
      :files | :folders | :models)
        compopt -o filenames
        kind=-f
        [[ $line != :files ]] && kind=-d
        mapfile -t names < <(compgen $kind -- "$value"
          [[ $line == :models ]] && compgen -f -X '!*.gguf' -- "$value")
        COMPREPLY+=("${names[@]#"$path_cut"}")
        ;;
      *)
        line=${line%%$'\t'*}
        COMPREPLY+=("${line#"$cut"}")
        ;;
    esac
  done < <("${words[0]/#\~/$HOME}" completion words -- "${words[@]:1}" 2>/dev/null)
}
complete -F _muster muster
)";

constexpr std::string_view kZsh = R"(#compdef muster
# zsh completion of muster: source it, or put it as _muster into a folder of $fpath
_muster() {
  local line help paths=
  local -a found blank
  while IFS= read -r line; do
    case $line in
      :files | :folders | :models) paths=$line ;;
      :goes-on) blank=(-S '') ;;
      *)
        help=
        [[ $line == *$'\t'* ]] && help=:${line#*$'\t'}
        line=${line%%$'\t'*}
        found+=("${line//:/\\:}$help")
        ;;
    esac
  done < <("${(Q)words[1]/#\~/$HOME}" completion words -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)
  (( ${#found} )) && _describe -V muster found "${blank[@]}"
  [[ -n $paths ]] && compset -P '--*='
  [[ $paths == :files ]] && _files
  [[ $paths == :folders ]] && _files -/
  [[ $paths == :models ]] && _files -g '*.gguf'
  return 0
}
if [[ $funcstack[1] == _muster ]]; then
  _muster "$@"
else
  compdef _muster muster
fi
)";

constexpr std::string_view kFish = R"(# fish completion of muster: source it, or put it into
# ~/.config/fish/completions/muster.fish
function __muster_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l flag (string match -r '^--[^=]*=' -- $current)
    set -l value (string replace -r '^--[^=]*=' '' -- $current)
    for line in ($words[1] completion words -- $words[2..-1] $current 2>/dev/null)
        switch $line
            case ':goes-on'
            case ':files'
                for path in (__fish_complete_path "$value")
                    printf '%s%s\n' "$flag" $path
                end
            case ':folders'
                for path in (__fish_complete_directories "$value" '')
                    printf '%s%s\n' "$flag" $path
                end
            case ':models'
                for path in (__fish_complete_path "$value" | string match -r '^.*(?:/|\.gguf)(?:\t.*)?$')
                    printf '%s%s\n' "$flag" $path
                end
            case '*'
                printf '%s\n' $line
        end
    end
end
complete -c muster -f -a '(__muster_complete)'
)";

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kScripts{
    {{"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}}};

}  // namespace

std::vector<std::string> shell_names() {
  std::vector<std::string> names;
  for (const auto& [name, script] : kScripts) names.emplace_back(name);
  return names;
}

std::optional<std::string_view> completion_script(std::string_view shell) {
  for (const auto& [name, script] : kScripts) {
    if (name == shell) return script;
  }
  return std::nullopt;
}

std::string candidate_lines(const Candidates& candidates) {
  std::string lines;
  if (candidates.paths == Candidates::Paths::Files) lines += ":files\n";
  if (candidates.paths == Candidates::Paths::Folders) lines += ":folders\n";
  if (candidates.paths == Candidates::Paths::Models) lines += ":models\n";
  if (candidates.goes_on) lines += ":goes-on\n";
  for (const auto& [text, help] : candidates.words) {
    lines += printable(text);
    if (!help.empty()) lines += "\t" + printable(help);
    lines += '\n';
  }
  return lines;
}

}  // namespace muster
