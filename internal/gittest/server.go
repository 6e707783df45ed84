package gittest

import (
	"encoding/pem"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A Server serves repositories on this machine.
type Server struct {
	// URL is of the folder that is served, without a slash at its end.
	URL string
	// Env is what a client needs in its environment to trust it.
	Env []string
}

// ExecPath is the folder of the program's own commands.
func (p *Program) ExecPath(t testing.TB) string {
	t.Helper()
	return p.Run(t, "", nil, "", "--exec-path").must(t, "--exec-path")
}

// HTTPS serves every repository below root, for fetching and pushing, with git-http-backend behind a web
// server that speaks TLS. user, if it isn't "", must log in, and the password is "secret".
func (p *Program) HTTPS(t testing.TB, root, user string) Server {
	t.Helper()
	exec := p.ExecPath(t)
	backend := &cgi.Handler{
		Path: filepath.Join(exec, "git-http-backend"),
		Env: Env("GIT_EXEC_PATH="+exec, "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=2",
			"GIT_CONFIG_KEY_0=http.receivepack", "GIT_CONFIG_VALUE_0=true", "GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*"),
		Stderr: &errorsToTest{t},
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user != "" {
			if name, password, ok := r.BasicAuth(); !ok || name != user || password != "secret" {
				w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
		}
		one := *backend
		if v := r.Header.Get("Git-Protocol"); v != "" {
			one.Env = append(append([]string{}, one.Env...), "GIT_PROTOCOL="+v)
		}
		one.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return Server{URL: s.URL, Env: []string{"GIT_SSL_CAINFO=" + ca}}
}

// errorsToTest passes what a server says on to the test's log.
type errorsToTest struct{ t testing.TB }

func (e *errorsToTest) Write(p []byte) (int, error) {
	e.t.Logf("server: %s", strings.TrimSpace(string(p)))
	return len(p), nil
}

// SSH stands in for an ssh client: whatever host it is asked for, the command runs on this machine,
// in an environment without the client's variables. Paths in URLs are paths here.
func (p *Program) SSH(t testing.TB) Server {
	t.Helper()
	script := filepath.Join(t.TempDir(), "ssh")
	text := `#!/bin/sh
for last; do :; done
for v in $(env | sed -n 's/^\(GIT_[A-Z_0-9]*\)=.*/\1/p'); do [ "$v" = GIT_PROTOCOL ] || unset "$v"; done
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_EXEC_PATH='` + p.ExecPath(t) + `'
PATH=$GIT_EXEC_PATH:$PATH exec sh -c "$last"
`
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return Server{URL: "ssh://host", Env: []string{"GIT_SSH_COMMAND=" + script, "GIT_SSH_VARIANT=ssh"}}
}
