package remote

import (
	"fmt"
	"net/url"
	"runtime"
	"strings"
)

// URL is the address of a repository that we may talk to.
type URL struct {
	text     string // as git gets it: the path of a local one is absolute
	protocol string // git's name for it: https, ssh or file
}

// String is the URL for people: without a password.
func (u URL) String() string { return redact(u.text) }

// Protocol is git's name for how the repository is reached: https, ssh or file.
func (u URL) Protocol() string { return u.protocol }

// Refused is an address that is not for us.
type Refused struct {
	URL string // as it was given, but for a password
	Why string
}

func (r *Refused) Error() string { return fmt.Sprintf("URL %q is refused: %s", r.URL, r.Why) }

// protocols are git's names for the schemes that we may use.
var protocols = map[string]string{"https": "https", "ssh": "ssh", "git+ssh": "ssh", "ssh+git": "ssh", "file": "file"}

// Parse takes a repository's address as git does. There are three forms:
//
//	scheme://[user@]host[:port]/path    https, ssh (also git+ssh, ssh+git) and file
//	[user@]host:path                    ssh, where no slash stands before the first colon
//	path                                a local one; a relative one starts at dir
//
// Everything else is a *Refused: other schemes, `helper::address`, control bytes, and what could
// be taken for an option, by git or by ssh.
func Parse(text, dir string) (URL, error) {
	refuse := func(format string, args ...any) (URL, error) {
		return URL{}, &Refused{URL: redact(text), Why: fmt.Sprintf(format, args...)}
	}
	switch {
	case text == "":
		return refuse("it is empty")
	case text[0] == '-':
		return refuse("it begins with '-', as an option does")
	case hasControl(text):
		return refuse("it has a control byte")
	}
	word := schemeLen(text)
	if strings.HasPrefix(text[word:], "::") {
		return refuse("%s:: would call another remote helper", text[:word])
	}
	if isLocal(text) {
		return URL{text: absolute(text, dir), protocol: "file"}, nil
	}
	scheme, rest, isURL := strings.Cut(text, "://")
	if !isURL || strings.ContainsAny(scheme, "/") {
		return parseSSH(text, refuse)
	}
	protocol, ours := protocols[scheme]
	if !ours {
		return refuse("of schemes only https, ssh, git+ssh and file are used here, not %q", scheme)
	}
	// git decodes what stands in percent signs before it looks at it; so must we.
	plain, err := url.PathUnescape(rest)
	if err != nil {
		plain = rest // git takes it as it is
	}
	if hasControl(plain) {
		return refuse("it has a control byte behind a percent sign")
	}
	for _, form := range []string{rest, plain} {
		authority, _, _ := strings.Cut(form, "/")
		if why := suspicious(authority); why != "" {
			return refuse("%s", why)
		}
	}
	return URL{text: text, protocol: protocol}, nil
}

// parseSSH takes the short form of an ssh address, as scp has it.
func parseSSH(text string, refuse func(string, ...any) (URL, error)) (URL, error) {
	from := 0
	if i := strings.Index(text, "@["); i >= 0 {
		from = i + 1
	}
	if text[from] == '[' {
		if i := strings.IndexByte(text[from:], ']'); i >= 0 {
			from += i
		}
	}
	host, path, found := strings.Cut(text[from:], ":")
	if !found {
		return refuse("there is no ':' behind the host")
	}
	if why := suspicious(text[:from] + host); why != "" {
		return refuse("%s", why)
	}
	if strings.HasPrefix(path, "-") {
		return refuse("its path begins with '-', as an option does")
	}
	return URL{text: text, protocol: "ssh"}, nil
}

// suspicious says why nobody should be asked to open [user@]host[:port].
func suspicious(authority string) string {
	host := authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		host = authority[i+1:]
	}
	for _, part := range []string{authority, host, strings.TrimPrefix(host, "[")} {
		if strings.HasPrefix(part, "-") {
			return "its host begins with '-', as an option does"
		}
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.HasPrefix(host[i+1:], "-") {
		return "its port begins with '-', as an option does"
	}
	return ""
}

// isLocal tells whether git takes the text for a path: there is no colon, or a slash stands before it.
func isLocal(text string) bool {
	if isAbsolute(text) {
		return true
	}
	colon := strings.IndexByte(text, ':')
	slash := strings.IndexByte(text, '/')
	return colon < 0 || slash >= 0 && slash < colon
}

// isAbsolute tells whether a path starts at a root, on Windows also one with a drive.
func isAbsolute(path string) bool {
	if runtime.GOOS == "windows" {
		if len(path) > 1 && path[1] == ':' && schemeLen(path) == 1 {
			return true
		}
		return path[0] == '/' || path[0] == '\\'
	}
	return path[0] == '/'
}

// absolute makes a path one that git can't take for the name of a remote. It is not cleaned: a/.. need not be here.
func absolute(path, dir string) string {
	if isAbsolute(path) {
		return path
	}
	return strings.TrimSuffix(dir, "/") + "/" + path
}

// schemeLen is how many bytes at the beginning can be a scheme.
func schemeLen(text string) int {
	for i := 0; i < len(text); i++ {
		c := text[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.')) {
			return i
		}
	}
	return len(text)
}

func hasControl(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] < ' ' || text[i] == 0x7f {
			return true
		}
	}
	return false
}

// redact takes the password out of a URL.
func redact(text string) string {
	at := strings.Index(text, "://")
	if at < 0 {
		return text
	}
	rest := text[at+3:]
	authority, _, _ := strings.Cut(rest, "/")
	end := strings.LastIndexByte(authority, '@')
	if end < 0 {
		return text
	}
	colon := strings.IndexByte(authority[:end], ':')
	if colon < 0 {
		return text
	}
	return text[:at+3] + authority[:colon] + ":<redacted>" + rest[end:]
}
