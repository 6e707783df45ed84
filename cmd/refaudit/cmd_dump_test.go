package main

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/oid"
)

// The ranges of a dump that are not inflated cover the file, each byte once, damaged or not.
func TestADumpCoversTheFile(t *testing.T) {
	for _, format := range []oid.Format{oid.SHA1, oid.SHA256} {
		for _, refs := range []string{gittest.Files, gittest.Reftable} {
			r, _ := gittest.Clean(t, gittest.Options{RefFormat: refs, Format: format})
			file := r.Packed()
			if refs == gittest.Reftable {
				file = r.Tables()[0]
			}
			sound, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for at := -1; at < len(sound); at += 13 {
				bad := append([]byte{}, sound...)
				if at >= 0 {
					bad[at] ^= 0x55
				}
				copied := t.TempDir() + "/file.ref"
				if refs == gittest.Files {
					copied = t.TempDir() + "/packed-refs"
				}
				os.WriteFile(copied, bad, 0o644)
				d := command(t, nil, nil, "dump", "--format=jsonl", "--object-format", format.String(), copied)
				if d.code != 0 {
					t.Fatalf("exit %d: %s", d.code, d.err)
				}
				var all []byte
				for _, p := range d.of(t, "piece") {
					if p["inflated"] == true || p["bytes"] == "" {
						continue
					}
					if int(p["offset"].(float64)) != len(all) {
						t.Fatalf("%s, byte %d flipped: a piece at %v, and %d bytes were dumped so far", file, at, p["offset"], len(all))
					}
					b, _ := hex.DecodeString(p["bytes"].(string))
					all = append(all, b...)
				}
				if string(all) != string(bad) {
					t.Errorf("%s, byte %d flipped: %d of %d bytes were dumped", file, at, len(all), len(bad))
				}
			}
		}
	}
}

func TestDumpOfARepository(t *testing.T) {
	files, _ := gittest.Clean(t, gittest.Options{})
	if d := command(t, nil, nil, "dump", files.Path); d.code != 0 || !strings.Contains(d.out, "refs/tags/v1") || !strings.Contains(d.out, "fully-peeled") {
		t.Errorf("%+v", d)
	}
	tables, _ := gittest.Clean(t, gittest.Options{RefFormat: gittest.Reftable})
	tables.Git("worktree", "add", "-q", "--detach", tables.Path+"-wt", "refs/heads/main")
	if d := command(t, nil, nil, "dump", tables.Path); d.code != 0 || !strings.Contains(d.out, "refs/tags/v1") || !strings.Contains(d.out, "worktrees/") {
		t.Errorf("%+v", d)
	}
	for _, args := range [][]string{{"dump"}, {"dump", "--format=git", files.Path}, {"dump", "--object-format=md5", files.Path}} {
		if d := command(t, nil, nil, args...); d.code != 129 || d.out != "" {
			t.Errorf("%v: %+v", args, d)
		}
	}
	if d := command(t, nil, nil, "dump", "/no/such/file"); d.code != 3 || d.err == "" {
		t.Errorf("%+v", d)
	}
}
