package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"testing"

	"refaudit/finding"
	"refaudit/oid"
)

// What SARIF 2.1.0 asks of the objects that we write, as far as we write them: which properties each may
// have ("!": has to), of which kind. Nothing else may be there.
//
//	text uri flag            a string, a URI reference, true or false
//	from N                   a whole number, N or more
//	level                    none, note, warning or error
//	texts                    an object of strings
//	NAME, [NAME]             one such object, or an array of them
var sarifShapes = map[string]map[string]string{
	"log":                    {"$schema": "uri", "version!": "text", "runs!": "[run]"},
	"run":                    {"tool!": "tool", "invocations": "[invocation]", "results": "[result]"},
	"tool":                   {"driver!": "toolComponent"},
	"toolComponent":          {"name!": "text", "version": "text", "rules": "[reportingDescriptor]"},
	"reportingDescriptor":    {"id!": "text", "shortDescription": "message", "fullDescription": "message", "help": "message", "defaultConfiguration": "reportingConfiguration"},
	"reportingConfiguration": {"enabled": "flag", "level": "level"},
	"message":                {"text!": "text"},
	"result":                 {"ruleId": "text", "level": "level", "message!": "message", "locations": "[location]", "partialFingerprints": "texts", "properties": "texts"},
	"location":               {"physicalLocation": "physicalLocation", "logicalLocations": "[logicalLocation]"},
	"physicalLocation":       {"artifactLocation!": "artifactLocation", "region": "region"},
	"artifactLocation":       {"uri": "uri"},
	"region":                 {"startLine": "from 1", "byteOffset": "from 0", "byteLength": "from 0"},
	"logicalLocation":        {"fullyQualifiedName": "text", "kind": "text"},
	"invocation":             {"executionSuccessful!": "flag", "exitCode": "from 0", "toolExecutionNotifications": "[notification]"},
	"notification":           {"level": "level", "message!": "message"},
}

// misfits lists where a value is not of a kind.
func misfits(at, kind string, v any) (wrong []string) {
	bad := func(format string, args ...any) { wrong = append(wrong, at+": "+fmt.Sprintf(format, args...)) }
	if n := len(kind) - 1; kind[0] == '[' {
		list, ok := v.([]any)
		if !ok {
			bad("%T is no array", v)
		}
		for i, e := range list {
			wrong = append(wrong, misfits(fmt.Sprintf("%s[%d]", at, i), kind[1:n], e)...)
		}
		return wrong
	}
	if shape := sarifShapes[kind]; shape != nil {
		object, ok := v.(map[string]any)
		if !ok {
			bad("%T is no object", v)
		}
		for name, e := range object {
			kind := shape[name] + shape[name+"!"]
			if kind == "" {
				bad("%s doesn't belong here", name)
				continue
			}
			wrong = append(wrong, misfits(at+"."+name, kind, e)...)
		}
		for name := range shape {
			if n := len(name) - 1; name[n] == '!' && object[name[:n]] == nil {
				bad("%s is missing", name[:n])
			}
		}
		return wrong
	}
	text, isText := v.(string)
	number, isNumber := v.(float64)
	var least float64
	switch {
	case kind == "text":
		if !isText {
			bad("%T is no text", v)
		}
	case kind == "uri":
		if u, err := url.Parse(text); !isText || err != nil || u.Scheme == "" {
			bad("%v is no URI with a scheme: %v", v, err)
		}
	case kind == "flag":
		if _, ok := v.(bool); !ok {
			bad("%T is no flag", v)
		}
	case kind == "level":
		if !slices.Contains([]string{"none", "note", "warning", "error"}, text) {
			bad("%v is no level", v)
		}
	case kind == "texts":
		object, ok := v.(map[string]any)
		if !ok {
			bad("%T is no object", v)
		}
		for name, e := range object {
			wrong = append(wrong, misfits(at+"."+name, "text", e)...)
		}
	default:
		if _, err := fmt.Sscanf(kind, "from %f", &least); err != nil {
			bad("nothing is known of kind %q", kind)
		} else if !isNumber || number != float64(int64(number)) || number < least {
			bad("%v is no whole number from %v up", v, least)
		}
	}
	return wrong
}

// A finding of every id, with and without a place, in repositories under odd names, is as the standard asks.
func TestSARIFIsAsTheStandardAsks(t *testing.T) {
	var b bytes.Buffer
	r, err := New("sarif", &b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.Start(&Start{Command: "scan", Version: "1.0"}))
	repos := []string{"/srv/git/a.git", "/srv/a b/%41#?\xff\n.git", `C:\git\a.git`, "https://example.com/a.git", "git@example.com:a.git"}
	places := []finding.Pos{{}, {File: "packed-refs", Line: 3, Offset: 0, Length: 46, Placed: true}, {File: "refs/tags/\x01\xfe"},
		{File: "reftable/t.ref", Blocked: true, Placed: true}, {File: "HEAD", Line: 1}}
	for i := range finding.Catalog {
		id := finding.Catalog[i].ID
		for j, repo := range repos {
			f := finding.Finding{ID: id, Severity: finding.Severity(j), Repo: repo, Pos: places[(i+j)%len(places)], Message: "\x00 \u2028 \xc3"}
			if j%2 == 0 {
				f.Ref, f.OID, f.Cached, f.Cause = "refs/tags/\xff", oid.SHA256.Object("tag", nil), oid.SHA1.Object("blob", nil), finding.CauseHexFlip
			}
			must(r.Finding(&f))
		}
	}
	must(r.Notice(&Notice{Message: "one \xff"}))
	must(r.Repository(&Repository{Repo: repos[1], State: Incomplete, Reason: "a\x00b"}))
	must(r.Summary(&Summary{Repositories: map[State]int64{Incomplete: 1}, Exit: 7}))

	var log map[string]any
	must(json.Unmarshal(b.Bytes(), &log))
	for _, wrong := range misfits("log", "log", log) {
		t.Error(wrong)
	}
	run := log["runs"].([]any)[0].(map[string]any)
	rules := run["tool"].(map[string]any)["driver"].(map[string]any)["rules"].([]any)
	if len(rules) != len(finding.Catalog) || len(run["results"].([]any)) != len(repos)*len(finding.Catalog) || log["version"] != "2.1.0" {
		t.Errorf("%d rules, %d results, version %v", len(rules), len(run["results"].([]any)), log["version"])
	}
}

// A report without findings is one, too.
func TestSARIFOfNothing(t *testing.T) {
	var b bytes.Buffer
	r, _ := New("sarif", &b, Options{})
	if err := r.Summary(&Summary{}); err != nil {
		t.Fatal(err)
	}
	var log any
	if err := json.Unmarshal(b.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range misfits("log", "log", log) {
		t.Error(wrong)
	}
}

func TestFileURI(t *testing.T) {
	for _, c := range []struct{ repo, file, want string }{
		{"/srv/git/a.git", "packed-refs", "file:///srv/git/a.git/packed-refs"},
		{"/srv/a b#.git", "", "file:///srv/a%20b%23.git"},
		{"/srv/a:b.git", "HEAD", "file:///srv/a:b.git/HEAD"},
		{"/srv/x://y", "HEAD", "file:///srv/x:/y/HEAD"},
		{"/srv/a.git", "/pool/objects", "file:///pool/objects"},
		{`C:\git\a.git`, "packed-refs", "file:///C:/git/a.git/packed-refs"},
		{"C:/git/a.git", "packed-refs", "file:///C:/git/a.git/packed-refs"},
		{"https://example.com/a.git", "", "https://example.com/a.git"},
		{"file:///srv/a.git", "info/refs", "file:///srv/a.git/info/refs"},
		{"ssh://example.com/%zz", "HEAD", "ssh://example.com/%25zz/HEAD"},
		{"git@example.com:a b.git", "", "ssh://git@example.com/a%20b.git"},
		{"example.com:/srv/a.git", "", "ssh://example.com/srv/a.git"},
	} {
		if got := fileURI(c.repo, c.file); got != c.want {
			t.Errorf("%q %q: %s, want %s", c.repo, c.file, got, c.want)
		}
	}
}

func TestAFindingLiesInTheGitDir(t *testing.T) {
	for _, c := range []struct{ repo, dir, file, want string }{
		{"/srv/a", "/srv/a/.git", "packed-refs", "file:///srv/a/.git/packed-refs"},
		{"/srv/tree", "/srv/a.git", "worktrees/tree/HEAD", "file:///srv/a.git/worktrees/tree/HEAD"},
		{"/srv/a", "/srv/a/.git", "/pool/objects", "file:///pool/objects"},
		{"/srv/a", "/srv/a/.git", "", "file:///srv/a"},
		{"/srv/a", "/srv/a/.git", "$GIT_ALTERNATE_OBJECT_DIRECTORIES", "file:///srv/a"},
		{"https://example.com/a.git", "", "info/refs", "https://example.com/a.git/info/refs"},
		{`C:\git\a`, `C:\git\a\.git`, "packed-refs", "file:///C:/git/a/.git/packed-refs"},
	} {
		if got := uriOf(&finding.Finding{Repo: c.repo, Dir: c.dir, Pos: finding.Pos{File: c.file}}); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
