package remote

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func mapEnv(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

func settingsOf(pairs ...string) (s Settings) {
	for i := 0; i < len(pairs); i += 2 {
		s = append(s, Setting{Scope: "global", Key: pairs[i], Value: pairs[i+1]})
	}
	return s
}

func TestProtocolRules(t *testing.T) {
	urls := map[string]string{"https": "https://h/a", "ssh": "h:a", "file": "/a"}
	for _, c := range []struct {
		name     string
		settings Settings
		env      map[string]string
		allowed  string
	}{
		{"by default", nil, nil, "https ssh file"},
		{"not chosen by a user", nil, map[string]string{"GIT_PROTOCOL_FROM_USER": "0"}, "https ssh"},
		{"a list", nil, map[string]string{"GIT_ALLOW_PROTOCOL": "file:ext:git"}, "file"},
		{"a list, and nobody has chosen", nil, map[string]string{"GIT_ALLOW_PROTOCOL": "file", "GIT_PROTOCOL_FROM_USER": "0"}, "file"},
		{"an empty list", nil, map[string]string{"GIT_ALLOW_PROTOCOL": ""}, ""},
		{"a list counts alone", settingsOf("protocol.file.allow", "never"), map[string]string{"GIT_ALLOW_PROTOCOL": "file"}, "file"},
		{"one forbidden", settingsOf("protocol.file.allow", "never"), nil, "https ssh"},
		{"all forbidden but one", settingsOf("protocol.allow", "never", "protocol.ssh.allow", "always"), nil, "ssh"},
		{"the last one counts", settingsOf("protocol.ssh.allow", "always", "protocol.ssh.allow", "Never"), nil, "https file"},
		{"by users", settingsOf("protocol.allow", "user"), map[string]string{"GIT_PROTOCOL_FROM_USER": "false"}, ""},
		{"always", settingsOf("protocol.file.allow", "always"), map[string]string{"GIT_PROTOCOL_FROM_USER": "no"}, "https ssh file"},
		{"what is no word forbids", settingsOf("protocol.https.allow", "perhaps"), nil, "ssh file"},
	} {
		r, err := newRules(c.settings, mapEnv(c.env))
		if err != nil {
			t.Fatal(err)
		}
		for p, text := range urls {
			u, err := Parse(text, "/")
			if err != nil {
				t.Fatal(err)
			}
			err = r.check(u)
			if refused := (*Refused)(nil); (err == nil) != slices.Contains(strings.Fields(c.allowed), p) || err != nil && !errors.As(err, &refused) {
				t.Errorf("%s: %s: %v", c.name, p, err)
			}
		}
	}
	if _, err := newRules(nil, mapEnv(map[string]string{"GIT_PROTOCOL_FROM_USER": "2x"})); err == nil {
		t.Error("GIT_PROTOCOL_FROM_USER that is no boolean")
	}
}

// What is not ours is forbidden by name, also what only a user's configuration knows.
func TestRulesForbidTheRest(t *testing.T) {
	r, err := newRules(settingsOf("protocol.foo.allow", "always", "protocol.ext.allow", "always", "protocol.file.allow", "always"), mapEnv(nil))
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Join(r.arguments(), " ")
	for _, want := range []string{"protocol.allow=never", "protocol.foo.allow=never", "protocol.ext.allow=never", "protocol.fd.allow=never",
		"protocol.http.allow=never", "protocol.git.allow=never", "protocol.refaudit.allow=never", "protocol.file.allow=always", "protocol.ssh.allow=always"} {
		if !strings.Contains(args, "-c "+want) {
			t.Errorf("%s is not in %s", want, args)
		}
	}
	if _, set := r.environment(); set {
		t.Error("GIT_ALLOW_PROTOCOL is set where it was not")
	}
	r, _ = newRules(nil, mapEnv(map[string]string{"GIT_ALLOW_PROTOCOL": "refaudit:file:ext:ssh"}))
	if list, set := r.environment(); list != "file:ssh" || !set {
		t.Errorf("cut down to %q", list)
	}
}
