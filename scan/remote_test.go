package scan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/odb"
	"refaudit/oid"
	"refaudit/repo"
)

// advertisement is what a server with the repository's objects could advertise.
type advertisement struct {
	t  *testing.T
	r  *gittest.Repo
	ad *Advertisement
}

func newAdvertisement(t *testing.T, r *gittest.Repo, settings map[string]string) *advertisement {
	t.Helper()
	db, _, err := odb.Open(r.File("objects"), r.Format, odb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	policy, err := NewRemotePolicy(userConfig(t, settings), t.TempDir(), false, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &advertisement{t: t, r: r, ad: &Advertisement{Policy: policy, Objects: db}}
}

func userConfig(t *testing.T, settings map[string]string) *repo.Config {
	t.Helper()
	env := map[string]string{"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_COUNT": fmt.Sprint(len(settings))}
	n := 0
	for k, v := range settings {
		env[fmt.Sprintf("GIT_CONFIG_KEY_%d", n)], env[fmt.Sprintf("GIT_CONFIG_VALUE_%d", n)] = k, v
		n++
	}
	c, err := repo.UserConfig(repo.Options{Env: repo.MapEnv(env)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// judge says what is wrong with a ref, as "id expected cause" a finding.
func (a *advertisement) judge(name, object, peel string) (found []string, peels int64, open []Undecided) {
	a.t.Helper()
	ref := Advertised{Name: name, OID: oid.MustParse(object)}
	if peel != "" {
		ref.Peel = oid.MustParse(peel)
	}
	peels, open, err := a.ad.Judge(context.Background(), []Advertised{ref}, func(f *finding.Finding) error {
		if string(f.Ref) != name || f.OID != ref.OID || f.Fixable || f.File != "" {
			a.t.Errorf("%+v", f)
		}
		found = append(found, strings.TrimSpace(fmt.Sprintf("%s %.4v %s", f.ID, f.Expected, f.Cause)))
		return nil
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return found, peels, open
}

func TestAdvertisedPeels(t *testing.T) {
	for _, o := range gittest.AllFormats[:2] {
		r := gittest.New(t, o)
		nested := r.WriteTag(r.V1, "tag", "nested")
		lie := r.WriteTag(r.Blob, "commit", "lie")
		gone := r.WriteTag(strings.Repeat("1", len(r.A)), "commit", "gone")
		beyond := r.WriteTag(strings.Repeat("2", len(r.A)), "tag", "beyond")
		flipped := flip(r.A)
		a := newAdvertisement(t, r, nil)
		a.ad.Replaced = map[oid.ID]Advertised{oid.MustParse(r.V2): {OID: oid.MustParse(r.V1), Peel: oid.MustParse(r.A)}}
		for _, c := range []struct {
			name, object, peel string
			want               string
			peels              int64
		}{
			{"refs/heads/main", r.A, "", "", 0},
			{"refs/tags/light", r.A, r.B, "peelUnexpected", 0},
			{"refs/tags/v1", r.V1, r.A, "", 1},
			{"refs/tags/v1", r.V1, "", "", 0}, // a server need not say
			{"refs/tags/v1", r.V1, r.B, "peelMismatch " + r.A[:4], 1},
			{"refs/tags/v1", r.V1, flipped, "peelMismatch " + r.A[:4] + " hex-flip", 1},
			{"refs/tags/v2", r.V2, r.A, "peelMismatch " + r.B[:4] + " replace-refs", 1},
			{"refs/tags/nested", nested, r.A, "", 1},
			{"refs/tags/nested", nested, r.V1, "peelPartial " + r.A[:4], 1},
			{"refs/heads/x", r.V1, r.B, "peelMismatch " + r.A[:4], 1}, // wherever the tag is
			{"refs/tags/lie", lie, "", "tagTypeMismatch", 0},
			{"refs/tags/lie", lie, r.Blob, "tagTypeMismatch, peelOfCorruptTag  false-type-line", 1},
			{"refs/tags/gone", gone, strings.Repeat("1", len(r.A)), "", 1}, // not taken: its own lines count
			{"refs/tags/gone", gone, r.A, "peelMismatch 1111", 1},
		} {
			found, peels, open := a.judge(c.name, c.object, c.peel)
			if strings.Join(found, ", ") != c.want || peels != c.peels || len(open) > 0 {
				t.Errorf("%v: %s %.4s ^%.4s: %q, %d compared, undecided %v; want %q, %d", o, c.name, c.object, c.peel, found, peels, open, c.want, c.peels)
			}
		}
		for object, need := range map[string]string{beyond: strings.Repeat("2", len(r.A)), strings.Repeat("3", len(r.A)): strings.Repeat("3", len(r.A))} {
			found, peels, open := a.judge("refs/tags/x", object, r.A)
			if len(found) > 0 || peels != 0 || len(open) != 1 || open[0].Need.String() != need || open[0].Ref.Name != "refs/tags/x" {
				t.Errorf("%.4s: %q, %d compared, %+v", object, found, peels, open)
			}
		}
	}
}

// flip changes the last hex digit.
func flip(id string) string {
	if id[len(id)-1] == '0' {
		return id[:len(id)-1] + "1"
	}
	return id[:len(id)-1] + "0"
}

func TestATagThatCantBeReadIsCorrupt(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	r.WriteLoose(r.V1, "tag", r.ReadFile("config")) // another object's bytes
	a := newAdvertisement(t, r, nil)
	if found, _, open := a.judge("refs/tags/v1", r.V1, r.A); strings.Join(found, ", ") != "tagUnreadable, peelOfCorruptTag" || len(open) > 0 {
		t.Errorf("%q %v", found, open)
	}
}

func TestRemotePolicies(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	skip := filepath.Join(t.TempDir(), "skip")
	if err := os.WriteFile(skip, []byte("refs/tags/known peelMismatch\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := newAdvertisement(t, r, map[string]string{"refaudit.skipList": skip, "refaudit.tagNameMismatch": "warn", "refaudit.peelUnexpected": "ignore"})
	for name, want := range map[string]string{"refs/tags/known": "tagNameMismatch", "refs/tags/new": "peelMismatch, tagNameMismatch", "refs/tags/v1": "peelMismatch", "refs/heads/known": "peelMismatch"} {
		if found, _, _ := a.judge(name, r.V1, r.B); names(found) != want {
			t.Errorf("%s: %q, want %s", name, found, want)
		}
	}
	if found, _, _ := a.judge("refs/tags/light", r.A, r.B); len(found) > 0 {
		t.Errorf("ignored: %q", found)
	}
	for key, value := range map[string]string{"refaudit.peelMismatch": "x", "refaudit.skipList": skip + ".none", "fsck.skipList": "none"} {
		if _, err := NewRemotePolicy(userConfig(t, map[string]string{key: value}), t.TempDir(), false, time.Now()); err == nil {
			t.Errorf("%s = %s is taken", key, value)
		}
	}
	stop := errors.New("enough")
	_, _, err := a.ad.Judge(context.Background(), []Advertised{{Name: "refs/tags/v1", OID: oid.MustParse(r.V1), Peel: oid.MustParse(r.B)}}, func(*finding.Finding) error { return stop })
	if !errors.Is(err, stop) {
		t.Error(err)
	}
}

func names(found []string) string {
	var out []string
	for _, f := range found {
		out = append(out, strings.Fields(f)[0])
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
