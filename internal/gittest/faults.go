package gittest

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
)

// Want is a finding that a scan has to report. Fields that are zero are not promised.
type Want struct {
	ID       finding.ID      `json:"id"`
	Ref      finding.RefName `json:"ref,omitempty"`
	OID      oid.ID          `json:"oid,omitzero"`
	Cached   oid.ID          `json:"cached,omitzero"`
	Expected oid.ID          `json:"expected,omitzero"`
	Cause    finding.Cause   `json:"cause,omitempty"`
	Line     int             `json:"line,omitempty"`
}

// Fault is one thing that can be wrong with a repository.
type Fault struct {
	Name string
	// Build makes a repository in which it is wrong and nothing else, and says which findings of
	// severity warn and above a standard scan has to give.
	Build func(testing.TB, Options) (*Repo, []Want)
	// RefFormats are those in which it can be; both if empty.
	RefFormats []string
}

// Faults are all of them, the clean repository first.
var Faults = []Fault{
	{"clean", Clean, nil},
	{"falseType", FalseType, nil},
	{"falseTypeUncached", FalseTypeUncached, nil},
	{"replaced", Replaced, nil},
	{"orphanLine", OrphanLine, []string{Files}},
	{"doublePeel", DoublePeel, []string{Files}},
	{"partial", Partial, nil},
	{"mismatch", Mismatch, nil},
	{"missingPeel", MissingPeel, []string{Files}},
	{"unpeeledRewrite", UnpeeledRewrite, []string{Files}},
	{"migrated", Migrated, []string{Reftable}},
	{"unexpected", Unexpected, nil},
	{"targetMissing", TargetMissing, nil},
	{"badTag", BadTag, nil},
	{"refTargetMissing", RefTargetMissing, nil},
	{"tableCrc", TableCrc, []string{Reftable}},
	{"tableMissing", TableMissing, []string{Reftable}},
	{"tableListEmpty", TableListEmpty, []string{Reftable}},
}

// EachFault runs fn for every fault in every format that it can be in.
func EachFault(t *testing.T, fn func(t *testing.T, r *Repo, want []Want)) {
	t.Helper()
	for _, f := range Faults {
		for _, o := range AllFormats {
			if !f.in(o.RefFormat) {
				continue
			}
			t.Run(f.Name+"/"+o.String(), func(t *testing.T) {
				r, want := f.Build(t, o)
				fn(t, r, want)
			})
		}
	}
}

func (f Fault) in(refFormat string) bool {
	if len(f.RefFormats) == 0 {
		return true
	}
	for _, have := range f.RefFormats {
		if have == refFormat {
			return true
		}
	}
	return false
}

// pack moves all refs into packed-refs; a reftable has them where they are.
func (r *Repo) pack() {
	r.t.Helper()
	if r.RefFormat == Files {
		r.Git("pack-refs", "--all")
	}
}

// SetPeel writes what is to be cached for a packed ref, or a record of a table, in place of its peel.
func (r *Repo) SetPeel(ref, id, old, peel string) {
	r.t.Helper()
	if r.RefFormat == Reftable {
		r.PatchTables(id+old, id+peel)
		return
	}
	r.EditPacked(func(text string) string {
		return strings.Replace(text, id+" "+ref+"\n^"+old+"\n", id+" "+ref+"\n^"+peel+"\n", 1)
	})
}

// Clean has nothing wrong: branches, tags of each kind of object, a chain of tags.
func Clean(t testing.TB, o Options) (*Repo, []Want) {
	r := New(t, o)
	for _, target := range [][2]string{{r.Tree, "tree"}, {r.Blob, "blob"}, {r.V1, "tag"}} {
		r.Git("update-ref", "refs/tags/of-"+target[1], r.WriteTag(target[0], target[1], "of-"+target[1]))
	}
	r.Git("update-ref", "refs/tags/light", r.A)
	r.Git("update-ref", "refs/other/v2", r.V2)
	r.pack()
	return r, nil
}

// FalseType is a tag that calls a blob a commit, and its peel is cached: git before 2.45 did so in
// packed-refs and 2.47 in a reftable. Where neither is here, the cache is written by hand.
func FalseType(t testing.TB, o Options) (*Repo, []Want) {
	o = o.filled()
	maker := Old
	if o.RefFormat == Reftable {
		maker = Mid
	}
	byGit := false
	if p, _ := Find(maker); p != nil {
		o.Git, byGit = maker, true
	}
	r := New(t, o)
	tag, blob := r.FalseTag("bad")
	switch {
	case o.RefFormat == Files && byGit:
		r.pack()
	case o.RefFormat == Files:
		r.cacheByHand("refs/tags/bad", tag, blob)
	case !byGit:
		Need(t, Mid)
	}
	if !r.caches("refs/tags/bad", tag, blob) {
		t.Fatalf("git %s does not cache the peel of a tag whose type line is false", r.Program.Version)
	}
	if p, _ := Find(Any); p != nil {
		r.Program = p
	}
	id := oid.MustParse(tag)
	return r, []Want{
		{ID: finding.PeelOfCorruptTag, Ref: "refs/tags/bad", OID: id, Cached: oid.MustParse(blob), Cause: finding.CauseFalseTypeLine},
		{ID: finding.TagTypeMismatch, Ref: "refs/tags/bad", OID: id},
	}
}

// cacheByHand packs all refs but one and then adds that one with a peel.
func (r *Repo) cacheByHand(ref, id, peel string) {
	r.t.Helper()
	r.Git("update-ref", "-d", ref)
	r.pack()
	r.EditPacked(func(text string) string {
		at := len(text)
		for _, line := range lines(text) {
			if _, name, ok := strings.Cut(line, " "); ok && line[0] != '#' && strings.TrimSuffix(name, "\n") > ref {
				at = strings.Index(text, line)
				break
			}
		}
		return text[:at] + id + " " + ref + "\n^" + peel + "\n" + text[at:]
	})
}

// caches tells whether a peel stands beside a ref in the store.
func (r *Repo) caches(ref, id, peel string) bool {
	if r.RefFormat == Files {
		return strings.Contains(string(r.ReadFile("packed-refs")), id+" "+ref+"\n^"+peel+"\n")
	}
	for _, path := range r.Tables() {
		b, err := os.ReadFile(path)
		if err != nil {
			r.t.Fatal(err)
		}
		if bytes.Contains(b, unhex(r.t, id+peel)) {
			return true
		}
	}
	return false
}

// FalseTypeUncached is the false tag where no peel is cached. Every clone dies of it all the same,
// without naming the tag.
func FalseTypeUncached(t testing.TB, o Options) (*Repo, []Want) {
	if p, _ := Find(Newest); p != nil {
		o.Git = Newest // an older one caches the peel in a reftable
	} else if o.RefFormat == Reftable {
		Need(t, Newest)
	}
	r := New(t, o)
	tag, _ := r.FalseTag("bad")
	return r, []Want{{ID: finding.TagTypeMismatch, Ref: "refs/tags/bad", OID: oid.MustParse(tag)}}
}

// Replaced caches the peel that a replacement of the tag has.
func Replaced(t testing.TB, o Options) (*Repo, []Want) {
	r := New(t, o)
	r.Git("replace", "-f", r.V1, r.V2)
	if r.RefFormat == Files {
		r.pack()
	} else {
		r.Git("update-ref", "-d", "refs/tags/v1")
		r.Git("update-ref", "refs/tags/v1", r.V1)
	}
	if !r.caches("refs/tags/v1", r.V1, r.B) {
		t.Fatalf("git %s does not cache the peel of the replacement", r.Program.Version)
	}
	return r, []Want{r.mismatch("refs/tags/v1", r.V1, r.B, r.A, finding.CauseReplaceRefs)}
}

func (r *Repo) mismatch(ref, id, cached, expected string, cause finding.Cause) Want {
	return Want{ID: finding.PeelMismatch, Ref: finding.RefName(ref), OID: oid.MustParse(id), Cached: oid.MustParse(cached), Expected: oid.MustParse(expected), Cause: cause}
}

// OrphanLine is what a library leaves that deletes a packed tag and keeps its ^ line: the line
// belongs to the lightweight tag above now.
func OrphanLine(t testing.TB, o Options) (*Repo, []Want) {
	r := New(t, o)
	r.Git("update-ref", "refs/tags/light", r.A)
	r.Git("tag", "-a", "-m", "x", "light2", r.B)
	gone := r.Git("rev-parse", "refs/tags/light2") + " refs/tags/light2\n"
	r.pack()
	r.EditPacked(func(text string) string { return strings.Replace(text, gone, "", 1) })
	return r, []Want{{ID: finding.PeelUnexpected, Ref: "refs/tags/light", OID: oid.MustParse(r.A), Cached: oid.MustParse(r.B), Cause: finding.CauseOrphanPeelLine}}
}

// DoublePeel is the same where the ref above is an annotated tag: two ^ lines, of which git and
// most readers die.
func DoublePeel(t testing.TB, o Options) (*Repo, []Want) {
	r := New(t, o)
	r.pack()
	r.EditPacked(func(text string) string { return strings.Replace(text, r.V2+" refs/tags/v2\n", "", 1) })
	return r, []Want{{ID: finding.PeelOrphan, Line: 5}}
}

// Partial caches, for a tag of a tag, the tag in between.
func Partial(t testing.TB, o Options) (*Repo, []Want) {
	r := New(t, o)
	nested := r.WriteTag(r.V1, "tag", "nested")
	r.Git("update-ref", "refs/tags/nested", nested)
	r.pack()
	r.SetPeel("refs/tags/nested", nested, r.A, r.V1)
	return r, []Want{{ID: finding.PeelPartial, Ref: "refs/tags/nested", OID: oid.MustParse(nested), Cached: oid.MustParse(r.V1), Expected: oid.MustParse(r.A)}}
}

// Mismatch caches another commit than the tag leads to.
func Mismatch(t testing.TB, o Options) (*Repo, []Want) {
	r := New(t, o)
	r.pack()
	r.SetPeel("refs/tags/v1", r.V1, r.A, r.B)
	return r, []Want{r.mismatch("refs/tags/v1", r.V1, r.B, r.A, "")}
}

// MissingPeel has no peel for a tag, under a header that says fully-peeled; a reftable is Migrated.
func MissingPeel(t testing.TB, o Options) (*Repo, []Want) {
	if o.RefFormat == Reftable {
		return Migrated(t, o)
	}
	r := New(t, o)
	r.pack()
	r.EditPacked(func(text string) string {
		return strings.Replace(text, "refs/tags/v1\n^"+r.A+"\n", "refs/tags/v1\n", 1)
	})
	return r, []Want{r.missing("refs/tags/v1", r.V1, r.A)}
}

func (r *Repo) missing(ref, id, expected string) Want {
	return Want{ID: finding.PeelMissing, Ref: finding.RefName(ref), OID: oid.MustParse(id), Expected: oid.MustParse(expected)}
}

// UnpeeledRewrite is what git does since 2.53 to a file without peels when one ref is deleted: it
// claims fully-peeled and peels nothing.
func UnpeeledRewrite(t testing.TB, o Options) (*Repo, []Want) {
	o.Git = Newest
	r := New(t, o)
	r.Git("update-ref", "refs/heads/other", r.A)
	r.pack()
	r.EditPacked(func(text string) string {
		var kept strings.Builder
		for _, line := range lines(strings.TrimSuffix(text, "\n")) {
			if line[0] != '#' && line[0] != '^' {
				kept.WriteString(line + "\n")
			}
		}
		return kept.String()
	})
	r.Git("update-ref", "-d", "refs/heads/other")
	if text := string(r.ReadFile("packed-refs")); !strings.Contains(text, " fully-peeled ") || strings.Contains(text, "^") {
		t.Fatalf("git %s does not rewrite the file so any more:\n%s", r.Program.Version, text)
	}
	return r, []Want{r.missing("refs/tags/v1", r.V1, r.A), r.missing("refs/tags/v2", r.V2, r.B)}
}

// Migrated comes from packed-refs by `git refs migrate`, which forgets every peel: the value type of
// the records says that there is none.
func Migrated(t testing.TB, o Options) (*Repo, []Want) {
	o.RefFormat = Files
	o.Git = Newest
	r := New(t, o)
	r.pack()
	r.Git("refs", "migrate", "--ref-format=reftable")
	r.RefFormat = Reftable
	if r.caches("refs/tags/v1", r.V1, r.A) {
		t.Fatalf("git %s keeps peels when it migrates", r.Program.Version)
	}
	return r, []Want{r.missing("refs/tags/v1", r.V1, r.A), r.missing("refs/tags/v2", r.V2, r.B)}
}

// Unexpected caches a peel at a branch.
func Unexpected(t testing.TB, o Options) (*Repo, []Want) {
	r := New(t, o)
	want := []Want{{ID: finding.PeelUnexpected, Ref: "refs/heads/main", OID: oid.MustParse(r.B), Cached: oid.MustParse(r.A)}}
	if r.RefFormat == Files {
		r.pack()
		r.EditPacked(func(text string) string {
			return strings.Replace(text, " refs/heads/main\n", " refs/heads/main\n^"+r.A+"\n", 1)
		})
		return r, want
	}
	// A record of a branch has no room for a peel; so a tag's record is given a commit as its value.
	r.PatchTables(r.V2+r.B, r.B+r.A)
	return r, []Want{{ID: finding.PeelUnexpected, Ref: "refs/tags/v2", OID: oid.MustParse(r.B), Cached: oid.MustParse(r.A)}}
}

// TargetMissing is a tag whose target is gone, with its peel still cached.
func TargetMissing(t testing.TB, o Options) (*Repo, []Want) {
	r := New(t, o)
	blob := r.WriteObject("blob", []byte("soon gone\n"))
	tag := r.WriteTag(blob, "blob", "dangling")
	r.Git("update-ref", "refs/tags/dangling", tag)
	r.pack()
	r.RemoveLoose(blob)
	id := oid.MustParse(tag)
	return r, []Want{
		{ID: finding.PeelOfCorruptTag, Ref: "refs/tags/dangling", OID: id, Cached: oid.MustParse(blob)},
		{ID: finding.TagTargetMissing, Ref: "refs/tags/dangling", OID: id},
	}
}

// BadTag has, under the name of one tag object, the bytes of another.
func BadTag(t testing.TB, o Options) (*Repo, []Want) {
	r := New(t, o)
	r.pack()
	r.WriteFile(r.LooseName(r.V1), r.ReadFile(r.LooseName(r.V2)))
	id := oid.MustParse(r.V1)
	return r, []Want{
		{ID: finding.PeelOfCorruptTag, Ref: "refs/tags/v1", OID: id, Cached: oid.MustParse(r.A)},
		{ID: finding.TagUnreadable, Ref: "refs/tags/v1", OID: id},
	}
}

// RefTargetMissing is a branch whose commit is gone.
func RefTargetMissing(t testing.TB, o Options) (*Repo, []Want) {
	r := New(t, o)
	gone := r.Git("commit-tree", r.Tree, "-p", r.B, "-m", "gone")
	r.Git("update-ref", "refs/heads/gone", gone)
	r.pack()
	r.RemoveLoose(gone)
	return r, []Want{{ID: finding.RefTargetMissing, Ref: "refs/heads/gone", OID: oid.MustParse(gone)}}
}

// TableCrc is a table whose footer fails its checksum.
func TableCrc(t testing.TB, o Options) (*Repo, []Want) {
	r := New(t, o)
	name := r.tableName(len(r.Tables()) - 1)
	data := r.ReadFile(name)
	data[len(data)-1] ^= 0xff
	r.WriteFile(name, data)
	return r, []Want{{ID: finding.ReftableCrc}}
}

// TableMissing is a tables.list that names a table which is gone.
func TableMissing(t testing.TB, o Options) (*Repo, []Want) {
	r := New(t, o)
	if err := os.Remove(r.Tables()[0]); err != nil {
		t.Fatal(err)
	}
	return r, []Want{{ID: finding.ReftableMissingTable}}
}

// TableListEmpty is a tables.list without a line, beside tables.
func TableListEmpty(t testing.TB, o Options) (*Repo, []Want) {
	r := New(t, o)
	r.WriteFile("reftable/tables.list", nil)
	return r, []Want{{ID: finding.ReftableOrphanTable}}
}

// tableName is the i-th table, relative to the repository.
func (r *Repo) tableName(i int) string {
	names := strings.Fields(string(r.ReadFile("reftable/tables.list")))
	return fmt.Sprintf("reftable/%s", names[i])
}
