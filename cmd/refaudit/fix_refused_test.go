//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// notices are the messages of the notice lines of a report in JSON lines, by repository.
func notices(t *testing.T, out string) (repos, texts []string) {
	t.Helper()
	for line := range strings.Lines(out) {
		var l struct{ Type, Repo, Message string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if l.Type == "notice" {
			repos, texts = append(repos, l.Repo), append(texts, l.Message)
		}
	}
	return repos, texts
}

// A program that reads the report learns why a repository was refused.
func TestARefusedFixSaysWhyInTheReport(t *testing.T) {
	for _, o := range kinds {
		r, _ := gittest.Mismatch(t, o)
		state := t.TempDir()
		foreign := map[string]string{"XDG_STATE_HOME": state, "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
		gittest.Unchanged(t, r.Path, func() {
			for _, format := range []string{"jsonl", "text", "sarif", "html"} {
				out := command(t, nil, foreign, "fix", "--yes", "--format", format, r.Path)
				if out.code != exitRefused || !strings.Contains(out.err, "belongs to somebody else") || !strings.Contains(out.out, "belongs to somebody else") {
					t.Errorf("%v %s: exit %d: %s%s", o, format, out.code, out.out, out.err)
				}
				if format != "jsonl" {
					continue
				}
				if repos, texts := notices(t, out.out); len(texts) != 1 || !strings.Contains(texts[0], "belongs to somebody else") || repos[0] != r.Path {
					t.Errorf("%v: notices %q of %q", o, texts, repos)
				}
			}
		})

		// A store whose lock is taken is told of in the same way.
		lock := "packed-refs.lock"
		if o.RefFormat == gittest.Reftable {
			lock = "reftable/tables.list.lock"
		}
		r.WriteFile(lock, nil)
		vars := map[string]string{"XDG_STATE_HOME": state}
		out := command(t, nil, vars, "fix", "--yes", "--format=jsonl", "--lock-timeout=1ms", r.Path)
		if repos, texts := notices(t, out.out); out.code != exitLocked || len(texts) != 1 || !strings.Contains(texts[0], lock) || repos[0] != r.Path {
			t.Errorf("%v, a held lock: exit %d, notices %q of %q", o, out.code, texts, repos)
		}
		os.Remove(r.File(lock))

		// So is an undo that is refused, or finds nothing.
		ids := offered(command(t, nil, vars, "fix", "--yes", r.Path).out)
		if len(ids) != 1 {
			t.Fatalf("%v: ids %q", o, ids)
		}
		for _, c := range []struct {
			id, want string
			vars     map[string]string
			code     int
		}{{ids[0], "belongs to somebody else", foreign, exitRefused}, {"20200101T000000Z-0123456789", "no such entry", vars, exitIncomplete}} {
			out := command(t, nil, c.vars, "undo", "--format=jsonl", c.id)
			if _, texts := notices(t, out.out); out.code != c.code || len(texts) != 1 || !strings.Contains(texts[0], c.want) || !strings.Contains(texts[0], c.id) {
				t.Errorf("%v, undo: exit %d, notices %q: %s", o, out.code, texts, out.err)
			}
		}
	}
}

// --quiet leaves findings alone: what was mended is none, and all is well. A plan is what was asked for.
func TestAQuietFixIsSilentWhenAllIsWell(t *testing.T) {
	for _, o := range kinds {
		r, _ := gittest.Mismatch(t, o)
		vars := map[string]string{"XDG_STATE_HOME": t.TempDir()}
		if out := command(t, nil, vars, "fix", "-q", "--dry-run", r.Path); !strings.Contains(out.out, "would: ") {
			t.Errorf("%v: no plan: %s%s", o, out.out, out.err)
		}
		if out := command(t, nil, vars, "fix", "-q", "--yes", r.Path); out.code != exitOK || out.out+out.err != "" {
			t.Errorf("%v: exit %d: %s%s", o, out.code, out.out, out.err)
		}
		if out := command(t, nil, vars, "scan", r.Path); out.code != exitOK {
			t.Errorf("%v: it was not mended: %s", o, out.out)
		}
		bad, _ := gittest.FalseType(t, o)
		if out := command(t, nil, vars, "fix", "-q", "--yes", bad.Path); out.code != exitFindings || !strings.Contains(out.out, "tagTypeMismatch") || strings.Contains(out.out, "did: ") {
			t.Errorf("%v: exit %d: %s%s", o, out.code, out.out, out.err)
		}
	}
}

// A link to somebody else's file leads to one; it is not followed.
func TestAPackedRefsFileOfAnotherOwner(t *testing.T) {
	r, _ := gittest.Mismatch(t, gittest.Options{})
	away := "/etc/passwd"
	if os.Geteuid() == 0 {
		away = filepath.Join(t.TempDir(), "packed-refs")
		if err := os.WriteFile(away, r.ReadFile("packed-refs"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(away, 4242, 4242); err != nil {
			t.Fatal(err)
		}
	}
	os.Remove(r.Packed())
	if err := os.Symlink(away, r.Packed()); err != nil {
		t.Skip("NOT TESTED, this needs symbolic links:", err)
	}
	before, err := os.ReadFile(away)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"scan"}, {"fix", "--yes"}} {
		out := command(t, nil, map[string]string{"XDG_STATE_HOME": t.TempDir()}, append(args, r.Path)...)
		said := out.out + out.err
		if out.code != exitBoth && out.code != exitRefused || strings.Contains(said, "leads to no file") || !strings.Contains(said, "another owner, which is not followed") || !strings.Contains(said, "Give that file the repository's owner") {
			t.Errorf("%q: exit %d: %s", args, out.code, said)
		}
	}
	if after, err := os.ReadFile(away); err != nil || !bytes.Equal(after, before) {
		t.Errorf("their file was changed: %v", err)
	}
}
