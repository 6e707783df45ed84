package gittest

import (
	"strings"
	"testing"
)

func TestServers(t *testing.T) {
	r := New(t, Options{})
	for name, s := range map[string]Server{"https": r.Program.HTTPS(t, r.Path, ""), "ssh": r.Program.SSH(t)} {
		path := r.Path
		if name == "https" {
			path = "/."
		}
		for _, version := range []string{"0", "2"} {
			env := append(s.Env, "GIT_TRACE_PACKET=1")
			out := r.Program.Run(t, "", env, "", "-c", "protocol.version="+version, "ls-remote", s.URL+path)
			if out.Code != 0 || !strings.Contains(out.Stdout, r.A+"\trefs/tags/v1^{}") {
				t.Errorf("%s, version %s: %v", name, version, out)
			}
			if v2 := strings.Contains(out.Stderr, "< version 2"); v2 != (version == "2") {
				t.Errorf("%s: asked for version %s, got 2: %v", name, version, v2)
			}
		}
	}
	s := r.Program.HTTPS(t, r.Path, "me")
	if out := r.Program.Run(t, "", s.Env, "", "ls-remote", s.URL+"/."); out.Code == 0 {
		t.Errorf("without a password: %v", out)
	}
	url := strings.Replace(s.URL, "https://", "https://me:secret@", 1)
	if out := r.Program.Run(t, "", s.Env, "", "ls-remote", url+"/."); out.Code != 0 || !strings.Contains(out.Stdout, r.B) {
		t.Errorf("with the password: %v", out)
	}
}
