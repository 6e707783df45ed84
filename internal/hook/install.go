package hook

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"refaudit/internal/vfs"
)

// Style is how a host of repositories runs hooks beside each other.
type Style string

// The styles. Each says where our hook goes below the repository.
const (
	Plain  Style = "git"    // hooks/pre-receive, or core.hooksPath; a hook that is there is kept beside that folder and is run too
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
	temp     = ".refaudit-" // begins the names of files that are being written
)

// Install puts our hook beside those that exist, and tells what it did; nothing is done twice.
func Install(p Place, program string) (did []string, err error) {
	if p.Style != Plain {
		return installScript(p.part(), program)
	}
	f, err := p.folder()
	if err != nil {
		return nil, err
	}
	what, err := f.look()
	switch {
	case err != nil:
		return nil, err
	case what == nothing || what == ourScript:
		did, err = installScript(f.hook, program)
	case what == ourDispatcher:
		did, err = f.again(program)
	case what == formerOne:
		did, err = f.upgrade(program)
	default:
		did, err = f.beside(program)
	}
	return f.tellShared(did, "runs this hook"), err
}

// Uninstall takes our hook away, and puts back what was there before.
func Uninstall(p Place) (did []string, err error) {
	if p.Style != Plain {
		return removeScript(p.part())
	}
	f, err := p.folder()
	if err != nil {
		return nil, err
	}
	what, err := f.look()
	switch {
	case err != nil:
		return nil, err
	case what == ourScript:
		did, err = removeScript(f.hook)
	case what == ourDispatcher || what == nothing:
		did, err = f.restore(what)
	case what == formerOne:
		did, err = f.restoreFormer()
	default:
		err = f.abandon()
	}
	return f.tellShared(did, "does without this hook"), err
}

func (p Place) part() string {
	if p.Style == Gitaly {
		return filepath.Join(p.GitDir, "custom_hooks", parts, "refaudit")
	}
	return filepath.Join(p.GitDir, "hooks", parts, "refaudit")
}

// A folder is one of hooks, by its real path, and what we keep beside it.
//
//	hooks/pre-receive            the dispatcher: runs hooks.refaudit/pre-receive, then us
//	hooks/NAME                   as it was
//	hooks.refaudit/pre-receive   the hook that was there: the same file, or a link of the same text
//	hooks.refaudit/NAME          a link to ../hooks/NAME, for each
//
// The old hook finds by its own path what it found before, whether it looks for $0.d, a file beside it, or one above;
// its name is the one it had; and a relative link leads where it led, since it lies as deep as before.
type folder struct {
	dir, hook  string
	kept, keep string // dir.refaudit, and the old hook in it
	shared     bool   // not inside the repository
}

func (p Place) folder() (folder, error) {
	dir, err := filepath.EvalSymlinks(p.Hooks)
	if errors.Is(err, fs.ErrNotExist) {
		if _, there := os.Lstat(p.Hooks); there == nil {
			return folder{}, fmt.Errorf("%s is a link that leads nowhere", p.Hooks)
		}
		dir, err = filepath.Clean(p.Hooks), nil
		if above, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
			dir = filepath.Join(above, filepath.Base(dir))
		}
	}
	if err != nil {
		return folder{}, err
	}
	own, err := filepath.EvalSymlinks(p.GitDir)
	if err != nil {
		return folder{}, err
	}
	rel, err := filepath.Rel(own, dir)
	kept := dir + ".refaudit"
	return folder{dir, filepath.Join(dir, hookName), kept, filepath.Join(kept, hookName), err != nil || !filepath.IsLocal(rel)}, nil
}

// tellShared adds to what was done that other repositories see it too.
func (f folder) tellShared(did []string, what string) []string {
	if len(did) > 0 && f.shared {
		did = append(did, f.dir+" is outside of the repository: every other one that uses it "+what+" too")
	}
	return did
}

// What stands where git looks for a hook.
type standing int

const (
	nothing standing = iota
	ourScript
	ourDispatcher
	formerOne // a dispatcher of the former layout
	another   // somebody else's hook
)

func (f folder) look() (standing, error) {
	st, err := os.Lstat(f.hook)
	if errors.Is(err, fs.ErrNotExist) {
		return nothing, nil
	}
	if err != nil {
		return another, err
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		if to, err := os.Stat(f.hook); err == nil && !to.Mode().IsRegular() {
			return another, fmt.Errorf("%s leads to what is no file: git can't run it", f.hook)
		}
		return another, nil // also if it leads to one of ours: that one isn't of this repository
	}
	if !st.Mode().IsRegular() {
		return another, fmt.Errorf("%s is no file: git can't run it, and refuses every push", f.hook)
	}
	if st.Size() > 1<<20 {
		return another, nil
	}
	text, err := os.ReadFile(f.hook)
	switch {
	case err != nil:
		return another, err
	case isScript(text):
		return ourScript, nil
	case isDispatcher(text):
		return ourDispatcher, nil
	case string(text) == formerDispatcher:
		return formerOne, nil
	}
	if _, there := os.Lstat(f.formerOld()); there == nil && bytes.Contains(text, []byte(marker)) {
		return another, fmt.Errorf("%s was changed since refaudit hook install wrote it: put %s back in its place first", f.hook, f.formerOld())
	}
	return another, nil
}

// beside keeps the hook that is there and puts a dispatcher in its place. What that runs is whole before it appears:
// no push passes unjudged, at whatever step we are stopped.
func (f folder) beside(program string) (did []string, err error) {
	did, err = f.keepOld(f.hook, dispatcher{program: program})
	if err == nil {
		did = append([]string{"kept " + f.hook + " as " + f.keep}, did...)
	}
	return did, err
}

// keepOld gives the old hook its second name, then lets a dispatcher take the place.
func (f folder) keepOld(old string, d dispatcher) (did []string, err error) {
	if _, err := os.Lstat(f.keep); err == nil && !sameFile(old, f.keep) {
		return nil, fmt.Errorf("%s is there already, of an earlier install: move it away first", f.keep)
	}
	defer func() {
		if what, _ := f.look(); err != nil && what != ourDispatcher {
			if sameFile(old, f.keep) {
				os.Remove(f.keep)
			}
			f.clear()
		}
	}()
	if err := f.makeKept(); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(f.keep); errors.Is(err, fs.ErrNotExist) {
		if err := secondName(old, f.keep); err != nil {
			return nil, err
		}
	}
	ignored := vfs.Enter(f.keep)
	d.optional = ignored != nil
	if err := syncDir(f.kept); err != nil {
		return nil, err
	}
	if err := write(f.hook, d.text()); err != nil {
		return nil, err
	}
	if ignored != nil {
		return []string{fmt.Sprintf("wrote %s, which runs our hook alone: git ignored the other hook, since it can't be executed (%v)", f.hook, ignored)}, nil
	}
	return []string{"wrote " + f.hook + ", which runs both"}, nil
}

// makeKept makes the folder of the old hook, open to the same users as the one of hooks, and its links.
func (f folder) makeKept() error {
	st, err := os.Stat(f.dir)
	if err != nil {
		return err
	}
	mode := st.Mode() & (fs.ModePerm | fs.ModeSetgid | fs.ModeSticky)
	if err := os.Mkdir(f.kept, mode); err == nil {
		if err := os.Chmod(f.kept, mode); err != nil {
			return err
		}
	} else if now, lerr := os.Lstat(f.kept); lerr != nil || !now.IsDir() {
		return err
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	for _, e := range append(namesOf(entries), parts) { // pre-receive.d also where it is made later
		if e == hookName || strings.HasPrefix(e, temp) {
			continue
		}
		if err := os.Symlink(f.linkTo(e), filepath.Join(f.kept, e)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func (f folder) linkTo(name string) string { return filepath.Join("..", filepath.Base(f.dir), name) }

func namesOf(entries []os.DirEntry) (names []string) {
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// again brings a dispatcher up to date.
func (f folder) again(program string) (did []string, err error) {
	if _, err := os.Lstat(f.keep); err != nil {
		return nil, fmt.Errorf("the hook that was there before is missing, and every push is refused: %w", err)
	}
	if err := f.makeKept(); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(f.hook)
	if err != nil {
		return nil, err
	}
	d := readDispatcher(text)
	d.program = program
	if want := d.text(); !bytes.Equal(want, text) {
		if err := write(f.hook, want); err != nil {
			return nil, err
		}
		did = append(did, "wrote "+f.hook)
	}
	cleared, err := f.clearFormer()
	return append(did, cleared...), err
}

// restore puts the old hook back in its place, at once, and clears what was beside it.
func (f folder) restore(what standing) (did []string, err error) {
	if _, err := os.Lstat(f.keep); errors.Is(err, fs.ErrNotExist) && what == nothing {
		return nil, f.clear()
	} else if err != nil {
		return nil, fmt.Errorf("the hook that was there before is missing: %w; if none is wanted, remove %s", err, f.hook)
	}
	if did, err = f.clearFormer(); err != nil { // else the old hook may run itself
		return did, err
	}
	if err := os.Rename(f.keep, f.hook); err != nil {
		return did, err
	}
	did = append(did, "moved "+f.keep+" back to "+f.hook)
	return did, errors.Join(f.clear(), syncDir(f.dir))
}

// abandon clears what an install left that was stopped before its last step.
func (f folder) abandon() error {
	if sameFile(f.keep, f.hook) {
		if err := os.Remove(f.keep); err != nil {
			return err
		}
		return f.clear()
	}
	if _, err := os.Lstat(f.keep); err == nil {
		return fmt.Errorf("%s isn't the one that refaudit hook install wrote: the hook that was there before it is %s", f.hook, f.keep)
	}
	return f.clear()
}

// clear removes our links and their folder. What the old hook wrote beside itself moves to where the hooks are.
func (f folder) clear() error {
	entries, err := os.ReadDir(f.kept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range namesOf(entries) {
		path, home := filepath.Join(f.kept, name), filepath.Join(f.dir, name)
		if to, err := os.Readlink(path); err == nil && to == f.linkTo(name) {
			if err := os.Remove(path); err != nil {
				return err
			}
			continue
		}
		if _, err := os.Lstat(home); err == nil || name == hookName {
			return fmt.Errorf("%s is left: %s is there too", path, home)
		}
		if err := os.Rename(path, home); err != nil {
			return err
		}
	}
	return os.Remove(f.kept)
}

func installScript(path, program string) (did []string, err error) {
	old, err := os.Lstat(path)
	if err == nil {
		text, err := readSmall(path, old)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(text, script(program)) {
			return nil, nil
		}
		if !isScript(text) {
			return nil, fmt.Errorf("%s isn't one that refaudit hook install wrote: move it away first", path)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if err := write(path, script(program)); err != nil {
		return nil, err
	}
	return []string{"wrote " + path}, nil
}

// removeScript removes our script; what isn't as we wrote it is somebody else's.
func removeScript(path string) (did []string, err error) {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := readSmall(path, st)
	if err != nil || !isScript(text) {
		return nil, err
	}
	if err := os.Remove(path); err != nil {
		return nil, err
	}
	return []string{"removed " + path}, nil
}

// readSmall reads a file that may be our script. Anything else reads as empty.
func readSmall(path string, st fs.FileInfo) ([]byte, error) {
	if !st.Mode().IsRegular() || st.Size() > 1<<20 {
		return nil, nil
	}
	return os.ReadFile(path)
}

// secondName lets a hook be found by two names. A link becomes two of the same text, where it can't be one.
func secondName(from, to string) error {
	text, link := movedLink(from, filepath.Dir(to))
	err := os.Link(from, to)
	if !link || err == nil && sameFile(from, to) {
		return err
	}
	if err == nil { // it followed the link, or the link must have another text
		if err = os.Remove(to); err != nil {
			return err
		}
	}
	return os.Symlink(text, to)
}

// movedLink is the text of a link, once it lies in dir. It is the same as before, unless it led somewhere from where
// it is, leads nowhere from dir, and does without its first "..": somebody mended it after the former install moved it down.
func movedLink(path, dir string) (text string, link bool) {
	text, err := os.Readlink(path)
	if err != nil {
		return "", false
	}
	leads := func(dir, text string) bool {
		_, err := os.Stat(dir + string(filepath.Separator) + text)
		return err == nil
	}
	up, ok := strings.CutPrefix(text, "../")
	if ok && !leads(dir, text) && leads(filepath.Dir(path), text) && leads(dir, up) {
		return up, true
	}
	return text, true
}

// sameFile tells whether two names are one file, or links of which the second is the first one moved.
func sameFile(a, b string) bool {
	x, xerr := os.Lstat(a)
	y, yerr := os.Lstat(b)
	if xerr != nil || yerr != nil {
		return false
	}
	text, link := movedLink(a, filepath.Dir(b))
	to, err := os.Readlink(b)
	return link && err == nil && text == to || !link && os.SameFile(x, y)
}

// write replaces a script at once: a push that runs meanwhile sees the old or the new one.
func write(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), temp+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o755), f.Sync(), f.Close()); err == nil {
		if err = vfs.Enter(f.Name()); err != nil {
			err = fmt.Errorf("nothing can be executed in %s, so git ignores the hooks there: %w", filepath.Dir(path), err)
		}
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error { return vfs.OS{}.SyncDir(dir) }
