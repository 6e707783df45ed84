package finding

import (
	"strings"
	"testing"
)

func TestGitLineIsWhatGitPrints(t *testing.T) {
	for _, c := range []struct{ path, text, want string }{
		{"packed-refs line 2", "'x' has invalid oid", "packed-refs line 2: badRefName: 'x' has invalid oid"},
		{"refs/heads/a\x01b", "\x7f\xff\ttab\nline", "refs/heads/a?b: badRefName: ?\xff\ttab\nline"},
		{"p", "cut\x00here", "p: badRefName: cut"},
		{"p", strings.Repeat("x", 5000), "p: badRefName: " + strings.Repeat("x", 4096-1-7-15)},
		{strings.Repeat("p", 5000), "gone", strings.Repeat("p", 4096-1-7)},
	} {
		if got := GitLine(c.path, BadRefName, c.text); got != c.want {
			t.Errorf("%.40q %.40q: %.80q", c.path, c.text, got)
		}
	}
}
