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

// The former layout: the old hook lay one folder deeper, under another name, among parts that it perhaps ran itself.
//
//	hooks/pre-receive                 the dispatcher: ran all of pre-receive.d
//	hooks/pre-receive.d/10-local      the hook that was there
//	hooks/pre-receive.d/50-refaudit   our script
//	hooks/pre-receive.d/NAME          a part that was there before, or was put beside later
const formerLocal, formerScript = "10-local", "50-refaudit"

func (f folder) formerOld() string { return filepath.Join(f.dir, parts, formerLocal) }

func (f folder) formerOurs() string { return filepath.Join(f.dir, parts, formerScript) }

// upgrade brings the former layout into the present one. Parts that only the former dispatcher ran go on being run:
// somebody may rely on them.
func (f folder) upgrade(program string) (did []string, err error) {
	if _, err := os.Lstat(f.formerOld()); err != nil {
		return installScript(f.formerOurs(), program) // somebody took the old hook away: the parts are all there is
	}
	others, err := f.formerParts()
	if err != nil {
		return nil, err
	}
	d := dispatcher{program: program}
	if len(others) > 0 && !f.formerRuns() {
		var never []string
		for _, name := range others {
			if strings.Contains(name, "\n") {
				return nil, fmt.Errorf("%q in %s can't be named in a script: move it away first", name, parts)
			}
			if vfs.Enter(filepath.Join(f.dir, parts, name)) != nil {
				never = append(never, name)
			}
		}
		d.parts = runParts(never)
	}
	did, err = f.keepOld(f.formerOld(), d)
	if err != nil {
		return nil, err
	}
	cleared, err := f.clearFormer()
	return append(append([]string{"moved " + f.formerOld() + " to " + f.keep}, did...), cleared...), err
}

// formerParts are the names beside the two of ours.
func (f folder) formerParts() (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(f.dir, parts))
	for _, name := range namesOf(entries) {
		if name != formerLocal && name != formerScript && !strings.HasPrefix(name, ".") { // "*" finds no others
			names = append(names, name)
		}
	}
	return names, err
}

// formerRuns tells whether the old hook runs the parts of pre-receive.d itself: it names that folder, or one made from
// $0. A link is followed from where it will be, since from where it is it may lead nowhere.
func (f folder) formerRuns() bool {
	hook := f.formerOld()
	if text, link := movedLink(hook, f.dir); link {
		if hook = text; !filepath.IsAbs(hook) {
			hook = f.dir + string(filepath.Separator) + text
		}
	}
	st, err := os.Stat(hook)
	if err != nil || !st.Mode().IsRegular() || st.Size() > 64<<20 {
		return false
	}
	text, err := os.ReadFile(hook)
	if err != nil {
		return false
	}
	if bytes.Contains(text, []byte(parts)) {
		return true
	}
	return bytes.IndexByte(text, 0) < 0 && namesFolder(text)
}

// namesFolder tells whether a script names something that ends in ".d".
func namesFolder(script []byte) bool {
	for {
		_, after, found := bytes.Cut(script, []byte(".d"))
		if !found {
			return false
		}
		if len(after) == 0 || !isWord(after[0]) {
			return true
		}
		script = after
	}
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// clearFormer removes what an upgrade leaves of the former layout, also one that was stopped before its end. Our
// script goes last: as long as it is there, so may be the second name of the old hook.
func (f folder) clearFormer() (did []string, err error) {
	if st, err := os.Lstat(f.formerOurs()); err != nil {
		return nil, nil
	} else if text, err := readSmall(f.formerOurs(), st); err != nil || !isScript(text) {
		return nil, err
	}
	if sameFile(f.formerOld(), f.keep) {
		if err := os.Remove(f.formerOld()); err != nil {
			return nil, err
		}
	}
	did, err = removeScript(f.formerOurs())
	return did, errors.Join(err, f.clearParts())
}

// clearParts removes the folder that the former install made, unless there is something else in it.
func (f folder) clearParts() error {
	dir := filepath.Join(f.dir, parts)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return err
	}
	return os.Remove(dir)
}

// restoreFormer puts the old hook back from the former layout.
func (f folder) restoreFormer() (did []string, err error) {
	others, err := f.formerParts()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	_, gone := os.Lstat(f.formerOld())
	if gone != nil && len(others) > 0 {
		did, err = removeScript(f.formerOurs())
		return append(did, f.hook+" is left: it runs the other parts of "+parts), err
	}
	ran := !f.formerRuns()
	if did, err = removeScript(f.formerOurs()); err != nil {
		return did, err
	}
	if gone != nil {
		err = os.Remove(f.hook)
		did = append(did, "removed "+f.hook)
	} else {
		err = f.putBack()
		did = append(did, "moved "+f.formerOld()+" back to "+f.hook)
	}
	if err != nil {
		return did[:len(did)-1], err
	}
	for _, name := range others {
		if ran {
			did = append(did, filepath.Join(f.dir, parts, name)+" is not run any more: the hook that was there before doesn't run it")
		}
	}
	if err := f.clearParts(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return did, err
	}
	return did, syncDir(f.dir)
}

func (f folder) putBack() error {
	old := f.formerOld()
	text, link := movedLink(old, f.dir)
	if now, _ := os.Readlink(old); !link || now == text {
		return os.Rename(old, f.hook)
	}
	staged := filepath.Join(f.dir, temp+"link")
	if err := os.Symlink(text, staged); err != nil {
		return err
	}
	if err := os.Rename(staged, f.hook); err != nil {
		return errors.Join(err, os.Remove(staged))
	}
	return os.Remove(old)
}
