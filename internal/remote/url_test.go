package remote

import (
	"errors"
	"strings"
	"testing"
)

func TestURLsThatAreOurs(t *testing.T) {
	for in, want := range map[string]string{
		"https://example.com/a.git":             "https https://example.com/a.git",
		"https://user@example.com:8443/a.git":   "https https://user@example.com:8443/a.git",
		"ssh://git@example.com:22/~u/a.git":     "ssh ssh://git@example.com:22/~u/a.git",
		"git+ssh://example.com/a":               "ssh git+ssh://example.com/a",
		"ssh+git://example.com/a":               "ssh ssh+git://example.com/a",
		"ssh://[::1]:22/a":                      "ssh ssh://[::1]:22/a",
		"file:///srv/a.git":                     "file file:///srv/a.git",
		"file:///srv/a%20b.git":                 "file file:///srv/a%20b.git",
		"git@example.com:a/b.git":               "ssh git@example.com:a/b.git",
		"example.com:a":                         "ssh example.com:a",
		"[example.com:22]:a":                    "ssh [example.com:22]:a",
		"u@[::1]:a":                             "ssh u@[::1]:a",
		"/srv/a.git":                            "file /srv/a.git",
		"/srv/a::b":                             "file /srv/a::b",
		"/srv/x://y":                            "file /srv/x://y",
		"a.git":                                 "file /here/a.git",
		"origin":                                "file /here/origin",
		"../a.git":                              "file /here/../a.git",
		"./a:b":                                 "file /here/./a:b",
		"./-a":                                  "file /here/./-a",
		"https://example.com/caf\xc3\xa9\xff.g": "https https://example.com/caf\xc3\xa9\xff.g",
		"ssh://host/100%":                       "ssh ssh://host/100%", // no escape: git takes it as it is
	} {
		u, err := Parse(in, "/here")
		if err != nil || u.protocol+" "+u.text != want {
			t.Errorf("%q: %q %q, %v", in, u.protocol, u.text, err)
		}
	}
}

func TestHostileURLsAreRefused(t *testing.T) {
	for in, why := range map[string]string{
		"":                                    "empty",
		"-":                                   "begins with '-'",
		"--upload-pack=touch x;":              "begins with '-'",
		"-oProxyCommand=touch x:y":            "begins with '-'",
		"ssh://-oProxyCommand=x/y":            "begins with '-'",
		"ssh://u@-oProxyCommand=x/y":          "begins with '-'",
		"ssh://%2doProxyCommand=x/y":          "begins with '-'",
		"ssh://u%40-oProxyCommand=x/y":        "begins with '-'",
		"ssh://u@%2DoProxyCommand=x/y":        "begins with '-'",
		"ssh://[-oProxyCommand=x]/y":          "begins with '-'",
		"ssh://host:-oProxyCommand=x/y":       "begins with '-'",
		"git+ssh://-x/y":                      "begins with '-'",
		"https://-x/y":                        "begins with '-'",
		"https://u:p@-x/y":                    "begins with '-'",
		"file://-x/y":                         "begins with '-'",
		"u@-oProxyCommand=x:y":                "begins with '-'",
		"[-oProxyCommand=x]:y":                "begins with '-'",
		"u@[-oProxyCommand=x]:y":              "begins with '-'",
		"host:-oProxyCommand=x":               "begins with '-'",
		"ext::sh -c touch% x":                 "another remote helper",
		"fd::0":                               "another remote helper",
		"refaudit::/srv/a":                    "another remote helper",
		"::a":                                 "another remote helper",
		"x+y-1.2::a":                          "another remote helper",
		"http://example.com/a":                "of schemes",
		"HTTPS://example.com/a":               "of schemes",
		"git://example.com/a":                 "of schemes",
		"ftp://example.com/a":                 "of schemes",
		"svn+ssh://example.com/a":             "of schemes",
		"1https://example.com/a":              "of schemes",
		"ht tps://example.com/a":              "of schemes",
		"https://example.com/\n":              "control byte",
		"https://example.com/%0a":             "control byte",
		"https://example.com%0ahost=evil.com": "control byte",
		"ssh://h/%00":                         "control byte",
		"/srv/a\x7f":                          "control byte",
		"\thttps://example.com/a":             "control byte",
	} {
		_, err := Parse(in, "/here")
		var refused *Refused
		if !errors.As(err, &refused) || !strings.Contains(refused.Why, why) {
			t.Errorf("%q: %v, want %s", in, err, why)
		}
	}
}

func TestPasswordsStayUnsaid(t *testing.T) {
	for in, want := range map[string]string{
		"https://u:secret@example.com/a": "https://u:<redacted>@example.com/a",
		"https://u:se@cret@h/a":          "https://u:<redacted>@h/a",
		"https://u@example.com/a":        "https://u@example.com/a",
		"https://example.com/a:b@c":      "https://example.com/a:b@c",
		"ssh://u:secret@h":               "ssh://u:<redacted>@h",
	} {
		u, err := Parse(in, "/")
		if err != nil || u.String() != want {
			t.Errorf("%q: %q %v", in, u, err)
		}
	}
	if _, err := Parse("http://u:secret@h/", "/"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a refusal tells the password: %v", err)
	}
}

func FuzzParseURL(f *testing.F) {
	for _, s := range []string{"https://a/b", "git@h:p", "u@[::1]:p", "ext::x", "ssh://%2d", "/a", "[", "@[:", ":"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := Parse(text, "/here")
		if err != nil {
			return
		}
		if u.text[0] == '-' || hasControl(u.text) {
			t.Errorf("%q became %q", text, u.text)
		}
		if u.protocol == "file" && !strings.HasPrefix(u.text, "file://") && u.text[0] != '/' {
			t.Errorf("%q became the relative path %q", text, u.text)
		}
		again, err := Parse(u.text, "/elsewhere")
		if err != nil || again != u {
			t.Errorf("%q became %q, and that %q: %v", text, u.text, again.text, err)
		}
	})
}
