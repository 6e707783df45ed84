package loose

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"

	"refaudit/finding"
	"refaudit/internal/refname"
	"refaudit/oid"
)

// A File is a loose ref as it was found.
type File struct {
	// Name is the ref's name, with "worktrees/<id>/" before one that belongs to a worktree. It is
	// also the file's path below the common dir.
	Name string
	// Mode is the file's own (lstat) below refs/, and of root refs that of what a link leads to
	// (stat), as git asks.
	Mode fs.FileMode
	// Content is the file's; of a symbolic link that of the file behind it, nil if there is none.
	Content []byte
	// Link and Referent are, of a symbolic link, its text and what Referent makes of the path it
	// leads to.
	Link, Referent string
}

// Referent is how git names, in reports, what a symbolic link leads to: the part below the git dir
// (of the worktree, in a worktree) if it lies there, else the whole path. Both paths are absolute and
// free of links.
func Referent(gitDir, realPath string) string {
	rest, _ := strings.CutPrefix(realPath, strings.TrimSuffix(gitDir, "/")+"/")
	return rest
}

// Options of Verify. The zero Options will do.
type Options struct {
	// Severity is what is configured for git's ids; the defaults if nil. What is an error ends
	// git's look at a symref's target.
	Severity func(finding.ID) finding.Severity
}

func (o Options) isError(id finding.ID) bool {
	if o.Severity == nil {
		return finding.Default(id) >= finding.Error
	}
	return o.Severity(id) >= finding.Error
}

// Verify judges a loose ref as `git refs verify` does, in its order, and tells what git's look-ups
// read from it. An error of report ends it and is returned as it is.
func Verify(file File, f oid.Format, opts Options, report func(finding.Finding) error) (Value, error) {
	v := verifier{file: file, f: f, opts: opts, report: report}
	value := v.value()
	if !file.Mode.IsRegular() && file.Mode.Type() != fs.ModeSymlink {
		v.found(finding.BadRefFiletype, "unexpected file type", "is a %s: git expects a file", fileType(file.Mode))
		return Value{}, v.err
	}
	v.name()
	if file.Mode.Type() == fs.ModeSymlink {
		v.link()
	} else {
		v.content()
	}
	return value, v.err
}

// A verifier is one call of Verify. The first error of report sticks, and ends the reports.
type verifier struct {
	file   File
	f      oid.Format
	opts   Options
	report func(finding.Finding) error
	err    error
}

func (v *verifier) value() Value {
	if v.file.Mode.Type() == fs.ModeSymlink {
		if value, ok := ParseLink(v.file.Link); ok {
			return value
		}
		if v.file.Content == nil {
			return Value{}
		}
	}
	return Parse(v.f, v.file.Content)
}

// found reports with git's text, and with a message for people.
func (v *verifier) found(id finding.ID, gitText, format string, args ...any) {
	if v.err != nil {
		return
	}
	pos := finding.Pos{File: v.file.Name}
	if v.file.Mode.IsRegular() {
		pos.Line, pos.Length, pos.Placed = 1, int64(len(v.file.Content)), true
	}
	f := finding.New(id, pos, format, args...)
	f.Ref = finding.RefName(v.file.Name)
	f.GitText = finding.GitLine(v.file.Name, id, gitText)
	v.err = v.report(f)
}

func (v *verifier) name() {
	name := []byte(v.file.Name)
	if !refname.IsRoot(name) && !refname.Valid(name, 0) {
		v.found(finding.BadRefName, "invalid refname format", "git refuses the name: the ref can't be reached by it")
	}
}

func (v *verifier) content() {
	text := cString(v.file.Content)
	value, trailing := parse(v.f, text)
	switch {
	case value.Kind == Broken:
		text := cString(trimSpace(v.file.Content))
		v.found(finding.BadRefContent, string(text), "%s: git reads no value from it, nor a packed one behind it", v.describe())
	case value.Kind == Symref:
		v.symref(string(value.Target))
	case len(trailing) == 0:
		v.found(finding.RefMissingNewline, "misses LF at the end", "the file does not end in a newline%s", v.zeros())
	case string(trailing) != "\n":
		v.found(finding.TrailingRefContent, "has trailing garbage: '"+string(trailing)+"'", "something stands behind the object id: %s", quote(trailing))
	default:
		v.zero(value.OID)
	}
}

// zeros tells of bytes that git does not see.
func (v *verifier) zeros() string {
	if hidden := len(v.file.Content) - len(cString(v.file.Content)); hidden > 0 {
		return "; " + finding.Count(hidden, "byte from a zero byte on is not seen by git", "bytes from a zero byte on are not seen by git")
	}
	return ""
}

// symref judges the target of a symref file: what stands behind "ref:" and white space.
func (v *verifier) symref(target string) {
	trimmed := string(trimSpace([]byte(target)))
	lost := len(target) - len(trimmed)
	if lost == 0 || target[len(target)-1] != '\n' {
		v.found(finding.RefMissingNewline, "misses LF at the end", "the file does not end in a newline%s", v.zeros())
	}
	if lost > 1 {
		v.found(finding.TrailingRefContent, "has trailing whitespaces or newlines", "white space stands behind the symref's target: %s", quote([]byte(target[len(trimmed):])))
	}
	v.target(trimmed)
}

func (v *verifier) link() {
	v.found(finding.SymlinkRef, "use deprecated symbolic link for symref", "is a symbolic link, to %s", quote([]byte(v.file.Link)))
	v.target(v.file.Referent)
}

// target judges the name that a symref leads to.
func (v *verifier) target(target string) {
	_, _, name := refname.SplitWorktree([]byte(v.file.Name))
	if string(name) == "HEAD" && !strings.HasPrefix(target, "refs/heads/") {
		v.found(finding.BadHeadTarget, "HEAD points to non-branch '"+target+"'", "HEAD leads to %s, which is no branch", quote([]byte(target)))
		if v.opts.isError(finding.BadHeadTarget) {
			return
		}
	}
	if refname.IsRoot([]byte(target)) {
		return
	}
	if !refname.Valid([]byte(target), 0) {
		v.found(finding.BadReferentName, "points to invalid refname '"+target+"'", "leads to %s, a name that git refuses", quote([]byte(target)))
		if v.opts.isError(finding.BadReferentName) {
			return
		}
	}
	if !strings.HasPrefix(target, "refs/") && !strings.HasPrefix(target, "worktrees/") {
		v.found(finding.SymrefTargetIsNotARef, "points to non-ref target '"+target+"'", "leads to %s, outside refs/", quote([]byte(target)))
	}
}

// describe says what a file looks like that holds no value.
func (v *verifier) describe() string {
	c := v.file.Content
	other := oid.SHA1.HexLen() + oid.SHA256.HexLen() - v.f.HexLen()
	switch {
	case len(c) == 0:
		return "is empty"
	case bytes.Count(c, []byte{0}) == len(c):
		return "holds " + finding.Count(len(c), "zero byte", "zero bytes")
	case oid.HexPrefix(c, other+1) == other:
		return fmt.Sprintf("holds an id of %d digits in a %v repository", other, v.f)
	}
	return "holds neither an object id nor a symref: " + quote(c)
}

func fileType(m fs.FileMode) string {
	switch m.Type() {
	case fs.ModeDir:
		return "folder"
	case fs.ModeNamedPipe:
		return "named pipe"
	case fs.ModeSocket:
		return "socket"
	}
	return "device"
}

// quote shows bytes from a file to people, shortened.
func quote(b []byte) string {
	const limit = 120
	if len(b) > limit {
		return fmt.Sprintf("%q… (%d bytes)", b[:limit], len(b))
	}
	return fmt.Sprintf("%q", b)
}
