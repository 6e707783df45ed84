package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/oid"
	"refaudit/repo"
	"refaudit/scan"
)

func fingerprintOf(t testing.TB, path string) (*Fingerprint, error) {
	t.Helper()
	target, err := scan.Open(path, scan.ByPath, repo.Options{Env: repo.EmptyEnv})
	if err != nil {
		t.Fatal(err)
	}
	return Fingerprinted(context.Background(), target, 0)
}

func mustFingerprint(t testing.TB, path string) string {
	t.Helper()
	f, err := fingerprintOf(t, path)
	if err != nil {
		t.Fatal(err)
	}
	return f.Hash
}

// replicas are copies of a repository in every state that its refs can be kept in.
func replicas(t *testing.T, r *gittest.Repo) map[string]*gittest.Repo {
	all := map[string]*gittest.Repo{}
	for _, backend := range []string{gittest.Files, gittest.Reftable} {
		for _, packed := range []bool{false, true} {
			c := gittest.Init(t, gittest.Options{Format: r.Format, RefFormat: backend})
			c.Git("fetch", "-q", r.Path, "+refs/*:refs/*")
			c.Git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/main")
			if packed {
				c.Git("pack-refs", "--all")
			}
			all[fmt.Sprintf("%s, packed %v", backend, packed)] = c
		}
	}
	return all
}

func TestReplicasHaveOneFingerprint(t *testing.T) {
	for _, format := range []oid.Format{oid.SHA1, oid.SHA256} {
		r, _ := gittest.Clean(t, gittest.Options{Format: format})
		r.Git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/main")
		want := mustFingerprint(t, r.Path)
		for name, c := range replicas(t, r) {
			if got := mustFingerprint(t, c.Path); got != want {
				t.Errorf("%v, %s: %s, want %s", format, name, got, want)
			}
			c.Git("update-ref", "refs/bisect/bad", r.A)
			c.Git("update-ref", "refs/worktree/mine", r.A)
			c.Git("worktree", "add", "-q", "--detach", filepath.Join(t.TempDir(), "tree"), r.A)
			c.Git("symbolic-ref", "HEAD", "refs/heads/elsewhere")
			if got := mustFingerprint(t, c.Path); got != want {
				t.Errorf("%v, %s: a worktree's refs count", format, name)
			}
			c.Git("update-ref", "refs/heads/other", r.A)
			one := mustFingerprint(t, c.Path)
			c.Git("update-ref", "refs/heads/other", r.B)
			if two := mustFingerprint(t, c.Path); one == want || two == want || one == two {
				t.Errorf("%v, %s: drift is not seen", format, name)
			}
			c.Git("update-ref", "-d", "refs/heads/other")
			c.Git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/side")
			if got := mustFingerprint(t, c.Path); got == want {
				t.Errorf("%v, %s: another symbolic ref is not seen", format, name)
			}
		}
	}
}

// What is cached has no say: only what is true.
func TestWrongCachesDoNotCount(t *testing.T) {
	for name, build := range map[string]func(testing.TB, gittest.Options) (*gittest.Repo, []gittest.Want){
		"mismatch": gittest.Mismatch, "unexpected": gittest.Unexpected, "partial": gittest.Partial, "replaced": gittest.Replaced, "falseType": gittest.FalseType,
	} {
		for _, backend := range []string{gittest.Files, gittest.Reftable} {
			r, _ := build(t, gittest.Options{RefFormat: backend})
			before := mustFingerprint(t, r.Path)
			refs := r.Refs()
			fresh := gittest.Init(t, gittest.Options{RefFormat: gittest.Files})
			fresh.WriteFile("objects/info/alternates", []byte(r.File("objects")+"\n"))
			for ref, id := range refs {
				fresh.WriteFile(string(ref), []byte(id.String()+"\n"))
			}
			if got := mustFingerprint(t, fresh.Path); got != before {
				t.Errorf("%s in %s: %s, and without any cache %s", name, backend, before, got)
			}
		}
	}
}

// An absent object leaves what its ref peels to unknown: there is no hash then. A corrupt tag peels to nothing,
// and that is known. Of a second ^ line git dies, whatever comes below.
func TestWhatIsNotKnownHasNoFingerprint(t *testing.T) {
	gittest.EachFault(t, func(t *testing.T, r *gittest.Repo, want []gittest.Want) {
		none := false
		for _, word := range []string{"doublePeel", "refTargetMissing", "tableCrc", "tableMissing", "tableListEmpty"} {
			none = none || strings.Contains(t.Name(), word)
		}
		f, err := fingerprintOf(t, r.Path)
		if u := (*Unreadable)(nil); none != errors.As(err, &u) || none != (f == nil) {
			t.Errorf("%+v %v", f, err)
		}
	})
	r, _ := gittest.Clean(t, gittest.Options{})
	r.WriteFile("refs/heads/main", nil)
	if f, err := fingerprintOf(t, r.Path); err == nil {
		t.Errorf("an empty ref: %+v", f)
	}
	cut, _ := gittest.Clean(t, gittest.Options{})
	cut.Git("pack-refs", "--all")
	cut.EditPacked(func(text string) string { return text[:strings.LastIndexByte(text[:len(text)-1], '\n')] })
	if f, err := fingerprintOf(t, cut.Path); err == nil {
		t.Errorf("no newline: %+v", f)
	}
}

// What can't be judged is told with its reason.
func TestWhyThereIsNoFingerprint(t *testing.T) {
	for _, o := range gittest.AllFormats {
		for name, c := range map[string]struct {
			spoil func(r *gittest.Repo)
			want  string
		}{
			"an alternate": {func(r *gittest.Repo) { r.WriteFile("objects/info/alternates", []byte("\n/no/such/pool\n")) }, "objects/info/alternates:2"},
			"its list":     {func(r *gittest.Repo) { r.WriteFile("objects/info/alternates/x", nil) }, "objects/info/alternates: alternates can't be read: "},
			"an index":     {func(r *gittest.Repo) { writeBadIndex(r) }, "objects/pack/pack-x.idx:+16: fanout falls from 2 to 1 at 0x2"},
		} {
			r := gittest.New(t, o)
			c.spoil(r)
			r.RemoveLoose(r.A)
			_, err := fingerprintOf(t, r.Path)
			u := (*Unreadable)(nil)
			if !errors.As(err, &u) || len(u.What) != 1 || !strings.HasPrefix(u.What[0], `"refs/tags/v1": object `+r.V1) || !strings.Contains(u.What[0], c.want) {
				t.Errorf("%v, %s: %v", o, name, err)
			}
			r.RemoveLoose(r.V1) // nor is the tag itself there
			_, err = fingerprintOf(t, r.Path)
			if u := (*Unreadable)(nil); !errors.As(err, &u) || len(u.What) != 1 || !strings.Contains(u.What[0], c.want) {
				t.Errorf("%v, %s, no tag: %v", o, name, err)
			}
		}
	}
}

// writeBadIndex gives a repository an index whose fanout falls at 2, and its pack.
func writeBadIndex(r *gittest.Repo) {
	idx := make([]byte, 8+256*4+2*32)
	copy(idx, "\377tOc\x00\x00\x00\x02")
	idx[8+4*1+3], idx[8+4*2+3] = 2, 1
	r.WriteFile("objects/pack/pack-x.idx", idx)
	r.WriteFile("objects/pack/pack-x.pack", []byte("PACK"))
}

// The hash is what its description says, computed another way.
func TestTheFingerprintIsAsDescribed(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	r.Git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/main")
	bad, _ := r.FalseTag("bad")
	sum := new(big.Int)
	add := func(name string, rest ...[]byte) {
		record := binary.BigEndian.AppendUint32(nil, uint32(len(name)))
		record = append(append(record, name...), bytes.Join(rest, nil)...)
		hash := sha256.Sum256(record)
		sum.Add(sum, new(big.Int).SetBytes(hash[:]))
	}
	raw := func(id string) []byte { b, _ := hex.DecodeString(id); return b }
	add("refs/heads/main", []byte("o"), raw(r.B), []byte{0})
	add("refs/tags/v1", []byte("o"), raw(r.V1), []byte{1}, raw(r.A))
	add("refs/tags/v2", []byte("o"), raw(r.V2), []byte{1}, raw(r.B))
	add("refs/tags/bad", []byte("o"), raw(bad), []byte{2})
	add("refs/remotes/origin/HEAD", []byte("s"), []byte("refs/heads/main"))
	sum.Mod(sum, new(big.Int).Lsh(big.NewInt(1), 256))
	all := binary.BigEndian.AppendUint64([]byte("refaudit-fingerprint 1\nsha1\n"), 5)
	want := sha256.Sum256(append(all, sum.FillBytes(make([]byte, 32))...))
	f, err := fingerprintOf(t, r.Path)
	if err != nil || f.Hash != hex.EncodeToString(want[:]) || f.Refs != 5 || f.Head != "refs/heads/main" {
		t.Errorf("%+v %v, want %x", f, err, want)
	}
}

func BenchmarkFingerprint(b *testing.B) {
	r := gittest.New(b, gittest.Options{})
	var packed strings.Builder
	packed.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for i := range 100000 {
		fmt.Fprintf(&packed, "%s refs/heads/topic/%06d\n", r.A, i)
	}
	r.WriteFile("packed-refs", []byte(packed.String()))
	for b.Loop() {
		if _, err := fingerprintOf(b, r.Path); err != nil {
			b.Fatal(err)
		}
	}
}
