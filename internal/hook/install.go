package hook

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Style is how a host of repositories runs hooks beside each other.
type Style string

// The styles. Each says where our hook goes below the repository.
const (
	Plain  Style = "git"    // hooks/pre-receive, or core.hooksPath; a hook that is there moves into pre-receive.d/ and is run too
	Gitaly Style = "gitaly" // custom_hooks/pre-receive.d/refaudit
	Gitea  Style = "gitea"  // hooks/pre-receive.d/refaudit, which Gitea's own hook runs
)

// Styles are the names that ParseStyle takes.
var Styles = []Style{Plain, Gitaly, Gitea}

// ParseStyle reads the value of --style.
func ParseStyle(word string) (Style, error) {
	for _, s := range Styles {
		if string(s) == word {
			return s, nil
		}
	}
	return "", fmt.Errorf("no style %q: there are git, gitaly and gitea", word)
}

// Place is where the hooks of one repository are.
type Place struct {
	GitDir string
	Hooks  string // the folder of its hooks: core.hooksPath, or hooks/ in the git dir
	Style  Style
}

const (
	hookName = "pre-receive"
	parts    = "pre-receive.d"
	ours     = "50-refaudit"
	theirs   = "10-local" // the hook that was there before
	marker   = "# refaudit: installed by refaudit hook install"
)

// script is our hook: the program that installed it.
func script(program string) []byte {
	return []byte("#!/bin/sh\n" + marker + "\nexec " + quote(program) + " hook pre-receive\n")
}

// dispatcher runs every hook of pre-receive.d on the same standard input; the first that says no ends it.
const dispatcher = `#!/bin/sh
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

// Install puts our hook beside those that exist, and tells what it did; nothing is done twice.
func Install(p Place, program string) (did []string, err error) {
	if p.Style != Plain {
		path := p.part()
		if same(path, script(program)) {
			return nil, nil
		}
		return []string{"wrote " + path}, write(path, script(program))
	}
	hook := filepath.Join(p.Hooks, hookName)
	old, err := os.ReadFile(hook)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []string{"wrote " + hook}, write(hook, script(program))
	case err != nil:
		return nil, err
	case bytes.Equal(old, []byte(dispatcher)):
		path := filepath.Join(p.Hooks, parts, ours)
		if same(path, script(program)) {
			return nil, nil
		}
		return []string{"wrote " + path}, write(path, script(program))
	case bytes.Contains(old, []byte(marker)):
		if bytes.Equal(old, script(program)) {
			return nil, nil
		}
		return []string{"wrote " + hook}, write(hook, script(program))
	}
	return beside(p, hook, program)
}

// beside keeps the hook that is there: it moves into pre-receive.d, and a dispatcher takes its
// place. The parts are whole before the dispatcher appears, so that no push passes unjudged.
func beside(p Place, hook, program string) (did []string, err error) {
	dir := filepath.Join(p.Hooks, parts)
	moved := filepath.Join(dir, theirs)
	if _, err := os.Lstat(moved); err == nil {
		return nil, fmt.Errorf("%s is there already: move it away first", moved)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := write(filepath.Join(dir, ours), script(program)); err != nil {
		return nil, err
	}
	if err := os.Link(hook, moved); err != nil { // a second name, so that the first is there until it is replaced
		return nil, err
	}
	if err := write(hook, []byte(dispatcher)); err != nil {
		return nil, err
	}
	return []string{"moved " + hook + " to " + moved, "wrote " + filepath.Join(dir, ours), "wrote " + hook + ", which runs both"}, nil
}

// Uninstall takes our hook away, and puts back what was there before.
func Uninstall(p Place) (did []string, err error) {
	if p.Style != Plain {
		return removeOurs(p.part())
	}
	hook := filepath.Join(p.Hooks, hookName)
	text, err := os.ReadFile(hook)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(text, []byte(dispatcher)) {
		return removeOurs(hook)
	}
	did, err = removeOurs(filepath.Join(p.Hooks, parts, ours))
	if err != nil {
		return did, err
	}
	moved := filepath.Join(p.Hooks, parts, theirs)
	rest, err := os.ReadDir(filepath.Join(p.Hooks, parts))
	if err != nil {
		return did, err
	}
	if len(rest) != 1 || rest[0].Name() != theirs {
		return did, nil // others have come to rely on the dispatcher
	}
	if err := os.Rename(moved, hook); err != nil {
		return did, err
	}
	return append(did, "moved "+moved+" back to "+hook), os.Remove(filepath.Join(p.Hooks, parts))
}

func (p Place) part() string {
	if p.Style == Gitaly {
		return filepath.Join(p.GitDir, "custom_hooks", parts, "refaudit")
	}
	return filepath.Join(p.GitDir, "hooks", parts, "refaudit")
}

func removeOurs(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Contains(text, []byte(marker)) {
		return nil, nil
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return nil, err
	}
	return []string{"removed " + path}, nil
}

func same(path string, text []byte) bool {
	old, err := os.ReadFile(path)
	return err == nil && bytes.Equal(old, text)
}

// write replaces a script at once: a push that runs meanwhile sees the old or the new one.
func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".refaudit-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o755), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
