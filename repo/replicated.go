package repo

import (
	"os"
	"path/filepath"
	"strings"
)

// Replicated looks for signs that something else keeps account of this repository's files: it
// may take a repair for drift, and undo it or set the repository aside. Each sign is a sentence.
// That there is none proves nothing.
func (r *Repo) Replicated() []string {
	var signs []string
	for dir := filepath.Dir(r.CommonDir); ; dir = filepath.Dir(dir) {
		signs = append(signs, signsIn(dir)...)
		if filepath.Dir(dir) == dir {
			break
		}
	}
	if slashed := filepath.ToSlash(r.CommonDir); strings.Contains(slashed, "/@cluster/") {
		signs = append(signs, "its path has @cluster: one of several replicas that Praefect keeps")
	}
	return signs
}

// signsIn looks at one folder above a repository.
func signsIn(dir string) []string {
	var signs []string
	is := func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	}
	switch {
	case is("+gitaly/partitions") || is("partitions") && is(".gitaly-metadata"):
		signs = append(signs, dir+" is a Gitaly storage with a write-ahead log")
	case is("+gitaly") || is(".gitaly-metadata"):
		signs = append(signs, dir+" is a Gitaly storage")
	}
	if is("etc/gerrit.config") {
		for _, plugin := range []string{"multi-site", "high-availability", "replication"} {
			if is("plugins/"+plugin+".jar") || is("lib/"+plugin+".jar") {
				signs = append(signs, dir+" is a Gerrit site with the plugin "+plugin)
			}
		}
	}
	return signs
}
