package odb

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"refaudit/oid"
)

// tagPieces are what tags are put together from: right lines and wrong ones.
var tagPieces = [][]string{
	{"object " + strings.Repeat("a", 40) + "\n", "object " + strings.Repeat("a", 39) + "\n", "object " + strings.Repeat("g", 40) + "\n", "object " + strings.Repeat("a", 40) + "\r\n", "objekt " + strings.Repeat("a", 40) + "\n", "type commit\n", ""},
	{"type commit\n", "type tag\n", "type blob\n", "type tree\n", "type committ\n", "type commit\r\n", "type  commit\n", "type\n", "tag x\n", ""},
	{"tag x\n", "tag a b\n", "tag \n", "name x\n", "tag x", ""},
	{"tagger A <a@example.com> 1700000000 +0000\n", "tagger\n", "", "more y\n"},
	{"\nmessage\n", "\n", "", "\n\x00\n"},
}

// go-git's decoder is another's reading of the same format. Where it reads a target and a type, and
// we do, they are the same; a tag that it refuses for its first two lines we refuse too.
func TestASecondOpinionOnTags(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	both, neither := 0, 0
	for range 3000 {
		var text strings.Builder
		for _, choice := range tagPieces {
			k := 0
			if rnd.IntN(4) == 0 {
				k = rnd.IntN(len(choice))
			}
			text.WriteString(choice[k])
		}
		content := []byte(text.String())
		target, claims, err := parseTag(oid.SHA1, content[:min(len(content), tagHeadLen)], int64(len(content)), int64(bytes.LastIndexByte(content, '\n')))
		m := &plumbing.MemoryObject{}
		m.SetType(plumbing.TagObject)
		m.Write(content)
		var theirs object.Tag
		terr := theirs.Decode(m)
		switch {
		case err == nil && terr == nil:
			both++
			if theirs.Target.String() != target.String() || theirs.TargetType.String() != claims.String() {
				t.Errorf("%q: %v %v, go-git reads %v %v", content, target, claims, theirs.Target, theirs.TargetType)
			}
		case err != nil && terr != nil:
			neither++
		case err == nil && !strings.HasPrefix(text.String(), tagPieces[0][0]+"type "):
			t.Errorf("%q: we read %v %v, go-git says %v", content, target, claims, terr)
		}
	}
	if both < 500 || neither < 500 {
		t.Errorf("only %d tags were read and %d refused by both: the test shows little", both, neither)
	}
}
