package alternates

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/oid"
)

// pools is a folder of repositories, of which `a.git` is asked.
type pools struct {
	*testing.T
	dir string
}

func newPools(t *testing.T) pools {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return pools{t, dir}
}

// repo makes a repository with this alternates file.
func (p pools) repo(name, list string) string {
	p.Helper()
	r := gittest.InitAt(p.T, gittest.Options{Format: oid.SHA1}, filepath.Join(p.dir, name))
	r.WriteFile("objects/info/alternates", []byte(list))
	return r.Path
}

// stores is what Resolve finds for a.git, which must be what git finds, and what it says of it.
func (p pools) stores(environment string) (names []string, findings []finding.Finding) {
	p.Helper()
	path := filepath.Join(p.dir, "a.git")
	p.Chdir(path) // where relative entries of the environment begin
	c, err := Resolve(filepath.Join(path, "objects"), environment)
	if err != nil {
		p.Fatal(err)
	}
	var ours []string
	for _, s := range c.Stores[1:] {
		ours = append(ours, s.Path)
		rel, _ := filepath.Rel(p.dir, s.Path)
		names = append(names, strings.TrimSuffix(rel, "/objects"))
	}
	git := gittest.Need(p.T, gittest.Any)
	out := git.Run(p.T, path, []string{"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + environment}, "", "count-objects", "-v")
	var gits []string
	for _, line := range strings.Split(string(out.Stdout), "\n") {
		if name, ok := strings.CutPrefix(line, "alternate: "); ok {
			if unquoted, _, err := unquote([]byte(name)); strings.HasPrefix(name, `"`) && err == nil {
				name = string(unquoted)
			}
			gits = append(gits, name)
		}
	}
	if !slices.Equal(ours, gits) {
		p.Errorf("ours %q\ngit's %q", ours, gits)
	}
	return names, c.Findings
}

func (p pools) want(names []string, findings []finding.Finding, wantNames string, wantFindings ...string) {
	p.Helper()
	if got := strings.Join(names, " "); got != wantNames {
		p.Errorf("stores %q, want %q", got, wantNames)
	}
	var got []string
	for _, f := range findings {
		got = append(got, strings.ReplaceAll(fmt.Sprintf("%s %s: %s", f.Pos, f.ID, f.Message), p.dir, "DIR"))
	}
	if len(got) != len(wantFindings) {
		p.Errorf("findings %q, want %q", got, wantFindings)
		return
	}
	for i, w := range wantFindings {
		if !strings.HasPrefix(got[i], w) {
			p.Errorf("finding %q, want %q", got[i], w)
		}
	}
}

func TestChainsAreFollowedInGitsOrder(t *testing.T) {
	p := newPools(t)
	p.repo("a.git", "# pools\n\n../../b.git/objects\n"+p.dir+"/c.git/objects\n")
	p.repo("b.git", "\"../../d\\tx.git/objects\"\n")
	p.repo("c.git", "")
	p.repo("d\tx.git", p.dir+"/c.git/objects/\n")
	p.repo("e.git", "../../f.git/objects\n")
	p.repo("f.git", "")
	names, findings := p.stores("")
	p.want(names, findings, "b.git d\tx.git c.git")
	sep := string(os.PathListSeparator)
	names, findings = p.stores(p.dir + "/e.git/objects" + sep + `"../d\tx.git/objects"` + sep + "../none.git/objects" + sep + "#x")
	p.want(names, findings, "e.git f.git d\tx.git c.git b.git", `$GIT_ALTERNATE_OBJECT_DIRECTORIES alternateMissing: alternate "../none.git/objects" is not there`)
}

// A chain of nine repositories: git follows six hops, and an entry of the environment is the first.
func TestTheChainEndsAfterSixHops(t *testing.T) {
	p := newPools(t)
	for i := range 9 {
		name, list := string(rune('a'+i))+".git", ""
		if i < 8 {
			list = fmt.Sprintf("%s/%c.git/objects\n", p.dir, 'a'+i+1)
		}
		p.repo(name, list)
	}
	names, findings := p.stores("")
	p.want(names, findings, "b.git c.git d.git e.git f.git g.git",
		"DIR/g.git/objects/info/alternates:1 alternateMissing: alternates nested more than 6 deep are ignored, by git too: DIR/a.git/objects -> DIR/b.git/objects")

	os.WriteFile(p.dir+"/a.git/objects/info/alternates", nil, 0o644)
	names, findings = p.stores(p.dir + "/c.git/objects")
	p.want(names, findings, "c.git d.git e.git f.git g.git h.git", "DIR/h.git/objects/info/alternates:1 alternateMissing")
}

// A relative path is seen from the real folder of the list that it stands in.
func TestRelativePathsBeginInTheRealFolder(t *testing.T) {
	p := newPools(t)
	p.repo("pool.git", "")
	p.repo("sub/b.git", "../../../pool.git/objects\n")
	p.repo("a.git", "../../sub/b.git/objects\n")
	names, findings := p.stores("")
	p.want(names, findings, "sub/b.git pool.git")

	// b's objects move deeper, and a link stands where they were
	if err := os.MkdirAll(p.dir+"/disk/2/3", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(p.dir+"/sub/b.git/objects", p.dir+"/disk/2/3/objects"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.dir+"/disk/2/3/objects", p.dir+"/sub/b.git/objects"); err != nil {
		t.Skip(err)
	}
	names, findings = p.stores("")
	p.want(names, findings, "disk/2/3", `DIR/disk/2/3/objects/info/alternates:1 alternateMissing: alternate "../../../pool.git/objects" is not there`)
	os.WriteFile(p.dir+"/a.git/objects/info/alternates", []byte("../../sub/b.git/objects/../../../../pool.git/objects\n"), 0o644)
	names, findings = p.stores("")
	p.want(names, findings, "pool.git") // ".." leads out of disk/2/3, not out of b.git
}

func TestWaysBackAreNamed(t *testing.T) {
	p := newPools(t)
	p.repo("a.git", "../../b.git/objects\n../objects\n")
	p.repo("b.git", p.dir+"/c.git/objects\n")
	p.repo("c.git", "# back\n"+p.dir+"/a.git/objects\n"+p.dir+"/b.git/objects\n"+p.dir+"/c.git/objects\n")
	names, findings := p.stores("")
	p.want(names, findings, "b.git c.git",
		"DIR/c.git/objects/info/alternates:2 alternateCycle: alternates lead back: DIR/a.git/objects -> DIR/b.git/objects -> DIR/c.git/objects -> DIR/a.git/objects",
		"DIR/c.git/objects/info/alternates:3 alternateCycle: alternates lead back: DIR/b.git/objects -> DIR/c.git/objects -> DIR/b.git/objects",
		`DIR/c.git/objects/info/alternates:4 alternateSelf: alternate "DIR/c.git/objects" is the object folder that lists it`,
		"objects/info/alternates:2 alternateSelf: alternate \"../objects\" is the object folder that lists it")
}

func TestTwoWaysToOneFolderAreNoFault(t *testing.T) {
	p := newPools(t)
	p.repo("pool.git", "")
	p.repo("b.git", "../../pool.git/objects\n")
	if err := os.Symlink("pool.git", p.dir+"/link.git"); err != nil {
		t.Skip(err)
	}
	p.repo("a.git", "../../b.git/objects\n../../pool.git/objects\n../../link.git/objects\n")
	names, findings := p.stores("")
	p.want(names, findings, "b.git pool.git")
}

func TestWhatIsMissingIsSaidWithItsLine(t *testing.T) {
	p := newPools(t)
	p.repo("b.git", "")
	p.repo("a.git", "\n/no/such/objects\n../../b.git/objects\n../../b.git/HEAD\n../../gone\n\"x\n")
	names, findings := p.stores("")
	p.want(names, findings, "b.git",
		"objects/info/alternates:6 alternateSyntax: a quoted path without closing quote",
		`objects/info/alternates:2 alternateMissing: alternate "/no/such/objects" is not there`,
		`objects/info/alternates:4 alternateMissing: alternate "../../b.git/HEAD" is not there: DIR/b.git/HEAD is not a folder`,
		`objects/info/alternates:5 alternateMissing: alternate "../../gone" is not there`,
		"objects/info/alternates:6 alternateMissing")
	c, err := Resolve(p.dir+"/a.git/objects", "")
	if err != nil || c.Unknown == nil || !strings.HasPrefix(c.Unknown.Error(), "objects/info/alternates:2: alternate") {
		t.Errorf("%v %v", c.Unknown, err)
	}
}

func TestAListThatCannotBeReadIsNotAnEmptyOne(t *testing.T) {
	p := newPools(t)
	path := p.repo("a.git", "") + "/objects/info/alternates"
	os.Remove(path)
	if c, err := Resolve(p.dir+"/a.git/objects", ""); err != nil || c.Unknown != nil || len(c.Findings) > 0 {
		t.Errorf("no list: %v %v", c, err)
	}
	os.Mkdir(path, 0o755)
	c, err := Resolve(p.dir+"/a.git/objects", "")
	if err != nil || c.Unknown == nil || len(c.Findings) != 1 || c.Findings[0].ID != finding.AuditSkipped {
		t.Errorf("a folder: %+v %v", c, err)
	}
	if c.Unread == nil || !strings.HasPrefix(c.Unread.Error(), "objects/info/alternates: alternates can't be read: ") {
		t.Errorf("a folder: %v", c.Unread)
	}
	os.Remove(path)
	if err := os.Symlink("/no/such/disk/list", path); err != nil {
		t.Skip(err)
	}
	if c, err := Resolve(p.dir+"/a.git/objects", ""); err != nil || c.Unread == nil || c.Unknown == nil || len(c.Findings) != 1 {
		t.Errorf("a link that leads nowhere: %+v %v", c, err)
	}
	os.Remove(path)
	os.WriteFile(path, []byte(strings.Repeat("/no/such\n", entryLimit+5)), 0o644)
	c, _ = Resolve(p.dir+"/a.git/objects", "")
	if last := c.Findings[len(c.Findings)-1]; len(c.Findings) != entryLimit+1 || last.ID != finding.AuditSkipped || c.Unread == nil {
		t.Errorf("too many entries: %d findings, the last %v", len(c.Findings), last)
	}
	os.WriteFile(path, []byte(strings.Repeat("/no/such\n", fileLimit/8)), 0o644)
	c, _ = Resolve(p.dir+"/a.git/objects", "")
	if len(c.Findings) != 1 || c.Unknown == nil || c.Unread == nil {
		t.Errorf("a list too large: %v", c.Findings)
	}
	if _, err := Resolve(p.dir+"/none", ""); err == nil {
		t.Error("no object folder: no error")
	}
}

// git reads a list whole, however long; nobody follows more entries than there is room for.
func TestALongListIsRead(t *testing.T) {
	p := newPools(t)
	p.repo("b.git", "")
	p.repo("a.git", strings.Repeat("# a comment\n", 200<<10)+"../../b.git/objects\n")
	names, findings := p.stores("")
	p.want(names, findings, "b.git")

	entries, problems := Parse([]byte(strings.Repeat("x\n", fileLimit/2)), '\n')
	if len(entries) != entryLimit+1 || len(problems) > 0 {
		t.Errorf("%d entries, %d problems", len(entries), len(problems))
	}
	entries, problems = Parse([]byte(strings.Repeat("\"\\000\"\n", fileLimit/8)), '\n')
	if len(entries) > 0 || len(problems) != problemLimit || !strings.HasSuffix(problems[problemLimit-1].Text, "what follows is not told of") {
		t.Errorf("%d entries, %d problems", len(entries), len(problems))
	}
}
