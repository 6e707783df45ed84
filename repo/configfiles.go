package repo

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"

	"refaudit/internal/gitconfig"
	"refaudit/internal/vfs"
)

// Bounds on what one configuration reads, in all its files together: a chain of includes ten deep
// could otherwise name a file again and again for ever.
const (
	maxConfigFiles = 1000
	maxConfigBytes = 64 << 20
)

var errConfigTooLarge = fmt.Errorf("the configuration has more than %d files or %d MiB", maxConfigFiles, maxConfigBytes>>20)

// UserConfig is the configuration that holds outside any repository: system, global and
// command, which all are protected.
func UserConfig(o Options) (*Config, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return (&configReader{o: o}).read()
}

// configReader reads the files that git reads, in its order. The fields of a repository are empty where there is none.
type configReader struct {
	o Options
	// The repository's folders: as they are, and the git dir also as it was named.
	gitDir, namedGitDir, workTree string
	git, common                   *vfs.Dir
	worktreeConfig                bool                         // config.worktree is read too
	texts                         configTexts                  // of its files
	branch                        func() (string, bool, error) // short name of the branch that HEAD is on

	files, bytes int
	depth        int
	out          *Config
	urls         *remoteURLs // of includeIf hasconfig
	collecting   bool        // this reading gathers the remote URLs for that
	forbidURLs   bool        // the file being read may not set one
}

// source is a config file that is being read.
type source struct {
	path  string
	scope Scope
	// within restricts what its includes may lead to: the repository that it belongs to, where the
	// reader does not own it. nil: anything.
	within *vfs.Dir
}

func (r *configReader) read() (*Config, error) {
	r.out = newConfig(r.o.Env)
	if err := r.userFiles(); err != nil {
		return nil, err
	}
	if r.common != nil {
		if err := r.repositoryFile(r.common, "config", ScopeLocal); err != nil {
			return nil, err
		}
		if r.worktreeConfig {
			if err := r.repositoryFile(r.git, "config.worktree", ScopeWorktree); err != nil {
				return nil, err
			}
		}
	}
	if err := r.environment(); err != nil {
		return nil, err
	}
	return r.out, nil
}

// userFiles reads the files of the system and of the user.
func (r *configReader) userFiles() error {
	env := r.o.Env
	noSystem, err := env.bool("GIT_CONFIG_NOSYSTEM", false)
	if err != nil {
		return err
	}
	if !noSystem {
		path, set := env("GIT_CONFIG_SYSTEM")
		if !set {
			path = systemConfig
		}
		if err := r.userFile(path, ScopeSystem, false); err != nil {
			return err
		}
	}
	if path, set := env("GIT_CONFIG_GLOBAL"); set {
		return r.userFile(path, ScopeGlobal, true)
	}
	home, hasHome := env("HOME")
	xdg := ""
	if dir := env.get("XDG_CONFIG_HOME"); dir != "" {
		xdg = dir + "/git/config"
	} else if hasHome {
		xdg = home + "/.config/git/config"
	}
	if err := r.userFile(xdg, ScopeGlobal, true); err != nil {
		return err
	}
	if !hasHome {
		return nil
	}
	return r.userFile(home+"/.gitconfig", ScopeGlobal, true)
}

// userFile reads a file that whoever runs us has chosen: it may be a device, as /dev/null often is.
func (r *configReader) userFile(path string, scope Scope, mayBeDenied bool) error {
	if path == "" {
		return nil
	}
	path = r.o.abs(path)
	data, err := r.o.UserFiles.read(path)
	switch {
	case vfs.Missing(err), mayBeDenied && errors.Is(err, fs.ErrPermission):
		return nil
	case err != nil:
		return err
	}
	return r.parse(source{path: path, scope: scope}, data)
}

// UserFiles remember the configuration files of the system and of the user, and what these include, as they were
// when they were first read: for a command that looks once at many repositories, all of which then go by the same.
// Whoever goes on to look must take new ones each time, or would be blind to changes. It is safe for concurrent use.
type UserFiles struct {
	mu    sync.Mutex
	texts map[string]configText // by path; the only error is that there is no such file
}

// read reads a file, if that was not done yet. Of nil it always does.
func (u *UserFiles) read(path string) ([]byte, error) {
	if u == nil {
		return readAnyFile(path)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if text, known := u.texts[path]; known {
		return text.data, text.err
	}
	data, err := readAnyFile(path)
	if err == nil || vfs.Missing(err) {
		if u.texts == nil {
			u.texts = map[string]configText{}
		}
		u.texts[path] = configText{data, err}
	}
	return data, err
}

// readAnyFile reads a file whole. Folders aren't files, though they can be opened.
func readAnyFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxConfigBytes {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errConfigTooLarge}
	}
	return data, nil
}

// configTexts are the repository's own configuration files, by path. While a repository is opened they are read
// for its format, then for its settings: both are to be of one text.
type configTexts map[string]configText

// configText is what the reading of a file gave.
type configText struct {
	data []byte
	err  error
}

func (t configTexts) read(dir *vfs.Dir, name string) ([]byte, error) {
	path := dir.Path(name)
	text, known := t[path]
	if !known {
		text.data, text.err = dir.ReadFile(name, maxConfigBytes)
		t[path] = text
	}
	return text.data, text.err
}

func (r *configReader) repositoryFile(dir *vfs.Dir, name string, scope Scope) error {
	data, err := r.texts.read(dir, name)
	if vfs.Missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	src := source{path: dir.Path(name), scope: scope}
	if !ownedByReader(dir, src.path) {
		src.within = dir
	}
	return r.parse(src, data)
}

// ownedByReader tells whether folder and file are our own: then there is nobody to be protected from.
func ownedByReader(dir *vfs.Dir, path string) bool {
	st, err := os.Stat(path)
	return err == nil && int(dir.Owner()) == os.Geteuid() && int(vfs.Owner(st)) == os.Geteuid()
}

func (r *configReader) parse(src source, data []byte) error {
	r.files++
	r.bytes += len(data)
	if r.files > maxConfigFiles || r.bytes > maxConfigBytes {
		return fmt.Errorf("%s: %w", src.path, errConfigTooLarge)
	}
	return gitconfig.Parse(src.path, data, func(e gitconfig.Entry) error {
		return r.entry(e, src)
	})
}

// environment reads the settings that come with the command.
func (r *configReader) environment() error {
	src := source{scope: ScopeCommand}
	each := func(e gitconfig.Entry) error { return r.entry(e, src) }
	if count, set := r.o.Env("GIT_CONFIG_COUNT"); set {
		if err := r.countedSettings(count, each); err != nil {
			return err
		}
	}
	if text, set := r.o.Env("GIT_CONFIG_PARAMETERS"); set {
		if err := gitconfig.ParseParameters(text, each); err != nil {
			return fmt.Errorf("GIT_CONFIG_PARAMETERS: %w", err)
		}
	}
	return nil
}

func (r *configReader) countedSettings(count string, each func(gitconfig.Entry) error) error {
	n := int64(0)
	if count != "" {
		var err error
		if n, err = strconv.ParseInt(count, 10, 32); err != nil || n < 0 {
			return fmt.Errorf("GIT_CONFIG_COUNT: %q is not a count", count)
		}
	}
	for i := range n {
		keyName := fmt.Sprintf("GIT_CONFIG_KEY_%d", i)
		key, set := r.o.Env(keyName)
		if !set {
			return fmt.Errorf("GIT_CONFIG_COUNT is %d, but %s is not set", n, keyName)
		}
		valueName := fmt.Sprintf("GIT_CONFIG_VALUE_%d", i)
		value, set := r.o.Env(valueName)
		if !set {
			return fmt.Errorf("GIT_CONFIG_COUNT is %d, but %s is not set", n, valueName)
		}
		canonical, err := gitconfig.CanonicalKey(key)
		if err != nil {
			return fmt.Errorf("%s: %w", keyName, err)
		}
		if err := each(gitconfig.Entry{Key: canonical, Value: value}); err != nil {
			return err
		}
	}
	return nil
}
