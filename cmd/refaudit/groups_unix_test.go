//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"refaudit/internal/gittest"
)

// Who reads a repository by a group that its owner is not in goes on reading it, after a repair and after its undo.
func TestTheOwnersChildKeepsGroups(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED, this needs root")
	}
	const uid, gid, readers = 4242, 4243, 4244
	for _, o := range kinds {
		r, _ := gittest.Mismatch(t, o)
		give(t, filepath.Dir(filepath.Dir(r.Path)), uid, gid)
		names := []string{"packed-refs"}
		if o.RefFormat == gittest.Reftable {
			names = []string{"reftable/tables.list"}
			for _, table := range r.Tables() {
				names = append(names, "reftable/"+filepath.Base(table))
			}
		}
		for _, name := range names {
			if err := errors.Join(os.Lchown(r.File(name), uid, readers), os.Chmod(r.File(name), 0o640)); err != nil {
				t.Fatal(err)
			}
		}
		check := func(when string) {
			t.Helper()
			now, _ := filepath.Glob(r.File("reftable/*"))
			if o.RefFormat == gittest.Files {
				now = []string{r.File("packed-refs")}
			}
			if len(now) < len(names) {
				t.Errorf("%v, %s: there is only %v", o, when, now)
			}
			for _, path := range now {
				st, err := os.Lstat(path)
				if err != nil {
					t.Fatal(err)
				}
				if owner := st.Sys().(*syscall.Stat_t); owner.Uid != uid || owner.Gid != readers || st.Mode().Perm() != 0o640 {
					t.Errorf("%v, %s: %s: %d:%d %v", o, when, path, owner.Uid, owner.Gid, st.Mode())
				}
			}
		}
		state := t.TempDir()
		out, err := program(t, state, []string{"sh", "-c", `umask 077; exec "$@"`, "sh"}, "fix", "--yes", "--format=jsonl", r.Path).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", o, err, out)
		}
		check("fix")
		id := regexp.MustCompile(`"journal":"([^"]*)"`).FindStringSubmatch(string(out))[1]
		if out, err := program(t, state, []string{"sh", "-c", `umask 077; exec "$@"`, "sh"}, "undo", id).CombinedOutput(); err != nil {
			t.Fatalf("%v: undo: %v\n%s", o, err, out)
		}
		check("undo")
	}
}

// The parent gives groups of the repository to files of the owner, and does nothing else for its child.
func TestTheParentGivesOnlyWhatTheRepositoryHas(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED, this needs root")
	}
	const uid, readers, others = 4242, 4244, 4245
	mine, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	ended := make(chan bool)
	go func() {
		giveGroups(int(mine.Fd()), uid, map[uint32]bool{readers: true})
		close(ended)
	}()
	child := &giver{socket: int(theirs.Fd())}
	dir := t.TempDir()
	for _, c := range []struct {
		name  string
		owner int
		group uint32
		want  bool
	}{{"own", uid, readers, true}, {"other group", uid, others, false}, {"root's group", uid, 0, false}, {"another's file", uid + 1, readers, false}, {"root's file", 0, readers, false}} {
		path := filepath.Join(dir, c.name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Chown(c.owner, 4243); err != nil {
			t.Fatal(err)
		}
		got := child.give(f, c.group)
		st, _ := f.Stat()
		if has := st.Sys().(*syscall.Stat_t).Gid == c.group; got != c.want || has != c.want {
			t.Errorf("%s: answer %v, given %v", c.name, got, has)
		}
		f.Close()
	}
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	os.Chown(dir, uid, 4243)
	if child.give(folder, readers) {
		t.Error("a folder was given a group")
	}
	folder.Close()
	if _, err := theirs.Write([]byte("none")); err != nil { // a message without a file
		t.Fatal(err)
	}
	var said [1]byte
	if _, err := theirs.Read(said[:]); err != nil || said[0] != 0 {
		t.Errorf("a message without a file is answered with %v, error %v", said, err)
	}
	theirs.Close()
	<-ended
	mine.Close()
}
