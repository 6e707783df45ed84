package main

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// What a SARIF report says is the place of a finding is a file that is there, wherever the git dir lies.
func TestSARIFNamesFilesThatAreThere(t *testing.T) {
	for _, o := range []gittest.Options{{}, {RefFormat: gittest.Reftable}} {
		for name, lay := range map[string]func(r *gittest.Repo, top string){
			"bare": func(r *gittest.Repo, top string) { os.Rename(r.Path, top) },
			"with a working tree": func(r *gittest.Repo, top string) {
				r.Git("config", "core.bare", "false")
				os.Mkdir(top, 0o755)
				os.Rename(r.Path, filepath.Join(top, ".git"))
			},
			"with a git dir elsewhere": func(r *gittest.Repo, top string) {
				r.Git("config", "core.bare", "false")
				os.Mkdir(top, 0o755)
				os.WriteFile(filepath.Join(top, ".git"), []byte("gitdir: "+r.Path+"\n"), 0o644)
			},
			"a linked worktree": func(r *gittest.Repo, top string) { r.Git("worktree", "add", "-q", "--detach", top, "refs/heads/main") },
		} {
			r, _ := gittest.FalseType(t, o)
			bad, _ := gittest.Mismatch(t, o)
			for i, repo := range []*gittest.Repo{r, bad} {
				top := filepath.Join(t.TempDir(), "top")
				lay(repo, top)
				for _, args := range [][]string{{"scan", "--level=deep"}, {"fix", "--yes"}} {
					out := command(t, nil, map[string]string{"XDG_STATE_HOME": t.TempDir()}, append(args, "--format=sarif", top)...)
					var log struct {
						Runs []struct {
							Results []struct {
								RuleID    string
								Locations []struct {
									PhysicalLocation struct{ ArtifactLocation struct{ URI string } }
								}
							}
						}
					}
					if err := json.Unmarshal([]byte(out.out), &log); err != nil || len(log.Runs) != 1 {
						t.Fatalf("%v, %s, %q: %v: %s%s", o, name, args, err, out.out, out.err)
					}
					if len(log.Runs[0].Results) == 0 && (i == 0 || args[0] == "scan") {
						t.Errorf("%v, %s, %q: no findings: %s", o, name, args, out.err)
					}
					for _, res := range log.Runs[0].Results {
						u, err := url.Parse(res.Locations[0].PhysicalLocation.ArtifactLocation.URI)
						if err != nil || u.Scheme != "file" {
							t.Errorf("%v, %s: %v %v", o, name, u, err)
							continue
						}
						path := u.Path
						if len(path) > 2 && path[2] == ':' { // a drive
							path = strings.TrimPrefix(path, "/")
						}
						if _, err := os.Stat(filepath.FromSlash(path)); err != nil {
							t.Errorf("%v, %s, %q, %s: %v", o, name, args, res.RuleID, err)
						}
					}
				}
			}
		}
	}
}
