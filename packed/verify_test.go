package packed

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"sort"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/oid"
)

// asGitPrints are the findings' texts for git, as `git refs verify` prints them.
func asGitPrints(data []byte, f oid.Format, severity func(finding.ID) finding.Severity) []string {
	if severity == nil {
		severity = finding.Default
	}
	var lines []string
	report := func(f finding.Finding) error {
		line := "error: " + f.GitText
		sev := severity(f.ID)
		if sev < finding.Error {
			line = "warning: " + f.GitText
		}
		if f.GitText != "" && sev != finding.Ignore {
			lines = append(lines, line[:min(len(line), 4095)])
		}
		return nil
	}
	opts := Options{Severity: severity, first: 64, most: 1 << 20}
	if _, err := Read(bytes.NewReader(data), int64(len(data)), f, opts, report, nil); err != nil {
		panic(err)
	}
	return unique(lines)
}

func unique(lines []string) []string {
	sort.Strings(lines)
	var out []string
	for _, l := range lines {
		if len(out) == 0 || out[len(out)-1] != l {
			out = append(out, l)
		}
	}
	return out
}

var reportStart = regexp.MustCompile(`(?m)^(error|warning): `)

// reports takes apart what git prints: a report may hold newlines.
func reports(stderr string) []string {
	var out []string
	starts := reportStart.FindAllStringIndex(stderr, -1)
	for i, at := range starts {
		end := len(stderr)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		out = append(out, strings.TrimSuffix(stderr[at[0]:end], "\n"))
	}
	return unique(out)
}

func compareWithGit(t *testing.T, r *gittest.Repo, what string, data []byte, severity map[finding.ID]finding.Severity, f oid.Format) {
	t.Helper()
	r.WriteFile("packed-refs", data)
	var args []string
	for id, sev := range severity {
		args = append(args, "-c", "fsck."+string(id)+"="+sev.String())
	}
	_, stderr, code := r.Try(append(args, "refs", "verify")...)
	want := reports(stderr)
	if code != 0 && code != 255 {
		t.Fatalf("%s: git itself crashed: exit %d %s\n%q", what, code, stderr, data)
	}
	configured := func(id finding.ID) finding.Severity {
		if s, ok := severity[id]; ok {
			return s
		}
		return finding.Default(id)
	}
	if got := asGitPrints(data, f, configured); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n%q\ngit:  %q\nours: %q", what, data, want, got)
	}
}

const fullHeader = "# pack-refs with: peeled fully-peeled sorted \n"

func hexOf(f oid.Format, seed string) string { return f.Object("blob", []byte(seed)).String() }

// Each of these is a situation of its own, in both object formats.
func situations(f oid.Format) map[string]string {
	a, b := hexOf(f, "a"), hexOf(f, "b")
	n := f.HexLen()
	h := fullHeader
	return map[string]string{
		"no final newline":            h + a + " refs/heads/x",
		"no final newline, no header": a + " refs/heads/x",
		"empty":                       "",
		"header alone":                h,
		"header cut":                  h[:len(h)-1],
		"header cut short":            "# pack",
		"bad header":                  "# pack-refs wit: peeled\n" + a + " refs/heads/x\n",
		"header glued":                "# pack-refs with:peeled\n" + a + " refs/heads/x\n",
		"NUL in the header":           "# pack-refs with: \x00sorted \n" + a + " refs/heads/b\n" + a + " refs/heads/a\n",
		"no traits":                   "# pack-refs with: \n" + a + " refs/heads/x\n",
		"sorted, two spaces before":   "# pack-refs with:  sorted\n" + a + " refs/heads/b\n" + a + " refs/heads/a\n",
		"sortedness":                  "# pack-refs with: sortedness \n" + a + " refs/heads/b\n" + a + " refs/heads/a\n",
		"short oid":                   h + a[:n-2] + " refs/heads/x\n",
		"no space":                    h + a + "refs/heads/x\n",
		"oid alone":                   h + a + "\n",
		"oid and space":               h + a + " \n",
		"oid and space, cut":          h + a + " ",
		"junk peel":                   h + a + " refs/tags/x\n^" + a[:n-1] + "z\n",
		"peel and garbage":            h + a + " refs/tags/x\n^" + a + " tail\n",
		"empty peel":                  h + a + " refs/tags/x\n^\n",
		"unsorted":                    h + a + " refs/heads/b\n" + a + " refs/heads/a\n",
		"unsorted, not claimed":       "# pack-refs with: peeled fully-peeled \n" + a + " refs/heads/b\n" + a + " refs/heads/a\n",
		"unsorted twice":              h + a + " refs/heads/c\n" + a + " refs/heads/b\n" + a + " refs/heads/a\n",
		"unsorted and bad":            h + a + " refs/heads/c\n" + a + " refs/heads/b\n^" + a + "x\n",
		"unsorted, control bytes":     h + a + " refs/heads/b\xff\n" + a + " refs/heads/a\xc3\xa9\n",
		"prefix behind longer":        h + a + " refs/heads/ab\n" + a + " refs/heads/a\n",
		"duplicate":                   h + a + " refs/heads/x\n" + b + " refs/heads/x\n",
		"duplicate, equal":            h + a + " refs/heads/x\n" + a + " refs/heads/x\n",
		"bad names":                   h + a + " refs/heads/a..b\n" + a + " refs/heads/c.lock\n",
		"null oid":                    h + strings.Repeat("0", n) + " refs/heads/x\n",
		"leading peel":                h + "^" + a + "\n" + a + " refs/heads/x\n",
		"leading peel, no header":     "^" + a + "\n" + a + " refs/heads/x\n",
		"two leading peels":           h + "^" + a + "\n^" + b + "\n" + a + " refs/heads/x\n",
		"two peels":                   h + a + " refs/tags/x\n^" + a + "\n^" + b + "\n",
		"three peels":                 h + a + " refs/tags/x\n^" + a + "\n^" + b + "\n^" + a + "\n" + a + " refs/tags/y\n",
		"three peels, the last bad":   h + a + " refs/tags/x\n^" + a + "\n^" + b + "\n^" + a[1:] + "\n" + a + " refs/tags/y\n",
		"four peels":                  h + a + " refs/tags/x\n^" + a + "\n^" + b + "\n^" + a + "\n^" + b + "\n",
		"peel of a bad line":          h + "rubbish\n^" + a + "\n" + a + " refs/heads/x\n",
		"NUL in a name":               h + a + " refs/heads/ma\x00in\n",
		"NUL in a bad name":           h + a + " refs/heads/.ma\x00in\n",
		"name is NUL":                 h + a + " \x00in\n",
		"NUL in an id":                h + a[:8] + "\x00" + a[9:] + " refs/heads/x\n",
		"NUL behind an id":            h + a + "\x00refs/heads/x\n",
		"NUL in a peel":               h + a + " refs/tags/x\n^" + a[:8] + "\x00" + a[9:] + "\n",
		"NUL behind a peel":           h + a + " refs/tags/x\n^" + a + "\x00\n",
		"zeros":                       h + a + " refs/heads/a\n" + strings.Repeat("\x00", 300) + "\n" + a + " refs/heads/b\n",
		"CRLF":                        strings.ReplaceAll(h+a+" refs/heads/a\n"+a+" refs/tags/x\n^"+b+"\n", "\n", "\r\n"),
		"second header":               h + a + " refs/heads/x\n" + h + a + " refs/heads/y\n",
		"header second":               a + " refs/heads/x\n" + h,
		"tab and upper case":          h + strings.ToUpper(a) + "\trefs/heads/x\n",
		"upper-case peel":             h + a + " refs/tags/x\n^" + strings.ToUpper(b) + "\n",
		"no space, upper case":        h + strings.ToUpper(a) + "x\n",
		"form feed":                   h + a + "\frefs/heads/x\n",
		"CR before the name":          h + a + "\rrefs/heads/x\n",
		"two spaces":                  h + a + "  refs/heads/x\n",
		"cut in an oid":               h + a + " refs/heads/x\n" + a[:20],
		"cut in a peel":               h + a + " refs/tags/x\n^" + a[:20],
		"cut after a peel":            h + a + " refs/tags/x\n^" + a,
		"cut after ^":                 h + a + " refs/tags/x\n^",
		"empty line":                  h + "\n" + a + " refs/heads/x\n",
		"empty line at the end":       h + a + " refs/heads/x\n\n",
		"HTML":                        h + a + " refs/heads/x\n</script>\n",
		"outside refs, and more":      h + a + " heads/a\n" + a + " heads/b\n" + a + " heads/c\n",
		"below a bad name":            h + a + " refs/a..b/a\n" + a + " refs/a..b/b\n" + a + " refs/a..b/c\n",
		"peeled duplicates":           h + a + " refs/tags/x\n^" + b + "\n" + a + " refs/tags/x\n^" + b + "\n" + a + " refs/tags/x\n^" + b + "\n" + a + " refs/tags/y\n",
		"outside refs":                h + a + " HEAD\n" + a + " heads/x\n" + a + " x\n",
		"the other hash":              h + hexOf(oid.SHA1+oid.SHA256-f, "a") + " refs/heads/x\n",
		"control bytes in a name":     h + a + " refs/heads/a\x01b\n" + a + " refs/heads/a\tb\x7f\n",
		"an enormous name":            h + a + " refs/heads/" + strings.Repeat("n", 6000) + "\n" + a + " refs/heads/" + strings.Repeat("m", 6000) + "\n",
		"an enormous bad line":        h + strings.Repeat("q", 6000) + "\n",
		"an enormous bad name":        h + a + " refs/heads/" + strings.Repeat(".", 6000) + "\n",
		"an enormous peel":            h + a + " refs/tags/x\n^" + strings.Repeat("a", 6000) + "\n",
		"an enormous last line":       h + a + " refs/tags/" + strings.Repeat("a", 6000),
	}
}

func TestSaysWhatGitSays(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	for _, f := range []oid.Format{oid.SHA1, oid.SHA256} {
		r := gittest.Init(t, gittest.Options{Format: f, Git: gittest.Newest})
		for what, text := range situations(f) {
			compareWithGit(t, r, fmt.Sprintf("%v, %s", f, what), []byte(text), nil, f)
		}
	}
}

// With lowered severities git goes on to look at the order, whatever lines it has found.
func TestSaysWhatGitSaysWhereSeveritiesAreConfigured(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	f := oid.SHA1
	r := gittest.Init(t, gittest.Options{Git: gittest.Newest})
	for _, severity := range []map[finding.ID]finding.Severity{
		{finding.BadRefName: finding.Warn},
		{finding.BadRefName: finding.Ignore},
		{finding.PackedRefUnsorted: finding.Warn},
		{finding.EmptyPackedRefsFile: finding.Error},
		{finding.BadPackedRefHeader: finding.Warn},
		{finding.BadPackedRefEntry: finding.Warn, finding.BadRefName: finding.Warn},
	} {
		for what, text := range situations(f) {
			if severity[finding.BadPackedRefEntry] != 0 && hasShortLine(text, f) {
				continue // git compares names with what it finds in the lines behind: no order at all
			}
			compareWithGit(t, r, fmt.Sprintf("%v, %s", severity, what), []byte(text), severity, f)
		}
	}
}

func hasShortLine(text string, f oid.Format) bool {
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if len(line) <= f.HexLen() && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "^") {
			return true
		}
	}
	return false
}

// mutate damages a file in one to three places, as disks, editors and programs do.
func mutate(r *rand.Rand, data []byte) []byte {
	data = bytes.Clone(data)
	for range 1 + r.IntN(3) {
		if len(data) == 0 {
			return data
		}
		at := r.IntN(len(data))
		switch r.IntN(10) {
		case 0:
			data[at] ^= 1 << r.IntN(8)
		case 1:
			data[at] = "\n\x00 \t\r^#zA0/."[r.IntN(12)]
		case 2: // lost bytes
			end := min(len(data), at+1+r.IntN(60))
			data = append(data[:at], data[end:]...)
		case 3: // doubled bytes
			end := min(len(data), at+1+r.IntN(120))
			data = append(data[:end], append(bytes.Clone(data[at:end]), data[end:]...)...)
		case 4: // cut
			data = data[:at]
		case 5: // zeros
			clear(data[at:min(len(data), at+r.IntN(90))])
		default: // whole lines doubled, lost, or exchanged
			lines := bytes.SplitAfter(data, []byte("\n"))
			i, j := r.IntN(len(lines)), r.IntN(len(lines))
			switch r.IntN(3) {
			case 0:
				lines[i], lines[j] = lines[j], lines[i]
			case 1:
				lines = append(lines[:i], lines[i+1:]...)
			case 2:
				lines = append(lines[:i+1], lines[i:]...)
			}
			data = bytes.Join(lines, nil)
		}
	}
	return data
}

func sample(f oid.Format, n int) []byte {
	var b strings.Builder
	b.WriteString(fullHeader)
	for i := range n {
		fmt.Fprintf(&b, "%s refs/%s/%03d\n", hexOf(f, fmt.Sprint(i)), []string{"heads", "tags"}[i*2/n], i)
		if i*2 >= n {
			fmt.Fprintf(&b, "^%s\n", hexOf(f, fmt.Sprint("peel", i)))
		}
	}
	return []byte(b.String())
}

func TestSaysWhatGitSaysOfDamagedFiles(t *testing.T) {
	gittest.Need(t, gittest.Newest)
	r := rand.New(rand.NewPCG(7, 8))
	for _, f := range []oid.Format{oid.SHA1, oid.SHA256} {
		repo := gittest.Init(t, gittest.Options{Format: f, Git: gittest.Newest})
		data := sample(f, 8)
		n := 250
		if testing.Short() {
			n = 40
		}
		for i := range n {
			damaged := mutate(r, data)
			compareWithGit(t, repo, fmt.Sprintf("%v, file %d", f, i), damaged, nil, f)
		}
	}
}
