package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shell runs a script in a shell that is there.
func shell(t *testing.T, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip("there is no " + name)
	}
	c := exec.Command(path, args...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LC_ALL=C.UTF-8"}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	return string(out)
}

func script(t *testing.T, name string) string {
	t.Helper()
	r := command(t, nil, nil, "completion", name)
	if r.code != 0 || r.err != "" {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	file := filepath.Join(t.TempDir(), "_refaudit")
	if err := os.WriteFile(file, []byte(r.out), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestBashCompletes(t *testing.T) {
	file := script(t, "bash")
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "a file"), nil, 0o644)
	for line, want := range map[string]string{
		"":                             "scan fix undo size dump hook explain guard fingerprint nagios config completion version",
		"sc":                           "scan",
		"scan --max-":                  "--max-duration --max-age --max-findings",
		"scan --level ":                "quick standard deep",
		"scan --level = d":             "deep",
		"scan --format js":             "jsonl",
		"scan -q --strict --fail-on w": "warn",
		"hook ":                        "pre-receive install uninstall",
		"hook install --sty":           "--style",
		"hook install --style git":     "git gitaly gitea",
		"explain peelMism":             "peelMismatch",
		"completion ":                  "bash zsh fish",
		"scan " + dir + "/a":           dir + "/a file",
		"scan --state " + dir + "/":    dir + "/a file",
		"--vers":                       "--version",
		"fix --only tagT":              "tagTypeMismatch tagTargetMissing",
	} {
		words := strings.Split(line, " ")
		quoted := "refaudit"
		for _, w := range words {
			quoted += " " + shellWord(w)
		}
		out := shell(t, "bash", "-c", `. "$1"; eval "COMP_WORDS=($2)"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); IFS=$'\n'; _refaudit; printf '%s\n' "${COMPREPLY[@]}"`, "bash", file, quoted)
		got := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if !strings.Contains(line, "/") {
			got = strings.Fields(out)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("refaudit %s: %q, want %q", line, got, want)
		}
	}
}

func TestOtherShellsTakeTheirScripts(t *testing.T) {
	t.Run("zsh", func(t *testing.T) { shell(t, "zsh", "-n", script(t, "zsh")) })
	t.Run("fish", func(t *testing.T) {
		file := script(t, "fish")
		shell(t, "fish", "-n", file)
		out := shell(t, "fish", "-c", "source "+file+`; complete -C "refaudit scan --lev"; complete -C "refaudit hook inst"`)
		if !strings.Contains(out, "--level") || !strings.Contains(out, "install") {
			t.Errorf("%q", out)
		}
	})
	for _, args := range [][]string{{}, {"tcsh"}, {"bash", "zsh"}} {
		if r := command(t, nil, nil, append([]string{"completion"}, args...)...); r.code != 129 || r.out != "" {
			t.Errorf("%v: exit %d", args, r.code)
		}
	}
}

// Values are offered for flags that are there, and each of them is taken.
func TestValuesOfFlags(t *testing.T) {
	app := newApp(env{getenv: func(string) (string, bool) { return "", false }}, "")
	seen := map[string]bool{}
	for _, c := range completions(app) {
		for _, f := range c.flags {
			if len(f.values) > 0 {
				seen[f.names[0]] = true
				if !f.takes {
					t.Errorf("%v --%s takes no value", c.path, f.names[0])
				}
			}
		}
	}
	for name := range flagValues() {
		if !seen[name] {
			t.Errorf("there is no flag --%s", name)
		}
	}
	for name, values := range flagValues() {
		if slices.Contains([]string{"format", "level", "fail-on", "color", "progress", "page-cache"}, name) {
			for _, v := range values {
				if r := command(t, nil, nil, "scan", "--"+name+"="+v, "--recursive", t.TempDir()); r.code != 3 {
					t.Errorf("scan --%s=%s: exit %d: %s", name, v, r.code, r.err)
				}
			}
		}
	}
}

// A run makes the one command that it needs, and that is the same one.
func TestOneCommandAlone(t *testing.T) {
	e := env{getenv: func(string) (string, bool) { return "", false }}
	all := newApp(e, "")
	for i, c := range commands {
		if all.Commands[i].Name != c.name {
			t.Errorf("the command in place of %s is %s", c.name, all.Commands[i].Name)
		}
		if got := onlyCommand([]string{"refaudit", c.name, "x"}); got != c.name && c.name != "completion" {
			t.Errorf("%s: %q", c.name, got)
		}
		one := newApp(e, c.name)
		if len(one.Commands) != 1 || one.Commands[0].Name != c.name {
			t.Errorf("%s alone: %d commands", c.name, len(one.Commands))
		}
	}
	for _, args := range [][]string{{"refaudit"}, {"refaudit", "help"}, {"refaudit", "--help"}, {"refaudit", "siz"}, {"refaudit", "completion", "bash"}} {
		if got := onlyCommand(args); got != "" {
			t.Errorf("%q: %q alone", args, got)
		}
	}
}
