package repo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"refaudit/internal/vfs"
	"refaudit/oid"
)

// NotRepository is the answer that a folder is no repository, and why not.
type NotRepository struct {
	Path string
	Why  error
	// Damaged tells that it has the look of one: two of HEAD, objects and refs are there, in whatever
	// state. Such a folder is passed over by git, and must not be by an audit.
	Damaged bool
	Inside  string // the repository, or its working tree, that the folder lies in; "" where nobody has looked for one
}

func (e *NotRepository) Error() string {
	why := e.Why.Error()
	if e.Damaged {
		return fmt.Sprintf("not a git repository, but it looks like a damaged one: %s: %s", e.Path, strings.ReplaceAll(why, "\n", "; "))
	}
	why, _, _ = strings.Cut(why, "\n") // one missing thing is enough to say
	if e.Inside != "" {
		why += fmt.Sprintf("; it lies in the repository %s, which is looked for only where no path is given", e.Inside)
	}
	return fmt.Sprintf("not a git repository: %s: %s", e.Path, why)
}

func (e *NotRepository) Unwrap() error { return e.Why }

// maxGitFile is what git reads of a .git file, and of a commondir file.
const maxGitFile = 1 << 20

var errHead = errors.New("HEAD is neither a symbolic ref to refs/… nor an object id")

// IsGitDir tells whether git would take the folder at path for a git dir: it has a HEAD that can
// be one, and, in its common dir, objects (or GIT_OBJECT_DIRECTORY) and refs. The answer no
// is a *NotRepository.
func IsGitDir(path string, o Options) error {
	if err := o.complete(); err != nil {
		return err
	}
	real, err := realPath(o.abs(path))
	if err != nil {
		return &NotRepository{Path: path, Why: err}
	}
	return o.isGitDir(real)
}

// isGitDir takes a real path, as do the functions below.
func (o *Options) isGitDir(path string) error {
	common, err := o.commonDir(path)
	if err != nil {
		return &NotRepository{Path: path, Why: err, Damaged: true}
	}
	objects := joinPath(common, "objects")
	if dir, set := o.Env("GIT_OBJECT_DIRECTORY"); set {
		objects = o.abs(dir)
	}
	head := checkHead(joinPath(path, "HEAD"))
	why := errors.Join(head, vfs.Enter(objects), vfs.Enter(joinPath(common, "refs")))
	if why == nil {
		return nil
	}
	signs := 0
	for _, name := range []string{joinPath(path, "HEAD"), joinPath(common, "objects"), joinPath(common, "refs")} {
		if _, err := os.Lstat(name); err == nil {
			signs++
		}
	}
	return &NotRepository{Path: path, Why: why, Damaged: signs >= 2}
}

// checkHead looks at HEAD as git does before it knows the format of the repository: the first 255
// bytes, or the text of a symbolic link.
func checkHead(path string) error {
	st, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		if err == nil && !strings.HasPrefix(target, "refs/") {
			err = &fs.PathError{Op: "read", Path: path, Err: errHead}
		}
		return err
	}
	dir, err := vfs.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	f, err := dir.Open("HEAD")
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 255))
	if err != nil {
		return err
	}
	if !canBeHead(text) {
		return &fs.PathError{Op: "read", Path: path, Err: errHead}
	}
	return nil
}

// canBeHead tells whether text begins like a HEAD: "ref: refs/…", or an id of either format.
func canBeHead(text []byte) bool {
	if rest, found := bytes.CutPrefix(text, []byte("ref:")); found {
		return bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte("refs/"))
	}
	return oid.HexPrefix(text, oid.SHA1.HexLen()) == oid.SHA1.HexLen()
}

// commonDir is the folder that holds what the worktrees of a repository share: GIT_COMMON_DIR,
// else what the file commondir names, else the git dir itself.
func (o *Options) commonDir(gitDir string) (string, error) {
	if dir, set := o.Env("GIT_COMMON_DIR"); set {
		return realPath(o.abs(dir))
	}
	common, _, err := commonDirOf(gitDir)
	return common, err
}

// commonDirOf is commonDir without the environment. linked tells that there is a commondir file.
func commonDirOf(gitDir string) (common string, linked bool, err error) {
	if _, err := os.Lstat(joinPath(gitDir, "commondir")); err != nil {
		if vfs.Missing(err) {
			return gitDir, false, nil
		}
		return "", false, err
	}
	dir, err := vfs.Open(gitDir)
	if err != nil {
		return "", false, err
	}
	text, err := dir.ReadFile("commondir", maxGitFile)
	if err != nil {
		return "", false, err
	}
	if len(text) == 0 {
		return "", false, fmt.Errorf("%s: is empty", dir.Path("commondir"))
	}
	path := joinPath(gitDir, string(untilNUL(bytes.TrimRight(text, "\r\n"))))
	if common, err = realPath(path); err != nil {
		return "", false, fmt.Errorf("%s: %w", dir.Path("commondir"), err)
	}
	if err := mayFollow(gitDir, common); err != nil {
		return "", false, fmt.Errorf("%s: %w", dir.Path("commondir"), err)
	}
	return common, true, nil
}

// readGitFile reads a .git file, "gitdir: <path>", and gives the real path of the git dir it names.
func (o *Options) readGitFile(path string) (string, error) {
	dir, err := vfs.Open(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	text, err := dir.ReadFile(filepath.Base(path), maxGitFile)
	if err != nil {
		return "", err
	}
	target, err := parseGitFile(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	real, err := realPath(joinPath(filepath.Dir(path), target))
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if err := o.isGitDir(real); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if err := mayFollow(path, real); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return real, nil
}

var (
	errNoGitDir = errors.New(`does not begin with "gitdir: "`)
	errNoTarget = errors.New("names no folder")
)

// parseGitFile reads the text of a .git file, "gitdir: <path>" and line ends.
func parseGitFile(text []byte) (target string, err error) {
	rest, found := bytes.CutPrefix(text, []byte("gitdir: "))
	if !found {
		return "", errNoGitDir
	}
	target = string(untilNUL(bytes.TrimRight(rest, "\r\n")))
	if target == "" {
		return "", errNoTarget
	}
	return target, nil
}

// untilNUL is as much of b as a C string shows.
func untilNUL(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}
