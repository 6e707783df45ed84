package hook

import (
	"bytes"
	"strings"
)

// What makes a script ours. A dispatcher has not the marker of a script: it may not be removed like one.
const (
	marker         = "# refaudit: installed by refaudit hook install"
	besideMarker   = "# refaudit: dispatcher of refaudit hook install, which overwrites it: change nothing here"
	besideOptional = "# git ignored the hook that was here: it is run once it can be"
	partsBegin     = "# what else the dispatcher before this one ran\n"
	partsEnd       = "# end\n"
)

// script is our hook where there is no other one: the program that installed it.
func script(program string) []byte {
	return []byte("#!/bin/sh\n" + marker + "\nexec " + quote(program) + " hook pre-receive\n")
}

// isScript tells whether a text is our script, for whatever program.
func isScript(text []byte) bool {
	line, ok := bytes.CutPrefix(text, []byte("#!/bin/sh\n"+marker+"\nexec "))
	line, end := bytes.CutSuffix(line, []byte(" hook pre-receive\n"))
	return ok && end && !bytes.ContainsRune(line, '\n')
}

// A dispatcher runs the hook that was there before, then us. Its names begin with refaudit_, since a variable that
// comes from the environment would be handed on with another value.
type dispatcher struct {
	optional bool   // git ignored the hook that was there
	parts    string // "", or the lines that run what else a former dispatcher ran
	program  string
}

func isDispatcher(text []byte) bool { return bytes.Contains(text, []byte("\n"+besideMarker+"\n")) }

// readDispatcher finds in a dispatcher what must stay when it is written again.
func readDispatcher(text []byte) (d dispatcher) {
	d.optional = bytes.Contains(text, []byte("\n"+besideOptional+"\n"))
	if _, after, ok := strings.Cut(string(text), partsBegin); ok {
		d.parts, _, _ = strings.Cut(after, partsEnd)
	}
	return d
}

func (d dispatcher) text() []byte {
	old := dispatchRequired
	if d.optional {
		old = besideOptional + "\n" + dispatchOptional
	}
	parts := d.parts
	if parts != "" {
		parts = partsBegin + parts + partsEnd
	}
	return []byte("#!/bin/sh\n" + besideMarker + "\n" + dispatchHead + old + parts + dispatchEnd +
		"exec " + quote(d.program) + " hook pre-receive <&3 3<&-\n")
}

// The folder of the old hook is found beside the real folder of hooks, so that a repository can be moved. A file
// that came into hooks/ later is given its link there first: the old hook may look for it, and does if it bears its name.
const dispatchHead = `# Runs the hook that was here before, from the folder beside this one, and then refaudit, each on all that git says.
# The first that refuses ends it.
refaudit_refuse() {
	printf 'refaudit: the push is refused: %s\n' "$1" >&2
	exit 1
}
refaudit_self=$0
if [ -L "$0" ]; then
	refaudit_self=$(readlink -f "$0") || refaudit_refuse "the link $0 can't be followed"
fi
case $refaudit_self in
/*) ;;
*) refaudit_self=./$refaudit_self ;;
esac
refaudit_hooks=$(CDPATH= cd -P "${refaudit_self%/*}" && pwd -P) || refaudit_refuse "the folder of $0 can't be entered"
refaudit_kept=$refaudit_hooks.refaudit
refaudit_old=$refaudit_kept/pre-receive
[ -d "$refaudit_kept" ] || refaudit_refuse "the folder $refaudit_kept, which has the hook that was here before, is missing"
for refaudit_file in "$refaudit_hooks"/* "$refaudit_hooks"/.[!.]*; do
	refaudit_name=${refaudit_file##*/}
	case $refaudit_name in
	pre-receive | .refaudit-*) continue ;;
	esac
	if [ -e "$refaudit_file" ] && ! [ -L "$refaudit_kept/$refaudit_name" ] && ! [ -e "$refaudit_kept/$refaudit_name" ]; then
		ln -s "../${refaudit_hooks##*/}/$refaudit_name" "$refaudit_kept/$refaudit_name" 2>/dev/null || [ -L "$refaudit_kept/$refaudit_name" ] ||
			case $refaudit_name in
			pre-receive*) refaudit_refuse "$refaudit_kept has no link to $refaudit_file, which is new: run refaudit hook install again" ;;
			esac # any other file is no reason to stop pushes
	fi
done
refaudit_input=$(mktemp) || refaudit_refuse "no temporary file can be made"
trap 'rm -f "$refaudit_input"' EXIT
trap 'exit 1' HUP INT TERM
cat >"$refaudit_input" || refaudit_refuse "$refaudit_input can't be written"
`

const dispatchRequired = `if ! [ -f "$refaudit_old" ] || ! [ -x "$refaudit_old" ]; then
	refaudit_refuse "the hook $refaudit_old, which was here before, is missing, leads nowhere or can't be executed"
fi
"$refaudit_old" "$@" <"$refaudit_input" || exit $?
`

const dispatchOptional = `if [ -x "$refaudit_old" ]; then
	"$refaudit_old" "$@" <"$refaudit_input" || exit $?
fi
`

const dispatchEnd = `exec 3<"$refaudit_input" || exit 1
rm -f "$refaudit_input"
`

// runParts are the lines that run the parts of pre-receive.d, but for those that never were run.
func runParts(never []string) string {
	words := []string{"''"}
	for _, name := range never {
		words = append(words, quote(name))
	}
	return `for refaudit_part in "$refaudit_hooks"/pre-receive.d/*; do
	case ${refaudit_part##*/} in
	` + strings.Join(words, " | ") + `) continue ;;
	esac
	if [ -f "$refaudit_part" ] && [ -x "$refaudit_part" ]; then
		"$refaudit_part" "$@" <"$refaudit_input" || exit $?
	elif [ -e "$refaudit_part" ] || [ -L "$refaudit_part" ]; then
		refaudit_refuse "$refaudit_part leads nowhere or can't be executed"
	fi
done
`
}

// formerDispatcher is what was written before: it moved the old hook into pre-receive.d, and ran all that is there.
const formerDispatcher = `#!/bin/sh
` + marker + `
# Runs each executable in pre-receive.d on what git says; the first that refuses ends it.
input=$(mktemp) || exit 1
trap 'rm -f "$input"' EXIT
cat >"$input"
for part in "$(dirname "$0")"/pre-receive.d/*; do
	if [ -x "$part" ]; then
		"$part" "$@" <"$input" || exit $?
	fi
done
`

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
