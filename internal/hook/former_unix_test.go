//go:build unix

package hook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// former puts the hook that is there where the former install put it.
func (y *yard) former() {
	y.t.Helper()
	dir := y.server.File("hooks/pre-receive.d")
	os.MkdirAll(dir, 0o755)
	os.WriteFile(filepath.Join(dir, formerScript), script(y.program), 0o755)
	hook := y.server.File("hooks/pre-receive")
	if err := os.Rename(hook, filepath.Join(dir, formerLocal)); err != nil && len(y.names("hooks")) > 1 {
		y.t.Fatal(err)
	} else if err != nil {
		y.script("s.git/hooks/pre-receive.d/10-local", y.policy())
	}
	y.script("s.git/hooks/pre-receive", formerDispatcher)
}

// What an earlier install did is undone rightly, before and after an upgrade.
func TestTheFormerLayoutIsUndone(t *testing.T) {
	for name, make := range oldHooks {
		for _, upgrade := range []bool{true, false} {
			t.Log(name) // of a failure below
			y := newYard(t)
			make(y)
			before := y.tree()
			y.former()
			if upgrade {
				if did := y.install(); len(did) == 0 {
					t.Errorf("%s: nothing was done", name)
				}
				y.checkBoth()
				if did := y.install(); len(did) > 0 {
					t.Errorf("%s: a second install did %q", name, did)
				}
			}
			y.uninstall()
			y.same(name, before)
			if did := y.uninstall(); len(did) > 0 {
				t.Errorf("%s: a second uninstall did %q", name, did)
			}
		}
	}
}

// A part that only the former dispatcher ran is run after the upgrade, and refuses where it can't be. One that never
// could be run is passed over as before.
func TestPartsOfTheFormerDispatcherGoOn(t *testing.T) {
	y := newYard(t)
	y.script("s.git/hooks/pre-receive", "cat >/dev/null\n")
	before := y.tree()
	y.former()
	y.script("s.git/hooks/pre-receive.d/policy", y.policy())
	y.script("s.git/hooks/pre-receive.d/it's a README", "exit 1")
	y.chmod("s.git/hooks/pre-receive.d/it's a README", 0o644)
	y.refused("former", "no says the policy")
	y.read("old")
	y.read("ours") // which had the turn before it
	y.install()
	y.checkBoth()
	if did := y.install(); len(did) > 0 {
		t.Errorf("a second install did %q", did)
	}
	other := y.script("another", "cat >/dev/null\n")
	if did, err := Install(y.place(), other); err != nil || len(did) != 1 {
		t.Errorf("another program: %q %v", did, err)
	}
	y.refused("another program", "no says the policy")
	os.Remove(other)
	y.install()
	y.chmod("s.git/hooks/pre-receive.d/policy", 0o644)
	y.refused("not executable", "refaudit: the push is refused: ")
	y.chmod("s.git/hooks/pre-receive.d/policy", 0o755)
	y.read("old")
	y.uninstall()
	os.RemoveAll(y.server.File("hooks/pre-receive.d"))
	y.same("uninstalled", before)
}

func TestTheFormerLayoutIsUndoneBesideParts(t *testing.T) {
	y := newYard(t)
	y.script("s.git/hooks/pre-receive", "exit 0\n")
	y.former()
	y.script("s.git/hooks/pre-receive.d/policy", y.policy())
	if did := strings.Join(y.uninstall(), "\n"); !strings.Contains(did, "pre-receive.d/policy is not run any more") {
		t.Errorf("did %s", did)
	}
	if text := string(y.server.ReadFile("hooks/pre-receive")); text != "#!/bin/sh\nexit 0\n" {
		t.Errorf("the hook is %q", text)
	}
	if names := y.names("hooks/pre-receive.d"); len(names) != 1 {
		t.Errorf("left: %q", names)
	}
}

// A link that was mended by hand where the former install had moved it leads to the same file from where it is then.
func TestAMendedLinkOfTheFormerLayout(t *testing.T) {
	for _, upgrade := range []bool{true, false} {
		y := newYard(t)
		y.link("../../shared/policy", "s.git/hooks/pre-receive")
		before := y.tree()
		y.former()
		os.Remove(y.server.File("hooks/pre-receive.d/10-local"))
		y.link("../../../shared/policy", "s.git/hooks/pre-receive.d/10-local")
		y.refused("mended", "no says the policy")
		y.read("old")
		if upgrade {
			y.install()
			y.checkBoth()
		}
		y.uninstall()
		y.same("uninstalled", before)
	}
}
