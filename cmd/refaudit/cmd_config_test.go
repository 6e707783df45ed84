package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

func TestConfigTellsWhereSettingsComeFrom(t *testing.T) {
	r := gittest.New(t, gittest.Options{})
	home := t.TempDir()
	global := filepath.Join(home, ".gitconfig")
	os.WriteFile(global, []byte("[core]\n\tpackedRefsTimeout = 5000\n\talternateRefsCommand = /bin/true\n[refaudit]\n\tpeelMissing = error\n[safe]\n\tdirectory = /a\n\tdirectory = /b\n"), 0o644)
	r.Git("config", "refaudit.peelMissing", "info")
	r.Git("config", "core.useReplaceRefs", "false")
	vars := map[string]string{"HOME": home, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "fsck.badRefName", "GIT_CONFIG_VALUE_0": "warn"}
	out := command(t, nil, vars, "config", r.Path)
	if out.code != 0 || out.err != "" {
		t.Errorf("exit %d: %s", out.code, out.err)
	}
	local := filepath.Join(r.Path, "config")
	for _, want := range []string{
		`refaudit.peelMissing = info +\(local ` + local + `:\d+\)`,
		`core.packedRefsTimeout = 5000 +\(global ` + global + `:2\)`,
		`core.alternateRefsCommand = /bin/true +\(global ` + global + `:3\)`,
		`core.useReplaceRefs = false +\(local ` + local + `:\d+\)`,
		`fsck.badRefName = warn +\(command\)`,
		`refaudit.hook.timeout = 10s +\(default\)`,
		`safe.directory = /a +\(global ` + global + `:7\)`,
		`safe.directory = /b +\(global ` + global + `:8\)`,
	} {
		if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(out.out) {
			t.Errorf("no %s in\n%s", want, out.out)
		}
	}
	for _, not := range []string{"peelMissing = error", "refaudit.skipList"} {
		if strings.Contains(out.out, not) {
			t.Errorf("%s is not in force", not)
		}
	}
	if all := command(t, nil, vars, "config", "--all", r.Path); !strings.Contains(all.out, "refaudit.skipList = ") {
		t.Error(all.out)
	}
	for i, line := range strings.Split(strings.TrimSpace(command(t, nil, vars, "config", "--json", r.Path).out), "\n") {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil || m["type"] != "setting" || m["key"] == "" || m["repo"] != r.Path || m["default"] != (m["scope"] == nil) {
			t.Errorf("line %d: %v: %s", i+1, err, line)
		}
	}
	// Outside of any repository it is what holds for all.
	if out := command(t, nil, vars, "config"); out.code != 0 || !strings.Contains(out.out, "refaudit.peelMissing = error") {
		t.Errorf("exit %d: %s", out.code, out.out)
	}
}

func TestConfigTellsWhatIsNotFollowed(t *testing.T) {
	for key, want := range map[string]string{
		"refaudit.peelMismatch=loud":         "takes error, warn, info or ignore",
		"refaudit.reftableCrc=ignore":        "can't be lowered below warn",
		"fsck.peelMismatch=warn":             "is none of git's ids",
		"refaudit.peelMismatsch=warn":        "there is no such setting",
		"core.alternateRefsCommand=exit 0 #": "counts only in system, global or command-line configuration",
		"refaudit.guard.maxloss=3":           "there is no such setting",
	} {
		r := gittest.New(t, gittest.Options{})
		name, value, _ := strings.Cut(key, "=")
		r.Git("config", name, value)
		if out := command(t, nil, nil, "config", r.Path); out.code != 129 || !strings.Contains(out.out, want) {
			t.Errorf("%s: exit %d: %s", key, out.code, out.out)
		}
	}
	r := gittest.New(t, gittest.Options{})
	r.WriteFile("config", []byte(string(r.ReadFile("config"))+"[includeIf \"gitdir:/"+strings.Repeat("*a", 5000)+"\"]\n\tpath = more\n"))
	r.WriteFile("more", nil)
	if out := command(t, nil, nil, "config", r.Path); out.code != 129 || !strings.Contains(out.err, "is not followed") {
		t.Errorf("an include: exit %d: %s", out.code, out.err)
	}
	none := filepath.Join(t.TempDir(), "none")
	if out := command(t, nil, nil, "config", none); out.code != 3 {
		t.Errorf("exit %d: %s", out.code, out.err)
	}
	if out := command(t, nil, nil, "config", none, none); out.code != 129 {
		t.Errorf("exit %d: %s", out.code, out.err)
	}
}

// Each variable that the program asks for by name is in the table.
func TestTheTableOfSettingsIsWhole(t *testing.T) {
	known := map[string]bool{}
	for _, s := range settings {
		known[strings.ToLower(s.key)] = true
	}
	key := regexp.MustCompile(`"((?:refaudit|core|reftable|safe|fsck|receive)\.(?:fsck\.)?[A-Za-z.]*[A-Za-z])"`)
	asked := 0
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "settings.go") && strings.Contains(path, "cmd") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range key.FindAllStringSubmatch(string(text), -1) {
			asked++
			if !known[strings.ToLower(m[1])] {
				t.Errorf("%s asks for %s, which `refaudit config` does not show", path, m[1])
			}
		}
		return err
	})
	if err != nil || asked < 15 {
		t.Errorf("%d found: %v", asked, err)
	}
}

func TestVersion(t *testing.T) {
	one, two := command(t, nil, nil, "version"), command(t, nil, nil, "--version")
	if one.code != 0 || one.out != two.out || !strings.HasPrefix(one.out, "refaudit version ") || strings.Count(one.out, "\n") != 1 {
		t.Errorf("%q %q", one.out, two.out)
	}
	one, two = command(t, nil, nil, "version", "--json"), command(t, nil, nil, "--version", "--json")
	var m map[string]any
	if err := json.Unmarshal([]byte(one.out), &m); err != nil || one.out != two.out || m["type"] != "version" || m["version"] == "" || m["go"] == "" || m["schema"] != "refaudit/1" {
		t.Errorf("%v: %q %q", err, one.out, two.out)
	}
}

// What can't be followed in the user's own configuration ends every command before it reads or writes anything.
func TestBrokenConfigurationIsAUsageError(t *testing.T) {
	r, _ := gittest.Mismatch(t, gittest.Options{})
	for _, c := range []struct{ text, says string }{
		{"[include]\n\tpath = ~doesnotexist/x\n", "doesnotexist"},
		{"[core\n", ".gitconfig"},
		{"[refaudit]\n\tpeelMismatch = bogus\n", "bogus"},
	} {
		home := t.TempDir()
		if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		vars := map[string]string{"HOME": home, "XDG_STATE_HOME": filepath.Join(home, "state")}
		gittest.Unchanged(t, r.Path, func() {
			for _, words := range []string{"scan", "size", "guard", "fingerprint", "fix --yes", "config", "dump", "hook install", "hook uninstall", "nagios", "undo"} {
				got := command(t, nil, vars, append(strings.Fields(words), r.Path)...)
				told := got.err
				if words == "config" || words == "nagios" {
					told += got.out
				}
				if got.code != exitUsage || !strings.Contains(told, c.says) {
					t.Errorf("%q, %s: exit %d: %s%s", c.text, words, got.code, got.out, got.err)
				}
				if got.out != "" && words != "nagios" && !strings.Contains(got.out, "not followed: ") {
					t.Errorf("%q, %s: %s", c.text, words, got.out)
				}
			}
			got := command(t, nil, vars, "nagios", "--nagios-codes", r.Path)
			if m := nagiosLine.FindStringSubmatch(got.out); m == nil || m[1] != "UNKNOWN" || got.code != 3 || got.err != "" || !strings.Contains(got.out, c.says) {
				t.Errorf("%q: exit %d: %s%s", c.text, got.code, got.out, got.err)
			}
		})
		if got := command(t, nil, vars, "dump", r.File("packed-refs")); got.code != exitOK {
			t.Errorf("%q: a file: exit %d: %s", c.text, got.code, got.err)
		}
		if left, err := os.ReadDir(home); err != nil || len(left) != 1 {
			t.Errorf("%q: wrote %v, error %v", c.text, left, err)
		}
	}
}
