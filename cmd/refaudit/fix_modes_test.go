//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// umasked runs a command with another umask.
func umasked(umask string) []string {
	return []string{"/bin/sh", "-c", "umask " + umask + `; exec "$@"`, "sh"}
}

// sharing are values of core.sharedRepository ("": not set), and umasks under which each is tried.
func sharing() (values, umasks []string) {
	if os.Getenv("REFAUDIT_LONG_TESTS") != "" {
		return []string{"", "umask", "false", "0", "group", "all", "0640", "0600", "0664"}, []string{"022", "077", "002", "027"}
	}
	return []string{"", "umask", "group", "0640"}, []string{"022", "077"}
}

// modesOf are the modes of what lies below a folder, tables under one name.
func modesOf(t *testing.T, dir string, skip func(rel string) bool) map[string]fs.FileMode {
	t.Helper()
	out := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if skip != nil && skip(rel) {
			return nil
		}
		st, err := os.Lstat(path)
		if err != nil {
			return err
		}
		out[rel] = st.Mode() & (fs.ModePerm | fs.ModeSetgid)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// gitUnder runs the repository's git with another umask.
func gitUnder(t *testing.T, r *gittest.Repo, umask string, args ...string) {
	t.Helper()
	argv := append(append(umasked(umask), r.Program.Path, "--git-dir="+r.Path), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = gittest.Env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
}

// What fix writes has the mode that git gives it when it packs the same refs under the same umask; where
// core.sharedRepository says nothing, whoever could read the refs still can.
func TestRewrittenFilesHaveGitsModes(t *testing.T) {
	values, umasks := sharing()
	for _, o := range kinds {
		for _, shared := range values {
			for _, umask := range umasks {
				modesAreGits(t, o, shared, umask, 0o666)
				if shared == "" {
					modesAreGits(t, o, shared, umask, 0o600)
				}
			}
		}
	}
}

func modesAreGits(t *testing.T, o gittest.Options, shared, umask string, was fs.FileMode) {
	t.Helper()
	r, _ := gittest.Mismatch(t, o)
	if shared != "" {
		r.Git("config", "core.sharedRepository", shared)
	}
	written := func() map[string]fs.FileMode {
		if o.RefFormat == gittest.Files {
			st, err := os.Stat(r.Packed())
			if err != nil {
				t.Fatal(err)
			}
			return map[string]fs.FileMode{"packed-refs": st.Mode().Perm()}
		}
		tables := r.Tables()
		out := map[string]fs.FileMode{}
		for name, path := range map[string]string{"table": tables[len(tables)-1], "tables.list": r.File("reftable/tables.list")} {
			st, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = st.Mode().Perm()
		}
		return out
	}
	if o.RefFormat == gittest.Files {
		os.Chmod(r.Packed(), was)
	} else {
		for _, path := range append(r.Tables(), r.File("reftable/tables.list")) {
			os.Chmod(path, was)
		}
	}
	if out, err := program(t, t.TempDir(), umasked(umask), "fix", "--yes", r.Path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ours := written()
	gitUnder(t, r, umask, "update-ref", "refs/heads/more", r.A)
	gitUnder(t, r, umask, "pack-refs", "--all")
	for name, mode := range written() {
		if shared == "" {
			mode |= was & 0o666
		}
		if ours[name] != mode {
			t.Errorf("%v, sharedRepository=%s, umask %s, %s was %04o: it is %04o, git's would be %04o", o, shared, umask, name, was, ours[name], mode)
		}
	}
}

// A ref that comes back, with its folders, its reflog and its tag, has the modes that git gives them.
func TestWhatAnUndoBringsBackHasGitsModes(t *testing.T) {
	values, umasks := sharing()
	for _, shared := range values {
		for _, umask := range umasks {
			r, _ := gittest.FalseType(t, gittest.Options{})
			bad := r.Git("rev-parse", "refs/tags/bad")
			r.Git("config", "core.logAllRefUpdates", "always")
			if shared != "" {
				r.Git("config", "core.sharedRepository", shared)
			}
			gitUnder(t, r, umask, "update-ref", "--create-reflog", "refs/tags/deep/er/bad", bad)
			git := modesOf(t, r.Path, func(rel string) bool { return !strings.Contains(rel, "deep") })
			state := t.TempDir()
			vars := map[string]string{"XDG_STATE_HOME": state}
			out := command(t, nil, vars, "fix", "--yes", "--drop-corrupt-tags", "--ref=refs/tags/deep", r.Path)
			ids := offered(out.out)
			if len(ids) != 1 {
				t.Fatalf("%s%s", out.out, out.err)
			}
			text := filepath.Join(t.TempDir(), "tag")
			if err := os.WriteFile(text, []byte(r.Git("cat-file", "tag", bad)+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			os.RemoveAll(filepath.Dir(r.File(r.LooseName(bad))))
			for _, dir := range []string{"refs/tags/deep", "logs/refs/tags/deep"} {
				os.RemoveAll(r.File(dir))
			}
			if out, err := program(t, state, umasked(umask), "undo", ids[0]).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			ours := modesOf(t, r.Path, func(rel string) bool { return !strings.Contains(rel, "deep") })
			if fmt.Sprint(ours) != fmt.Sprint(git) {
				t.Errorf("sharedRepository=%s, umask %s:\n%v\ngit's\n%v", shared, umask, ours, git)
			}
			object := func() string {
				t.Helper()
				path := r.File(r.LooseName(bad))
				file, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				dir, err := os.Stat(filepath.Dir(path))
				if err != nil {
					t.Fatal(err)
				}
				os.RemoveAll(filepath.Dir(path))
				return fmt.Sprint(file.Mode(), dir.Mode())
			}
			back := object()
			gitUnder(t, r, umask, "hash-object", "--literally", "-t", "tag", "-w", text)
			if git := object(); back != git {
				t.Errorf("sharedRepository=%s, umask %s: the tag has the modes %s, git's %s", shared, umask, back, git)
			}
		}
	}
}

// A symbolic link has the mode 0777, which says nothing of what it leads to. What fix writes in the place of one,
// or of a file that one leads to, nobody may write whom git would not let.
func TestTheModeOfALinkIsNotTaken(t *testing.T) {
	inTables := []string{"reftable/tables.list", "table"}
	for _, c := range []struct {
		o      gittest.Options
		links  []string
		args   []string
		target fs.FileMode
	}{
		{kinds[0], []string{"packed-refs"}, nil, 0o644},
		{gittest.Options{RefFormat: gittest.Reftable}, inTables[:1], nil, 0o644},
		{gittest.Options{RefFormat: gittest.Reftable}, inTables[:1], nil, 0o600},
		{gittest.Options{RefFormat: gittest.Reftable}, inTables, nil, 0o644},
		{gittest.Options{RefFormat: gittest.Reftable}, inTables, []string{"--compact"}, 0o644},
		{gittest.Options{RefFormat: gittest.Reftable}, inTables[1:], []string{"--rebuild-tables-list"}, 0o644},
	} {
		r, _ := gittest.Mismatch(t, c.o)
		for _, name := range c.links {
			path := r.File(name)
			if name == "table" {
				path = r.Tables()[len(r.Tables())-1]
			}
			away := filepath.Join(t.TempDir(), filepath.Base(path))
			if err := os.Rename(path, away); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(away, path); err != nil {
				t.Skip("NOT TESTED, this needs symbolic links:", err)
			}
			os.Chmod(away, c.target)
		}
		if slices.Contains(c.args, "--rebuild-tables-list") {
			os.Remove(r.File("reftable/tables.list"))
		}
		state := t.TempDir()
		modes := func(when string) {
			t.Helper()
			paths := []string{r.Packed()}
			if c.o.RefFormat == gittest.Reftable {
				paths = append(r.Tables(), r.File("reftable/tables.list"))
			}
			for _, path := range paths {
				st, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				if st.Mode().Perm()&^0o644 != 0 {
					t.Errorf("%v %v, links %v to %04o: %s has mode %04o %s", c.o, c.args, c.links, c.target, path, st.Mode().Perm(), when)
				}
			}
		}
		out, _ := program(t, state, umasked("022"), append(append([]string{"fix", "--yes"}, c.args...), r.Path)...).CombinedOutput()
		ids := offered(string(out)) // the code tells of other things: that packed-refs is a link, that there was no list
		if len(c.args) == 0 && len(ids) != 1 {
			t.Fatalf("%v, links %v: %s", c.o, c.links, out)
		}
		if !strings.Contains(string(out), "did: ") {
			t.Fatalf("%v %v: nothing was done: %s", c.o, c.args, out)
		}
		modes("after fix")
		if len(ids) == 1 && len(c.args) == 0 {
			if out, err := program(t, state, umasked("022"), "undo", ids[0]).CombinedOutput(); err != nil {
				t.Fatalf("%v, links %v: undo: %v: %s", c.o, c.links, err, out)
			}
			modes("after undo")
		}
	}
}
