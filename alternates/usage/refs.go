package usage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"refaudit/finding"
	"refaudit/internal/refname"
	"refaudit/internal/refstore"
	"refaudit/oid"
	"refaudit/repo"
)

// tip is a ref, or a HEAD that names an object itself.
type tip struct {
	name string
	id   oid.ID
}

// ownTips are the tips of a repository.
type ownTips struct {
	all      []tip
	excluded []tip             // by --exclude
	findings []finding.Finding // why refs can't be read
	unread   []string
	dead     map[string]string // worktrees whose working tree is gone, by the beginning of their refs' names, and why
	left     []string          // what is to be said of dead worktrees
	replaced int               // refs that replace objects
}

// readTips reads the refs of a repository and the HEADs of its worktrees.
func readTips(ctx context.Context, r *repo.Repo, o *Options) (*ownTips, error) {
	t := &ownTips{dead: map[string]string{}}
	stores, err := refstore.Open(r)
	if err != nil {
		return nil, err
	}
	ignored := map[string]string{} // worktrees that git doesn't know of
	for _, w := range stores.Worktrees() {
		if !w.Main() && w.Ignored != "" {
			ignored["worktrees/"+w.ID+"/"] = w.Ignored
		}
		if !w.Main() && w.Prunable != "" && !w.Locked {
			t.dead["worktrees/"+w.ID+"/"] = w.Prunable
		}
	}
	var globs []*refname.Glob
	for _, g := range o.Exclude {
		globs = append(globs, refname.NewGlob(g, 0))
	}
	leftOut, counted, noWorktree := map[string]bool{}, map[string]bool{}, map[string]bool{}
	base := r.ReplaceBase()
	var found []finding.Finding
	var broken []string
	var symrefs []symbolic
	sum, err := stores.Visit(ctx, refstore.Options{Broken: true}, func(f finding.Finding) error { found = append(found, f); return nil },
		func(ref *refstore.Ref) error {
			id, target := ref.Leads()
			symref := id == nil && ref.Broken == ""
			if symref && !ref.Root && len(globs) == 0 || ref.Hidden {
				return nil
			}
			if ref.Broken == "" && strings.HasPrefix(string(ref.Name), base) {
				t.replaced++
			}
			if slices.ContainsFunc(globs, func(g *refname.Glob) bool { return g.Match(ref.Name) }) {
				if symref {
					symrefs = append(symrefs, symbolic{string(ref.Name), string(target), false})
				} else if id != nil {
					t.excluded = append(t.excluded, tip{string(ref.Name), oid.FromBytes(r.Format, id)})
				}
				return nil
			}
			if prefix := deadWorktree(ignored, ref.Name); prefix != "" {
				noWorktree[prefix] = true
				return nil
			}
			if prefix := deadWorktree(t.dead, ref.Name); prefix != "" {
				if o.IgnoreDeadWorktrees {
					leftOut[prefix] = true
					return nil
				}
				counted[prefix] = counted[prefix] || ref.Root
			}
			if symref {
				if len(globs) > 0 { // else what it leads to counts for itself
					symrefs = append(symrefs, symbolic{string(ref.Name), string(target), true})
				}
				return nil
			}
			if ref.Broken != "" {
				broken = append(broken, told(ref))
				return nil
			}
			t.all = append(t.all, tip{string(ref.Name), oid.FromBytes(r.Format, id)})
			return nil
		})
	if err != nil {
		return nil, err
	}
	t.all = append(t.all, ledTo(symrefs, t.excluded)...)
	for prefix := range leftOut {
		t.left = append(t.left, fmt.Sprintf("%sHEAD is left out: %s", prefix, t.dead[prefix]))
	}
	for prefix := range noWorktree {
		t.left = append(t.left, fmt.Sprintf("%sHEAD is left out: git takes that for no worktree: %s", prefix, ignored[prefix]))
	}
	for prefix, head := range counted {
		if head {
			t.left = append(t.left, fmt.Sprintf("%sHEAD counts, though its worktree is dead (%s): --ignore-dead-worktrees leaves it out", prefix, t.dead[prefix]))
		}
	}
	slices.Sort(t.left)
	t.unread = slices.Concat(sum.Unread, broken, sum.Refused)
	t.findings = slices.DeleteFunc(found, func(f finding.Finding) bool {
		switch {
		case f.ID == finding.BadRefFiletype: // git passes over it: no ref is lost, and figures are known
			return false
		case len(t.unread) == 0:
			return true
		}
		return f.Severity < finding.Error && f.ID != finding.AuditSkipped
	})
	return t, nil
}

// told names a broken ref, where it stands, and what is wrong with it.
func told(r *refstore.Ref) string {
	if r.Source == refstore.Loose {
		return fmt.Sprintf("the file %q: %s", r.Name, r.Broken)
	}
	return fmt.Sprintf("%q in %s: %s", r.Name, r.Pos, r.Broken)
}

// deadWorktree is the beginning of a ref's name if that is of a dead worktree.
func deadWorktree(dead map[string]string, name []byte) string {
	for prefix := range dead {
		if strings.HasPrefix(string(name), prefix) {
			return prefix
		}
	}
	return ""
}

// symbolic is a ref that leads to another.
type symbolic struct {
	name, target string
	counts       bool // it is not excluded
}

// ledTo are the symrefs that count and lead to refs that don't: git goes by a ref's own name.
func ledTo(symrefs []symbolic, excluded []tip) (tips []tip) {
	if len(symrefs) == 0 || len(excluded) == 0 {
		return nil
	}
	ids, next := make(map[string]oid.ID, len(excluded)), make(map[string]string, len(symrefs))
	for _, t := range excluded {
		ids[t.name] = t.id
	}
	for _, s := range symrefs {
		next[s.name] = s.aim()
	}
	for _, s := range symrefs {
		name := s.name
		for range refname.MaxSymrefs {
			if name = next[name]; !s.counts {
				break
			}
			if id, ok := ids[name]; ok {
				tips = append(tips, tip{s.name, id})
				break
			}
		}
	}
	return tips
}

// aim is the target's name as refs are named here: what each worktree has for itself is sought in the symref's own.
func (s *symbolic) aim() string {
	if kind, id, _ := refname.SplitWorktree([]byte(s.name)); kind == refname.Other && refname.IsPerWorktree([]byte(s.target)) {
		return "worktrees/" + string(id) + "/" + s.target
	}
	return s.target
}

func idsOf(tips []tip) []oid.ID {
	ids := make([]oid.ID, len(tips))
	for i := range tips {
		ids[i] = tips[i].id
	}
	return ids
}

// groups are tips by the namespace of their names, in the order in which their objects are billed:
// branches, tags, and the others by name; HEADs last.
func groups(tips []tip) (names []string, by map[string][]oid.ID) {
	by = map[string][]oid.ID{}
	for _, t := range tips {
		n := namespace(t.name)
		if by[n] == nil {
			names = append(names, n)
		}
		by[n] = append(by[n], t.id)
	}
	rank := func(n string) int {
		switch n {
		case "refs/heads":
			return 0
		case "refs/tags":
			return 1
		case "HEAD":
			return 3
		}
		return 2
	}
	slices.SortFunc(names, func(a, b string) int {
		if c := rank(a) - rank(b); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	return names, by
}

// namespace is the first two parts of a ref's name, of a worktree's too; "HEAD" for those.
func namespace(name string) string {
	if rest, ok := strings.CutPrefix(name, "worktrees/"); ok {
		_, name, _ = strings.Cut(rest, "/")
	}
	parts := strings.SplitN(name, "/", 3)
	if len(parts) < 3 || parts[0] != "refs" {
		return name
	}
	return parts[0] + "/" + parts[1]
}
