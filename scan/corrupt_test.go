package scan_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/oid"
	"refaudit/scan"
)

// faults are the findings above info, as "id ref", sorted.
func faults(found []finding.Finding) string {
	var ids []string
	for i := range found {
		if found[i].Severity > finding.Info {
			ids = append(ids, fmt.Sprintf("%s %s", found[i].ID, found[i].Ref))
		}
	}
	slices.Sort(ids)
	return strings.Join(ids, ", ")
}

// A tag that claims a commit, and whose target is a tag that can't be parsed: the claim is false whatever its
// target says, and comes first in the chain.
func TestAFalseClaimOnACorruptTagIsTheFault(t *testing.T) {
	for _, o := range gittest.AllFormats {
		r := gittest.New(t, o)
		inner := r.WriteTag(r.A, "commitx", "inner")
		outer := r.WriteTag(inner, "commit", "outer")
		right := r.WriteTag(inner, "tag", "right")
		r.Git("update-ref", "refs/tags/outer", outer)
		r.Git("update-ref", "refs/tags/right", right)
		_, found := audit(t, r.Path, scan.Standard)
		if got, want := faults(found), "tagTypeMismatch refs/tags/outer, tagUnreadable refs/tags/right"; got != want {
			t.Errorf("%v: %s, not %s", o, got, want)
		}
		for i := range found {
			if found[i].Ref == "refs/tags/outer" && !strings.Contains(found[i].Message, outer) {
				t.Errorf("%v: the fault is at another link: %s", o, found[i].Message)
			}
		}
	}
}

// A branch has to be a commit: that its object is a corrupt tag, or that the tag is on the skip list, makes it none.
func TestABranchThatIsACorruptTag(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	mismatch := r.WriteTag(r.Blob, "commit", "mismatch")
	missing := r.WriteTag(strings.Repeat("12", r.Format.Size()), "commit", "missing")
	sound := r.WriteTag(r.A, "commit", "sound")
	for name, id := range map[string]string{"mismatch": mismatch, "missing": missing, "sound": sound} {
		r.WriteFile("refs/heads/"+name, []byte(id+"\n"))
	}
	_, found := audit(t, r.Path, scan.Standard)
	all := "refTypeNotAllowed refs/heads/mismatch, refTypeNotAllowed refs/heads/missing, refTypeNotAllowed refs/heads/sound"
	if got, want := faults(found), all+", tagTargetMissing refs/heads/missing, tagTypeMismatch refs/heads/mismatch"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	r.WriteFile("skip", []byte(mismatch+"\n"+missing+"\n"))
	r.Git("config", "fsck.skipList", r.File("skip"))
	if _, found = audit(t, r.Path, scan.Standard); faults(found) != all {
		t.Errorf("with a skip list: %s, not %s", faults(found), all)
	}
}

// A header in a pack that gives a false kind says nothing of the tag where another copy of the object is sound.
func TestAFlippedKindBesideASoundCopy(t *testing.T) {
	for _, f := range []oid.Format{oid.SHA1, oid.SHA256} {
		for _, of := range []string{"tag", "target"} {
			r := gittest.New(t, gittest.Options{Format: f})
			r.Git("pack-refs", "--all")
			r.Git("update-server-info")
			r.Git("repack", "-adfq", "--depth=0")
			id := map[string]string{"tag": r.V1, "target": r.A}[of]
			kind := r.Git("cat-file", "-t", id)
			out, _, _ := r.Try("cat-file", kind, id)
			r.WriteLoose(id, kind, []byte(out))
			flipKind(t, r, id)
			res, found := audit(t, r.Path, scan.Standard)
			if got := faults(found); got != "" || res.State != scan.Clean {
				t.Errorf("%v, of the %s: %s", f, of, got)
			}
		}
	}
}

// flipKind makes the one pack say that an object is a blob.
func flipKind(t *testing.T, r *gittest.Repo, id string) {
	t.Helper()
	packs, _ := filepath.Glob(r.File("objects/pack/*.pack"))
	var off int64
	for _, row := range strings.Split(r.Git("verify-pack", "-v", strings.TrimSuffix(packs[0], ".pack")+".idx"), "\n") {
		if w := strings.Fields(row); len(w) == 5 && w[0] == id {
			fmt.Sscan(w[4], &off)
		}
	}
	name := "objects/pack/" + filepath.Base(packs[0])
	text := r.ReadFile(name)
	text[off] = text[off]&^0x70 | 3<<4
	r.WriteFile(name, text)
}
