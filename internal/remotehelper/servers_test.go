package remotehelper

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// Over https and ssh, in both versions of the protocol: clone, fetch, a lie, a push.
func TestServers(t *testing.T) {
	for _, over := range []string{"https", "ssh"} {
		for _, version := range []string{"0", "2"} {
			t.Run(over+" "+version, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, gittest.AllFormats[3])
				s, url := w.src.Program.SSH(t), w.src.Path
				if over == "https" {
					s, url = w.src.Program.HTTPS(t, filepath.Dir(w.src.Path), ""), "/"+filepath.Base(w.src.Path)
				}
				url = "refaudit::" + s.URL + url
				w.env = append(append(w.env, s.Env...), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.version", "GIT_CONFIG_VALUE_0="+version)
				w.silent("", "clone", "-q", "--ref-format=reftable", url, "c")
				w.whole("c")
				n := w.must("c", "commit-tree", w.src.Tree, "-p", w.src.B, "-m", "new")
				w.silent("c", "push", "-q", "origin", n+":refs/heads/pushed")
				if w.at("refs/heads/pushed") != n {
					t.Error("nothing was pushed")
				}
				m := w.commit(w.src.B, "more")
				w.silent("c", "fetch", "-q", "--depth=2")
				if w.must("c", "rev-parse", "origin/main") != m {
					t.Error("nothing was fetched")
				}
				w.liar("v4")
				w.unchanged("c/.git", func() {
					if said := w.refused("c", "fetch", "--tags"); !strings.Contains(said, "refs/tags/v4") {
						t.Error(said)
					}
				})
				w.env = append(w.env, "GIT_ALLOW_PROTOCOL=refaudit:file")
				if said := w.refused("c", "fetch"); !strings.Contains(said, "GIT_ALLOW_PROTOCOL") {
					t.Error(said)
				}
			})
		}
	}
}

// Credentials and TLS are the user's, wherever they are configured: with the command, or in the
// client's own file, which the quarantine has too.
func TestCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gittest.Options{})
	s := w.src.Program.HTTPS(t, filepath.Dir(w.src.Path), "me")
	ca := strings.TrimPrefix(s.Env[0], "GIT_SSL_CAINFO=")
	helper := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(helper, []byte("#!/bin/sh\necho username=me\necho password=secret\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	url := "refaudit::" + s.URL + "/" + filepath.Base(w.src.Path)
	w.silent("", "-c", "credential.helper="+helper, "-c", "http.sslCAInfo="+ca, "clone", "-q", url, "c")
	w.commit(w.src.B, "new")
	if said := w.refused("c", "fetch"); said == "" {
		t.Error("a server that nobody trusts")
	}
	w.must("c", "config", "http.sslCAInfo", ca)
	if said := w.refused("c", "fetch"); said == "" {
		t.Error("no password")
	}
	w.must("c", "config", "credential."+s.URL+".helper", helper)
	w.silent("c", "fetch", "-q")
	secret := strings.Replace(url, "https://", "https://me:secret@", 1)
	w.must("c", "config", "--unset", "credential."+s.URL+".helper")
	w.must("c", "fetch", "-q", secret)
	w.liar("v4")
	if said := w.refused("c", "fetch", secret, "refs/tags/*:refs/tags/*"); strings.Contains(said, "secret") || !strings.Contains(said, "refs/tags/v4") {
		t.Error(said)
	}
	w.clean("c/.git")
}

// A tag whose type line is false kills git's server before it has sent anything; one that sends it is found out.
func TestCorruptTags(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gittest.Options{})
	w.silent("", "clone", "-q", w.url(), "c")
	w.src.FalseTag("bad")
	w.unchanged("c/.git", func() { w.refused("c", "fetch", "--tags") })
}
