package refstore

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"refaudit/finding"
	"refaudit/internal/vfs"
	"refaudit/reftable"
)

// settled is how old a file must be before it is told of: younger ones belong to a writer at
// work. git renames a table into place before it lists it.
const settled = 60 * time.Second

// leftovers tells of what writers have left behind in the folders of a store: locks, staging
// files, tables that no list names; and of files that the repository's other readers can't open.
func (v *visit) leftovers(listed []string) error {
	now := v.now()
	if err := v.leftoversIn(".", now, v.judgeTop); err != nil {
		return err
	}
	if v.repo.Refs.Backend != "reftable" {
		return v.locksBelow("refs", now)
	}
	if err := v.modes(listed); err != nil {
		return err
	}
	locked := v.has("reftable/tables.list.lock")
	return v.leftoversIn("reftable", now, func(name string, st fs.FileInfo, age time.Duration) error {
		return v.judgeTable(name, st, age, listed, locked)
	})
}

func (v *visit) now() time.Time {
	if v.o.Now == nil {
		return time.Now()
	}
	return v.o.Now()
}

// leftoversIn gives each settled file of a folder to judge, with its age.
func (v *visit) leftoversIn(dir string, now time.Time, judge func(name string, st fs.FileInfo, age time.Duration) error) error {
	list, err := v.place.root.ReadDir(dir)
	if vfs.Missing(err) {
		return nil
	}
	if err != nil {
		return v.cantRead(dir, err)
	}
	for _, e := range list {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".nfs") {
			continue
		}
		st, err := e.Info()
		if err != nil {
			continue // gone since the folder was listed
		}
		if age := now.Sub(st.ModTime()); age >= settled {
			if err := judge(path.Join(dir, e.Name()), st, age); err != nil {
				return err
			}
		}
	}
	return nil
}

// judgeTop judges a file beside HEAD.
func (v *visit) judgeTop(name string, st fs.FileInfo, age time.Duration) error {
	switch {
	case strings.HasSuffix(name, "~pid.lock"):
		return nil // told of with its lock
	case strings.HasSuffix(name, ".lock"):
		return v.stale(name, age)
	case name == "packed-refs.new":
		return v.leftover(name, st, age, "git can't delete or pack refs while it is there")
	}
	return nil
}

// locksBelow looks for locks among the loose refs.
func (v *visit) locksBelow(dir string, now time.Time) error {
	if err := v.ctx.Err(); err != nil {
		return err
	}
	list, err := v.place.root.ReadDir(dir)
	if vfs.Missing(err) {
		return nil
	}
	if err != nil {
		return v.cantRead(dir, err)
	}
	for _, e := range list {
		name := dir + "/" + e.Name()
		switch {
		case e.IsDir():
			if err := v.locksBelow(name, now); err != nil {
				return err
			}
		case strings.HasSuffix(name, ".lock"):
			st, err := e.Info()
			if err != nil {
				continue
			}
			if age := now.Sub(st.ModTime()); age >= settled {
				if err := v.stale(name, age); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// judgeTable judges a file in the folder of the tables.
func (v *visit) judgeTable(name string, st fs.FileInfo, age time.Duration, listed []string, locked bool) error {
	base := path.Base(name)
	_, notTable := reftable.ParseTableName(base)
	switch {
	case strings.HasSuffix(base, "~pid.lock"), base == "tables.list", slices.Contains(listed, base):
		return nil
	case strings.HasSuffix(base, ".lock"):
		return v.stale(name, age)
	case notTable == nil && !locked && listed != nil:
		return v.report(finding.New(finding.ReftableOrphanTable, v.whole(name, st),
			"is a table that tables.list does not name, %s old: what it says is served to nobody, and any git that has had it open removes it", since(age)))
	case strings.Contains(base, ".temp.") || strings.HasPrefix(base, "tmp_"):
		return v.leftover(name, st, age, "it takes up space, nothing else")
	}
	return nil
}

func (v *visit) whole(name string, st fs.FileInfo) finding.Pos {
	return finding.Pos{File: v.place.label(name), Length: st.Size(), Placed: true}
}

func (v *visit) leftover(name string, st fs.FileInfo, age time.Duration, effect string) error {
	return v.report(finding.New(finding.LockLeftover, v.whole(name, st), "was left behind by a writer, %s ago, with %s: %s", since(age), finding.Count(st.Size(), "byte", "bytes"), effect))
}

// stale tells of a lock that has stood for long. A lock is empty while it is held: its size says nothing.
func (v *visit) stale(name string, age time.Duration) error {
	f := finding.New(finding.StaleLock, finding.Pos{File: v.place.label(name)}, "has stood for %s: whoever took it may be dead, and others wait for it in vain", since(age))
	pid, err := v.place.root.ReadFile(strings.TrimSuffix(name, ".lock")+"~pid.lock", 64)
	if digits, ok := bytes.CutPrefix(bytes.TrimSpace(pid), []byte("pid ")); err == nil && ok {
		if n, err := strconv.Atoi(string(digits)); err == nil {
			f.Message += fmt.Sprintf("; process %d took it", n)
		}
	}
	return v.report(f)
}

// since words an age without false precision.
func since(age time.Duration) string {
	switch {
	case age < 2*time.Minute:
		return finding.Count(max(0, int(age.Seconds())), "second", "seconds")
	case age < 2*time.Hour:
		return finding.Count(int(age.Minutes()), "minute", "minutes")
	case age < 48*time.Hour:
		return finding.Count(int(age.Hours()), "hour", "hours")
	}
	return finding.Count(int(age.Hours()/24), "day", "days")
}

// modes tells of tables that somebody can't read who can read HEAD: to them the repository is empty.
func (v *visit) modes(listed []string) error {
	head, err := v.place.root.Stat("HEAD")
	if err != nil || filepath.Separator != '/' {
		return nil // without modes there is nothing to compare; an absent HEAD is told of elsewhere
	}
	for _, name := range append([]string{"tables.list"}, listed...) {
		st, err := v.place.root.Stat("reftable/" + name)
		if err != nil {
			continue // told of when it was opened
		}
		if lack := head.Mode().Perm() & 0o444 &^ st.Mode().Perm(); lack != 0 {
			f := finding.New(finding.PermissionMode, finding.Pos{File: v.place.label("reftable/" + name)},
				"has mode %04o, and HEAD %04o: who can read HEAD alone sees a repository without refs", st.Mode().Perm(), head.Mode().Perm())
			f.Severity = finding.Error
			if err := v.report(f); err != nil {
				return err
			}
		}
	}
	return nil
}
