package tagtext

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/oid"
)

const good = "object OID\ntype commit\ntag x\ntagger A U Thor <a@example.com> 1700000000 +0000\n\nmessage\n"

// texts are tags with one thing odd each; OID stands for an object.
var texts = []string{
	good,
	"object OID\ntype commit\ntag x\n\nearly, without a tagger\n",
	"object OID\ntype commit\ntag x\n",
	"object OID\ntype commit\ntag x\ntagger A <a> 1 +0000\n",
	"object OID\ntype commit\ntag x\ntagger A <a> 1 +0000",
	"object OID\ntype commit\ntag x\ntagger A\x00 <a> 1 +0000\n\nm\n",
	"object OID\ntype commit\ntag x\ntagger A <a> 1 +0000\n\nm\x00\n",
	"object OID\r\ntype commit\ntag x\n\n",
	"object OIDab\ntype commit\ntag x\n\n",
	"objekt OID\ntype commit\ntag x\n\n",
	"type commit\nobject OID\ntag x\n\n",
	"object OID\ntype commit\r\ntag x\n\n",
	"object OID\ntype committ\ntag x\n\n",
	"object OID\nkind commit\ntag x\n\n",
	"object OID\ntype commit\nname x\n\n",
	"object OID\ntype commit\ntag x\r\ntagger A <a> 1 +0000\r\n\n",
	"object OID\ntype commit\ntag a..b\ntagger A <a> 1 +0000\n\n",
	"object OID\ntype commit\ntag \ntagger A <a> 1 +0000\n\n",
	"object OID\ntype commit\ntag x\ntagger <a> 1 +0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A a 1 +0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A> <a> 1 +0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A<a> 1 +0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a<b> 1 +0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a 1 +0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a>1 +0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a> \t 1 +0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a> soon +0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a> \n\n",
	"object OID\ntype commit\ntag x\ntagger A <a> 01 +0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a> 0 +0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a> 0+0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a> 1+0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a> 9223372036854775807 +0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a> 9223372036854775808 +0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a> 18446744073709551616 +0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a> 99999999999999999999999999 +0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a> 1 0000\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a> 1 +000\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a> 1 +00000\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a> 1 +0000\ngpgsig x\n y\n\n",
	"object OID\ntype commit\ntag x\ntagger A <a> 1 +0000\nextra y\n\n",
	"object OID\ntype commit\ntag x\nextra y\n\n",
}

// What git says of each text is what we say, to the letter: git fsck, and of texts that it can't
// even parse, and then names no id, git hash-object.
func TestLikeGit(t *testing.T) {
	for _, f := range []oid.Format{oid.SHA1, oid.SHA256} {
		r := gittest.New(t, gittest.Options{Format: f})
		target := r.Git("rev-parse", "refs/heads/main")
		said := map[string][]string{} // by id of the tag
		ours := map[string][]string{}
		for _, text := range texts {
			text = strings.ReplaceAll(text, "OID", target)
			id := r.WriteObject("tag", []byte(text))
			for _, p := range Check(f, []byte(text), nil) {
				if finding.Default(p.ID) > finding.Ignore {
					ours[id] = append(ours[id], fmt.Sprintf("%s: %s", p.ID, p.Text))
				}
			}
		}
		_, stderr, _ := r.Try("fsck", "--no-dangling")
		for _, line := range strings.Split(stderr, "\n") {
			if _, rest, ok := strings.Cut(line, " in tag "); ok {
				id, text, _ := strings.Cut(rest, ": ")
				said[id] = append(said[id], text)
			}
		}
		for _, text := range texts {
			text = strings.ReplaceAll(text, "OID", target)
			id := f.Object("tag", []byte(text)).String()
			if len(said[id]) == 0 {
				if _, rest, ok := strings.Cut(r.Program.Run(t, r.Path, nil, text, "hash-object", "-t", "tag", "--stdin").Stderr, "object fails fsck: "); ok {
					first, _, _ := strings.Cut(rest, "\n")
					said[id] = []string{first}
				}
			}
			if !slices.Equal(said[id], ours[id]) {
				t.Errorf("%v: %q\n git says %q\n we say   %q", f, text, said[id], ours[id])
			}
		}
		if len(said) < 25 {
			t.Errorf("%v: git says something of %d texts only", f, len(said))
		}
	}
}

func TestALesserProblemDoesNotEndTheJudging(t *testing.T) {
	text := []byte("object zz\ntype commit\ntag a..b\n\n")
	ids := func(severity finding.Severity) (out []finding.ID) {
		for _, p := range Check(oid.SHA1, text, func(finding.ID) finding.Severity { return severity }) {
			out = append(out, p.ID)
		}
		return out
	}
	if got := ids(finding.Error); !slices.Equal(got, []finding.ID{finding.BadObjectSha1}) {
		t.Errorf("as errors: %v", got)
	}
	if got := ids(finding.Warn); !slices.Equal(got, []finding.ID{finding.BadObjectSha1, finding.BadTagName, finding.MissingTaggerEntry}) {
		t.Errorf("as warnings: %v", got)
	}
}

func FuzzCheck(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(strings.ReplaceAll(text, "OID", strings.Repeat("a", 40))), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, severity uint8) {
		for _, format := range []oid.Format{oid.SHA1, oid.SHA256} {
			for _, p := range Check(format, text, func(finding.ID) finding.Severity { return finding.Severity(severity % 5) }) {
				if e := finding.Lookup(p.ID); e == nil || !e.Git || p.Text == "" {
					t.Errorf("%+v", p)
				}
			}
		}
	})
}
