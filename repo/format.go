package repo

import (
	"fmt"
	"math"
	"strings"

	"refaudit/internal/gitconfig"
	"refaudit/internal/vfs"
	"refaudit/oid"
)

// Unsupported is a repository in a format that refaudit doesn't know: it is never guessed at.
type Unsupported struct {
	Path string // the git dir or the file that says so; "" for the environment
	What string
}

func (e *Unsupported) Error() string {
	if e.Path == "" {
		return "unsupported repository format: " + e.What
	}
	return fmt.Sprintf("%s: unsupported repository format: %s", e.Path, e.What)
}

// format is what a repository's own config says of how it is to be read.
// Specification: Documentation/technical/repository-version.adoc in git.
type format struct {
	version           int64
	unknown, v1Only   []string // extensions, in the order in which they stand
	objects, compat   oid.Format
	refs              string // backend
	refsPayload       string
	refsHavePayload   bool
	partialClone      string
	preciousObjects   bool
	worktreeConfig    bool
	relativeWorktrees bool
	bare              *bool
	workTree          string
}

// noVersion is a config that doesn't say which version it is: its extensions don't count.
const noVersion = -1

func freshFormat() format {
	return format{version: noVersion, objects: oid.SHA1, refs: "files"}
}

// readFormat reads the common dir's config, and no other file, as git does: an include can't
// change the format. linked tells that the git dir has another common dir.
func readFormat(git, common *vfs.Dir, linked bool, texts configTexts) (format, error) {
	f := freshFormat()
	if err := f.read(common, "config", texts, f.setting); err != nil {
		return f, err
	}
	if f.version == noVersion {
		bare, workTree := f.bare, f.workTree
		f = freshFormat()
		f.bare, f.workTree = bare, workTree
	}
	if err := f.verify(git.Root()); err != nil {
		return f, err
	}
	if f.worktreeConfig {
		return f, f.read(git, "config.worktree", texts, f.worktreeSetting)
	}
	if linked {
		f.bare, f.workTree = nil, "" // the main worktree's, not this one's
	}
	return f, nil
}

func (f *format) read(dir *vfs.Dir, name string, texts configTexts, setting func(Value) error) error {
	data, err := texts.read(dir, name)
	if vfs.Missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return gitconfig.Parse(dir.Path(name), data, func(e gitconfig.Entry) error {
		return setting(Value{Key: e.Key, Text: e.Value, NoValue: e.NoValue, Origin: Origin{ScopeLocal, dir.Path(name), e.Line}})
	})
}

func (f *format) setting(v Value) (err error) {
	if v.Key == "core.repositoryformatversion" {
		f.version, err = v.int(math.MaxInt32)
		return err
	}
	ext, found := strings.CutPrefix(v.Key, "extensions.")
	if !found {
		return f.worktreeSetting(v)
	}
	known, err := f.extensionOfV0(ext, v)
	if known || err != nil {
		return err
	}
	known, err = f.extensionOfV1(ext, v)
	switch {
	case err != nil:
		return err
	case known:
		f.v1Only = append(f.v1Only, ext)
	default:
		f.unknown = append(f.unknown, ext)
	}
	return nil
}

func (f *format) worktreeSetting(v Value) error {
	switch v.Key {
	case "core.bare":
		bare, err := v.Bool()
		f.bare = &bare
		return err
	case "core.worktree":
		if v.NoValue {
			return &BadValue{v, errNoValue}
		}
		f.workTree = v.Text
	}
	return nil
}

// extensionOfV0 reads an extension that counts in every version: there are no others than these.
func (f *format) extensionOfV0(ext string, v Value) (known bool, err error) {
	switch ext {
	case "noop":
	case "preciousobjects":
		f.preciousObjects, err = v.Bool()
	case "partialclone":
		f.partialClone, err = textOf(v)
	case "worktreeconfig":
		f.worktreeConfig, err = v.Bool()
	default:
		return false, nil
	}
	return true, err
}

// extensionOfV1 reads an extension that may stand only in version 1.
func (f *format) extensionOfV1(ext string, v Value) (known bool, err error) {
	switch ext {
	case "noop-v1":
	case "objectformat":
		f.objects, err = objectFormat(v)
	case "compatobjectformat":
		if f.compat != 0 {
			return true, &BadValue{v, fmt.Errorf("it has been set to %s before", f.compat)}
		}
		f.compat, err = objectFormat(v)
	case "refstorage":
		if v.NoValue {
			return true, &BadValue{v, errNoValue}
		}
		f.refs, f.refsPayload, f.refsHavePayload, err = parseRefStorage(v.Text)
		if err != nil {
			err = &BadValue{v, err}
		}
	case "relativeworktrees":
		f.relativeWorktrees, err = v.Bool()
	case "submodulepathconfig":
		_, err = v.Bool()
	default:
		return false, nil
	}
	return true, err
}

func textOf(v Value) (string, error) {
	if v.NoValue {
		return "", &BadValue{v, errNoValue}
	}
	return v.Text, nil
}

func objectFormat(v Value) (oid.Format, error) {
	name, err := textOf(v)
	if err != nil {
		return 0, err
	}
	f, ok := oid.ParseFormat(name)
	if !ok {
		return 0, &Unsupported{v.File, fmt.Sprintf("extensions.%s is %q", v.Key[len("extensions."):], name)}
	}
	return f, nil
}

func (f *format) verify(gitDir string) error {
	switch {
	case f.version > 1:
		return &Unsupported{gitDir, fmt.Sprintf("version %d, and the highest that is known is 1", f.version)}
	case f.version == 1 && len(f.unknown) > 0:
		return &Unsupported{gitDir, "unknown extension " + strings.Join(f.unknown, ", ")}
	case f.version == 0 && len(f.v1Only) > 0:
		return &Unsupported{gitDir, "version is 0, but it has an extension of version 1: " + strings.Join(f.v1Only, ", ")}
	}
	return nil
}
