package refname

import "bytes"

// Root refs that do not end in _HEAD.
var irregularRoots = map[string]bool{
	"HEAD":                true,
	"AUTO_MERGE":          true,
	"BISECT_EXPECTED_REV": true,
	"NOTES_MERGE_PARTIAL": true,
	"NOTES_MERGE_REF":     true,
	"MERGE_AUTOSTASH":     true,
}

// IsPseudo tells whether name is one of the files that look like root refs and hold more than an id.
func IsPseudo(name []byte) bool {
	return string(name) == "FETCH_HEAD" || string(name) == "MERGE_HEAD"
}

// IsRoot tells whether name is a reference that stands beside refs/ in the git dir: HEAD,
// anything in capitals that ends in _HEAD, and a few more; not the pseudo refs.
func IsRoot(name []byte) bool {
	if !rootSyntax(name) || IsPseudo(name) {
		return false
	}
	return bytes.HasSuffix(name, []byte("_HEAD")) || irregularRoots[string(name)]
}

// MayBeRoot tells whether name is written as root refs are, whatever it ends in: git reads and writes refs of such
// names too, and lists none of them.
func MayBeRoot(name []byte) bool { return len(name) > 0 && rootSyntax(name) }

// rootSyntax is also true of the empty name, as in git.
func rootSyntax(name []byte) bool {
	for _, c := range name {
		if !isUpper(c) && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// MaxSymrefs is how many symbolic refs git follows, one after the other.
const MaxSymrefs = 5

var perWorktree = [][]byte{[]byte("refs/worktree/"), []byte("refs/bisect/"), []byte("refs/rewritten/")}

// IsPerWorktree tells whether each worktree has a ref of this name of its own: refs/bisect/,
// refs/worktree/ and refs/rewritten/. (Root refs are per worktree too; that is IsRoot's to say.)
func IsPerWorktree(name []byte) bool {
	for _, prefix := range perWorktree {
		if bytes.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Worktree says whose a name is.
type Worktree uint8

// The kinds of names, by the worktree they belong to.
const (
	Shared  Worktree = iota // one for all worktrees: refs/heads/main
	Current                 // of the worktree one stands in: HEAD, refs/bisect/bad
	Main                    // main-worktree/HEAD
	Other                   // worktrees/<id>/HEAD
)

// SplitWorktree takes a name apart as git does: whose it is, that worktree's id (of Other only) and
// the name within that worktree. A name below worktrees/ that no worktree could have of its own
// (worktrees/x/refs/heads/y) is Shared and stays whole.
func SplitWorktree(name []byte) (kind Worktree, id, rest []byte) {
	if after, ok := bytes.CutPrefix(name, []byte("worktrees/")); ok {
		id, rest, found := bytes.Cut(after, []byte("/"))
		if !found {
			return Other, id, nil
		}
		if ownedByOne(rest) {
			return Other, id, rest
		}
	}
	if rest, ok := bytes.CutPrefix(name, []byte("main-worktree/")); ok && ownedByOne(rest) {
		return Main, nil, rest
	}
	if ownedByOne(name) {
		return Current, nil, name
	}
	return Shared, nil, name
}

func ownedByOne(name []byte) bool { return rootSyntax(name) || IsPerWorktree(name) }
