package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRealPathIsThatOfEvalSymlinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "real", "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "real", "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": "real", "abs": filepath.Join(dir, "real"), "gone": "nothing", "round": "round", "real/deep/up": "../..", "tofile": "real/file"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	t.Chdir(dir)
	for _, path := range []string{
		"real", "real/", "real/deep", "real/deep/..", "real/./deep//", "real/file", "real/file/", "real/file/..", "real/deep/up", "real/deep/up/real",
		"link", "link/", "link/deep", "link/..", "abs/deep/..", "gone", "gone/x", "round", "round/x", "tofile", "tofile/", "none", "none/..", "none/x", "", "..", strings.Repeat("x", 5000),
	} {
		for _, path := range []string{path, dir + "/" + path} {
			want, wantErr := filepath.EvalSymlinks(path)
			got, err := RealPath(path)
			if got != want || (err == nil) != (wantErr == nil) || errors.Is(err, os.ErrNotExist) != errors.Is(wantErr, os.ErrNotExist) {
				t.Errorf("%.200q: %q (%v), not %q (%v)", path, got, err, want, wantErr)
			}
		}
	}
}

func BenchmarkRealPath(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "a", "b", "c")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := RealPath(dir); err != nil {
			b.Fatal(err)
		}
	}
}
