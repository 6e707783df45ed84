package odb

import (
	"strings"
	"testing"

	"refaudit/internal/gittest"
	"refaudit/oid"
)

// tagTexts are tags of commit C, rightly and wrongly written.
var tagTexts = map[string]string{
	"plain":                         "object C\ntype commit\ntag t\ntagger A <a@x> 1 +0000\n\nmsg\n",
	"no tagger":                     "object C\ntype commit\ntag t\n\nmsg\n",
	"three lines":                   "object C\ntype commit\ntag t\n",
	"no blank line, no body":        "object C\ntype commit\ntag t\ntagger A <a@x> 1 +0000\n",
	"header that does not end":      "object C\ntype commit\ntag t\ntagger A <a@x> 1 +0000",
	"tag line that does not end":    "object C\ntype commit\ntag t",
	"empty name":                    "object C\ntype commit\ntag \nx\n",
	"empty name at the end":         "object C\ntype commit\ntag \n",
	"nothing behind tag":            "object C\ntype commit\ntag ",
	"two lines":                     "object C\ntype commit\n",
	"type line that does not end":   "object C\ntype commit",
	"CR further down":               "object C\ntype commit\ntag t\r\ntagger A <a@x> 1 +0000\r\n\r\nmsg\n",
	"CR on the object line":         "object C\r\ntype commit\ntag t\n\nmessage\n",
	"CR on the type line":           "object C\ntype commit\r\ntag t\n\nmessage\n",
	"NUL further down":              "object C\ntype commit\ntag t\x00t\ntagger A\x00 <a@x> 1 +0000\n\nm\x00sg\n",
	"NUL behind the type":           "object C\ntype commit\x00\ntag t\n\nmessage\n",
	"NUL and more behind the type":  "object C\ntype commit\x00blob\ntag t\n\nmessage\n",
	"NUL in the type":               "object C\ntype comm\x00it\ntag t\n\nmessage\n",
	"type of 19 letters":            "object C\ntype commit\x00xxxxxxxxxxxx\ntag t\n\nmessage\n",
	"type of 20 letters":            "object C\ntype commit\x00xxxxxxxxxxxxx\ntag t\n\nmessage\n",
	"lines swapped":                 "type commit\nobject C\ntag t\n\nmessage\n",
	"unknown type":                  "object C\ntype comit\ntag t\n\nmessage\n",
	"type in capitals":              "object C\ntype COMMIT\ntag t\n\nmessage\n",
	"no type":                       "object C\ntype \ntag t\n\nmessage\n",
	"type with a blank":             "object C\ntype commit \ntag t\n\nmessage\n",
	"two type lines":                "object C\ntype commit\ntype commit\ntag t\n\nmessage\n",
	"line between":                  "object C\nx y\ntype commit\ntag t\n\nmessage\n",
	"upper-case id":                 "object U\ntype commit\ntag t\n\nmessage\n",
	"id too short":                  "object 12345678\ntype commit\ntag t\n\nmessage and more so that there are enough bytes of it\n",
	"id too long":                   "object C0\ntype commit\ntag t\n\nmessage\n",
	"id with another letter":        "object G\ntype commit\ntag t\n\nmessage\n",
	"Object":                        "Object C\ntype commit\ntag t\n\nmessage\n",
	"blank before the id":           "object  C\ntype commit\ntag t\n\nmessage\n",
	"tag without blank":             "object C\ntype commit\ntagt\n\nmessage\n",
	"empty":                         "",
	"only the beginning":            "object ",
	"as short as can be: tag":       "object C\ntype tag\ntag t\n",
	"one byte shorter than can be":  "object C\ntype tag\ntag\n",
	"newline only behind the name":  "object C\ntype commit\ntag t\n",
	"last newline before the name":  "object C\ntype commit\ntag name-that-goes-on-to-the-end",
	"no newline but many bytes":     "object C\ntype commit\ntag " + strings.Repeat("x", 5000),
	"newline after many bytes":      "object C\ntype commit\ntag " + strings.Repeat("x", 5000) + "\n",
	"blob said to be a commit":      "object B\ntype commit\ntag t\n\nmessage\n",
	"commit said to be a blob":      "object C\ntype blob\ntag t\n\nmessage\n",
	"nothing at the end of the tag": "object N\ntype commit\ntag t\n\nmessage\n",
}

// Whether a tag can be parsed is git's to say: it prints what a sound tag leads to.
func TestTagsAreParsedAsInGit(t *testing.T) {
	for _, f := range bothFormats {
		r := gittest.New(t, gittest.Options{Format: f})
		letters := strings.NewReplacer("C", r.A, "U", strings.ToUpper(r.A), "B", r.Blob, "G", "g"+r.A[1:], "N", f.Object("blob", []byte("none")).String())
		db := open(t, r.File("objects"), f)
		parsed := 0
		for name, text := range tagTexts {
			head, rest, _ := strings.Cut(text, "\n")
			text = letters.Replace(head)
			if strings.Contains(tagTexts[name], "\n") {
				text += "\n" + rest
			}
			if strings.HasPrefix(rest, "object") || strings.HasPrefix(rest, "x y") {
				text = letters.Replace(tagTexts[name])
			}
			id := f.Object("tag", []byte(text))
			r.WriteLoose(id.String(), "tag", []byte(text))
			got := lookOne(t, db, id)
			if !isDamaged(got) && got.State != oid.Present {
				t.Fatalf("%v %s: %+v", f, name, got)
			}
			target, _, code := r.Try("rev-parse", "--verify", "-q", id.String()+"^{}")
			ok := code == 0
			if got.State == oid.Present && got.Claims == oid.Commit && got.Target == oid.MustParse(r.A) {
				parsed++
				if !ok || target != r.A+"\n" && target != r.A {
					t.Errorf("%v %s: parsed; git prints %q, exit %d", f, name, target, code)
				}
			} else if ok && !strings.HasPrefix(name, "commit said") {
				t.Errorf("%v %s: %+v; git prints %q", f, name, got, target)
			}
		}
		if parsed < 10 {
			t.Errorf("%v: only %d could be parsed", f, parsed)
		}
	}
}

func FuzzTag(f *testing.F) {
	id := oid.SHA1.Object("commit", nil).String()
	for _, text := range tagTexts {
		f.Add([]byte(strings.ReplaceAll(text, "C", id)), true)
	}
	f.Add([]byte(strings.ReplaceAll(tagTexts["plain"], "C", oid.SHA256.Object("commit", nil).String())), false)
	f.Fuzz(func(t *testing.T, text []byte, sha1 bool) {
		format := oid.SHA256
		if sha1 {
			format = oid.SHA1
		}
		whole, err := factOf(format, oid.Tag, text)
		// a stream shows only the beginning
		newline := int64(strings.LastIndexByte(string(text), '\n'))
		target, claims, err2 := parseTag(format, text[:min(len(text), tagHeadLen)], int64(len(text)), newline)
		if (err == nil) != (err2 == nil) || err == nil && (target != whole.Target || claims != whole.Claims) {
			t.Fatalf("whole: %+v %v; its head: %v %v %v", whole, err, target, claims, err2)
		}
		if err == nil && !strings.HasPrefix(strings.ToLower(string(text)), "object "+target.String()+"\ntype "+claims.String()) {
			t.Fatalf("%q: %v %v", text, target, claims)
		}
	})
}
