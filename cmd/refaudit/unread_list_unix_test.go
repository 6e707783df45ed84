//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"refaudit/internal/gittest"
)

// borrower makes a repository whose objects lie in a pool, all but a tag, and a repository between the two that borrows
// from the pool for it, if nested says so.
func borrower(t *testing.T, o gittest.Options, nested bool) (r *gittest.Repo, list string) {
	t.Helper()
	r, _ = gittest.Clean(t, o)
	pool := filepath.Join(filepath.Dir(r.Path), "pool")
	tag := r.ReadFile(r.LooseName(r.V1))
	if err := os.Rename(r.File("objects"), pool); err != nil {
		t.Fatal(err)
	}
	r.WriteFile(r.LooseName(r.V1), tag)
	list = r.File("objects/info/alternates")
	if nested {
		middle := gittest.InitAt(t, o, filepath.Join(filepath.Dir(r.Path), "middle.git"))
		middle.WriteFile("objects/info/alternates", []byte(pool+"\n"))
		list = middle.File("objects/info/alternates")
		r.WriteFile("objects/info/alternates", []byte(middle.File("objects")+"\n"))
	} else {
		r.WriteFile("objects/info/alternates", []byte(pool+"\n"))
	}
	return r, list
}

// unreadable are the ways in which a list of alternates can't be read, by whomever.
var unreadable = map[string]func(list string) error{
	"a folder":    func(list string) error { return os.Mkdir(list, 0o755) },
	"a loop":      func(list string) error { return os.Symlink(filepath.Base(list), list) },
	"a dead link": func(list string) error { return os.Symlink("/no/such/disk/list", list) },
	"a FIFO": func(list string) error {
		fifo := filepath.Join(filepath.Dir(list), "fifo")
		if err := syscall.Mkfifo(fifo, 0o644); err != nil {
			return err
		}
		return os.Symlink(fifo, list)
	},
	"far too large": func(list string) error {
		err := os.WriteFile(list, nil, 0o644)
		if err == nil {
			err = os.Truncate(list, 17<<20) // a hole
		}
		return err
	},
	"a dead folder": func(list string) error {
		dir := filepath.Dir(list)
		if err := os.Remove(dir); err != nil {
			return err
		}
		return os.Symlink("/no/such/disk", dir)
	},
	"a folder that loops": func(list string) error {
		dir := filepath.Dir(list)
		if err := os.Remove(dir); err != nil {
			return err
		}
		return os.Symlink(filepath.Base(dir), dir)
	},
}

// What is not here may lie where a list leads that can't be read: it is not missing, its tags are not corrupt, and
// no repair touches anything.
func TestAListOfAlternatesThatCantBeReadHidesObjects(t *testing.T) {
	for _, o := range gittest.AllFormats {
		for _, nested := range []bool{false, true} {
			for name, spoil := range unreadable {
				t.Run(fmt.Sprintf("%v/nested %v/%s", o, nested, name), func(t *testing.T) {
					r, list := borrower(t, o, nested)
					if out := command(t, nil, nil, "scan", r.Path); out.code != 0 {
						t.Fatalf("before: exit %d\n%s", out.code, out.out)
					}
					os.Remove(list)
					if err := spoil(list); err != nil {
						t.Fatal(err)
					}
					leavesAll(t, r, func(args ...string) (string, int) {
						out := command(t, nil, nil, args...)
						return out.out + out.err, out.code
					})
				})
			}
		}
	}
}

// leavesAll runs everything that judges objects, none of which may find or change anything.
func leavesAll(t *testing.T, r *gittest.Repo, run func(args ...string) (out string, code int)) {
	t.Helper()
	gittest.Unchanged(t, r.Path, func() {
		for _, args := range [][]string{
			{"scan", "--format=jsonl"}, {"scan", "--level=deep", "--format=jsonl"}, {"fix", "--yes", "--format=jsonl"},
			{"fix", "--yes", "--drop-corrupt-tags", "--format=jsonl"}, {"fix", "--dry-run", "--drop-corrupt-tags"}, {"fingerprint"}, {"size"},
		} {
			out, code := run(append(slices.Clone(args), r.Path)...)
			if code != 3 || strings.Contains(out, `"severity":"error"`) || strings.Contains(out, `"type":"repair"`) {
				t.Errorf("%v: exit %d\n%s", args, code, out)
			}
			if !strings.Contains(out, "alternates can't be read: ") && !strings.Contains(out, "alternates can\\u0027t be read: ") {
				t.Errorf("%v doesn't say why:\n%s", args, out)
			}
		}
	})
}

// The owner, as whom root's repair is done, may have less rights than root.
func TestRootsRepairReadsAsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED, this needs root")
	}
	const uid, gid = 4242, 4243
	for _, o := range kinds {
		for _, nested := range []bool{false, true} {
			for name, spoil := range map[string]func(list string) error{
				"another's list":   func(list string) error { return os.Chown(list, 0, 0) },
				"another's folder": func(list string) error { return os.Chown(filepath.Dir(list), 0, 0) },
			} {
				r, list := borrower(t, o, nested)
				give(t, filepath.Dir(filepath.Dir(r.Path)), uid, gid)
				os.Chmod(list, 0o600)
				os.Chmod(filepath.Dir(list), 0o700)
				if err := spoil(list); err != nil {
					t.Fatal(err)
				}
				if out := command(t, nil, nil, "scan", r.Path); out.code != 0 {
					t.Errorf("%v, nested %v, %s: root sees exit %d\n%s", o, nested, name, out.code, out.out)
				}
				state := t.TempDir()
				for _, args := range [][]string{{"fix", "--yes"}, {"fix", "--yes", "--drop-corrupt-tags"}} {
					gittest.Unchanged(t, r.Path, func() {
						out, err := program(t, state, nil, append(args, "--format=jsonl", r.Path)...).CombinedOutput()
						if code := exitOf(t, err); code != 3 || bytes.Contains(out, []byte(`"severity":"error"`)) || bytes.Contains(out, []byte(`"type":"repair"`)) {
							t.Errorf("%v, nested %v, %s, %v: exit %d\n%s", o, nested, name, args, code, out)
						}
					})
				}
			}
		}
	}
}

// For root, a list behind a link to another owner's file leads out of the repository, and is not read.
func TestAListOfAnothersIsNotReadByRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED, this needs root")
	}
	for _, o := range kinds {
		r, list := borrower(t, o, false)
		give(t, filepath.Dir(filepath.Dir(r.Path)), 4242, 4243)
		outside := filepath.Join(t.TempDir(), "list")
		if err := errors.Join(os.Rename(list, outside), os.Chown(outside, 0, 0), os.Symlink(outside, list), os.Lchown(list, 4242, 4243)); err != nil {
			t.Fatal(err)
		}
		leavesAll(t, r, func(args ...string) (string, int) {
			out := command(t, nil, nil, args...)
			return out.out + out.err, out.code
		})
	}
}

// A long list is read as git reads it.
func TestALongListOfAlternatesIsRead(t *testing.T) {
	r, list := borrower(t, gittest.Options{}, false)
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	text = append(bytes.Repeat([]byte("# a comment\n"), 300<<10), text...)
	if err := os.WriteFile(list, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := r.Git("rev-parse", "refs/tags/v1^{}"); got != r.A {
		t.Fatalf("git sees %s", got)
	}
	if out := command(t, nil, nil, "scan", r.Path); out.code != 0 {
		t.Errorf("exit %d\n%s", out.code, out.out)
	}
}

// Where all objects are found, a list that can't be read is a gap all the same.
func TestAListThatCantBeReadIsAGap(t *testing.T) {
	for _, o := range kinds {
		r, _ := gittest.Clean(t, o)
		if err := os.MkdirAll(r.File("objects/info/alternates"), 0o755); err != nil {
			t.Fatal(err)
		}
		out := command(t, nil, nil, "scan", "--format=jsonl", r.Path)
		if end := out.of(t, "repository")[0]; out.code != 3 || end["state"] != "incomplete" || !strings.HasPrefix(fmt.Sprint(end["reason"]), "objects/info/alternates: ") {
			t.Errorf("%v: exit %d\n%s", o, out.code, out.out)
		}
	}
}
