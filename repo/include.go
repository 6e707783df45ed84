package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"refaudit/internal/gitconfig"
	"refaudit/internal/vfs"
	"refaudit/internal/wildmatch"
)

// maxIncludeDepth is git's.
const maxIncludeDepth = 10

var (
	errIncludeDepth    = fmt.Errorf("includes are nested more than %d deep, perhaps in a circle", maxIncludeDepth)
	errIncludeRelative = errors.New("a relative include must come from a file")
	errIncludedURL     = errors.New(`a remote's URL can't be set in a file that an includeIf "hasconfig:remote.*.url:" depends on`)
	errOnBranch        = errors.New("the branch that HEAD is on could not be told")
)

// remoteURLs are the URLs of all remotes, for includeIf hasconfig.
type remoteURLs struct{ urls []string }

// entry takes one setting in and, if it is an include that applies, the file it names.
func (r *configReader) entry(e gitconfig.Entry, src source) error {
	v := Value{Key: e.Key, Text: e.Value, NoValue: e.NoValue, Origin: Origin{src.scope, src.path, e.Line}}
	section, sub, name := gitconfig.SplitKey(e.Key)
	if r.collecting {
		if section == "remote" && name == "url" && len(e.Key) > len("remote.url") {
			if r.forbidURLs {
				return &BadValue{v, errIncludedURL}
			}
			r.urls.urls = append(r.urls.urls, e.Value)
		}
	} else {
		r.out.add(v)
	}
	if e.Key == "include.path" {
		return r.include(v, src)
	}
	if section != "includeif" || name != "path" {
		return nil
	}
	applies, err := r.applies(sub, v, src)
	if err != nil || !applies {
		return err
	}
	outer := r.forbidURLs
	r.forbidURLs = outer || r.collecting
	err = r.include(v, src)
	r.forbidURLs = outer
	return err
}

// include reads the file that a setting names. One that isn't there is no error.
func (r *configReader) include(v Value, src source) error {
	if v.NoValue {
		return &BadValue{v, errNoValue}
	}
	path, ok := expandPath(v.Text, r.o.Env, false)
	if !ok {
		return &BadValue{v, errNoHome}
	}
	if !filepath.IsAbs(path) {
		if src.path == "" {
			return &BadValue{v, errIncludeRelative}
		}
		path = besides(src.path) + path
	}
	data, err := r.readIncluded(path, src)
	switch {
	case vfs.Missing(err):
		return nil
	case errors.Is(err, vfs.ErrNotRegular), src.within != nil && errors.Is(err, vfs.ErrOutside):
		r.refuse(v, err)
		return nil
	case err != nil:
		return fmt.Errorf("%s, included by %s: %w", path, v.Origin, err)
	}
	if r.depth++; r.depth > maxIncludeDepth {
		return fmt.Errorf("%s, included by %s: %w", path, v.Origin, errIncludeDepth)
	}
	err = r.parse(source{path: path, scope: src.scope, within: src.within}, data)
	r.depth--
	return err
}

// besides is what a path must be put behind to lie in the same folder as file.
func besides(file string) string {
	end := len(file)
	for end > 0 && !os.IsPathSeparator(file[end-1]) {
		end--
	}
	return file[:end]
}

func (r *configReader) readIncluded(path string, src source) ([]byte, error) {
	if src.within != nil {
		return src.within.ReadPath(path, maxConfigBytes)
	}
	if path == os.DevNull {
		return nil, nil
	}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() && !st.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: vfs.ErrNotRegular} // a FIFO would never end
	}
	if src.scope == ScopeSystem || src.scope == ScopeGlobal {
		return r.o.UserFiles.read(path)
	}
	return readAnyFile(path)
}

func (r *configReader) refuse(v Value, err error) {
	if !r.collecting {
		r.out.Refused = append(r.out.Refused, fmt.Errorf("%s of %s is not followed: %w", v.Key, v.Origin, err))
	}
}

// applies decides an includeIf. A condition that is not known is false, as in git.
func (r *configReader) applies(condition string, v Value, src source) (bool, error) {
	if glob, ok := strings.CutPrefix(condition, "gitdir:"); ok {
		return r.pathMatches(glob, r.gitDir, r.namedGitDir, false, v, src)
	}
	if glob, ok := strings.CutPrefix(condition, "gitdir/i:"); ok {
		return r.pathMatches(glob, r.gitDir, r.namedGitDir, true, v, src)
	}
	if glob, ok := strings.CutPrefix(condition, "worktree:"); ok { // since git 2.56
		return r.pathMatches(glob, r.workTree, r.workTree, false, v, src)
	}
	if glob, ok := strings.CutPrefix(condition, "worktree/i:"); ok {
		return r.pathMatches(glob, r.workTree, r.workTree, true, v, src)
	}
	if glob, ok := strings.CutPrefix(condition, "onbranch:"); ok {
		return r.branchMatches(glob, v)
	}
	if glob, ok := strings.CutPrefix(condition, "hasconfig:remote.*.url:"); ok {
		return r.urlMatches(glob, v)
	}
	return false, nil
}

// pathMatches compares a glob with a folder, first by its real path and then by the one it was named by.
func (r *configReader) pathMatches(glob, real, named string, fold bool, v Value, src source) (bool, error) {
	if real == "" {
		return false, nil
	}
	if expanded, ok := expandPath(glob, r.o.Env, true); ok {
		glob = expanded
	}
	literal := 0 // bytes of glob that are a path and no glob
	switch {
	case strings.HasPrefix(glob, "./"):
		if src.path == "" {
			return false, &BadValue{v, errIncludeRelative}
		}
		file, err := realPath(src.path)
		if err != nil {
			return false, err
		}
		dir := strings.TrimSuffix(filepath.ToSlash(filepath.Dir(file)), "/")
		glob = dir + glob[1:]
		literal = len(dir) + 1
	case !filepath.IsAbs(glob):
		glob = "**/" + glob
	}
	glob = wholeFolder(glob)
	for _, path := range []string{filepath.ToSlash(real), filepath.ToSlash(named)} {
		if !hasPrefix(path, glob[:literal], fold) {
			return false, nil
		}
		if m, err := r.match(glob[literal:], path[literal:], fold, v); m || err != nil {
			return m, err
		}
	}
	return false, nil
}

// wholeFolder makes a glob that ends in a slash one for all that the folder holds.
func wholeFolder(glob string) string {
	if strings.HasSuffix(glob, "/") {
		return glob + "**"
	}
	return glob
}

func hasPrefix(path, prefix string, fold bool) bool {
	if len(path) < len(prefix) {
		return false
	}
	return path[:len(prefix)] == prefix || fold && strings.EqualFold(path[:len(prefix)], prefix)
}

// match refuses the include where a glob is too long to be tried.
func (r *configReader) match(glob, text string, fold bool, v Value) (bool, error) {
	flags := wildmatch.Path
	if fold {
		flags |= wildmatch.Fold
	}
	m, err := wildmatch.Match([]byte(glob), []byte(text), flags)
	if err != nil {
		r.refuse(v, err)
		return false, nil
	}
	return m, nil
}

func (r *configReader) branchMatches(glob string, v Value) (bool, error) {
	if r.branch == nil {
		return false, nil
	}
	branch, on, err := r.branch()
	if err != nil {
		r.refuse(v, fmt.Errorf("%w: %w", errOnBranch, err))
		return false, nil
	}
	if !on {
		return false, nil
	}
	return r.match(wholeFolder(glob), branch, false, v)
}

// urlMatches compares a glob with the URLs of all remotes, wherever they are set. To learn them all
// files are read once, as if every such condition held; a file that hangs on one can't set a URL.
func (r *configReader) urlMatches(glob string, v Value) (bool, error) {
	if r.collecting {
		return true, nil
	}
	if r.urls == nil {
		collector := *r
		collector.urls = &remoteURLs{}
		collector.collecting, collector.depth, collector.files, collector.bytes = true, 0, 0, 0
		if _, err := collector.read(); err != nil {
			return false, err
		}
		r.urls = collector.urls
	}
	for _, url := range r.urls.urls {
		if m, err := r.match(glob, url, false, v); m || err != nil {
			return m, err
		}
	}
	return false, nil
}
