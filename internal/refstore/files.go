package refstore

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"refaudit/finding"
	"refaudit/internal/refname"
	"refaudit/internal/vfs"
	"refaudit/loose"
)

// looseRef is one loose ref. Where git reads no value from it, it hides a packed one all the same.
type looseRef struct {
	name   string
	value  loose.Value
	pos    finding.Pos
	unread bool // it is no file, or a link to none: git's listing passes over it, and what is packed is served
}

// files reads loose refs first, then packed-refs, as git does: a ref that is packed in between
// is seen twice, not never.
func (v *visit) files() error {
	if err := v.rootRefs(); err != nil {
		return err
	}
	if v.place.main && v.head == elsewhere {
		v.sum.unread(v.place.label("HEAD") + " says that the refs are kept elsewhere, in a reftable or another folder, and the configuration doesn't say where: extensions.refStorage was lost")
	}
	if err := v.headless(); err != nil {
		return err
	}
	if err := v.sharedRefs(); err != nil {
		return err
	}
	var refs []looseRef
	if err := v.folder("refs", &refs); err != nil {
		return err
	}
	sort.Slice(refs, func(i, j int) bool { return refs[i].name < refs[j].name })
	for i := range refs {
		if err := v.visitLoose(&refs[i], false); err != nil {
			return err
		}
	}
	if v.place.main {
		hiders := slices.DeleteFunc(refs, func(l looseRef) bool { return l.unread })
		if err := v.packed(hiders); err != nil {
			return err
		}
	}
	if v.o.Deep {
		return v.leftovers(nil)
	}
	return nil
}

// headless tells of a linked worktree without a HEAD, which is sound only while git makes it.
func (v *visit) headless() error {
	if v.place.main || v.headSeen || v.place.fresh {
		return nil
	}
	f := finding.New(finding.WorktreeHeadMissing, finding.Pos{File: v.place.label("HEAD")}, "the worktree has no HEAD: git says nothing of it, and gc may delete the commit that it stood at")
	f.Ref = finding.RefName(v.place.prefix + "HEAD")
	if err := v.report(f); err != nil {
		return err
	}
	return v.brokenRef(&Ref{Name: []byte(f.Ref), Source: Loose, Pos: f.Pos, Root: true}, gone)
}

// elsewhere is what git writes into HEAD where the refs are not.
const elsewhere = "refs/heads/.invalid"

func (v *visit) visitLoose(l *looseRef, root bool) error {
	r := Ref{Name: []byte(l.name), Source: Loose, Pos: l.pos, PeelPos: l.pos, Root: root}
	if !root {
		if v.misplaced(l) || l.unread {
			return nil
		}
		v.sum.Refs++
	}
	if why := v.brokenLoose(l, root); why != "" {
		return v.brokenRef(&r, why) // a finding says so
	}
	switch l.value.Kind {
	case loose.Object:
		if l.value.OID.IsZero() {
			return nil
		}
		r.OID = l.value.OID.Bytes()
	case loose.Symref:
		r.Target = []byte(l.value.Target)
	default:
		return nil
	}
	return v.give(&r)
}

// rootRefs reads HEAD and its like in the git dir itself. Only HEAD is given to the visitor.
func (v *visit) rootRefs() error {
	list, err := v.place.root.ReadDir(".")
	if err != nil {
		return v.cantRead("", err)
	}
	for _, e := range list {
		if e.IsDir() || !refname.IsRoot([]byte(e.Name())) {
			continue
		}
		l, ok, err := v.readLoose(e.Name(), true)
		if err != nil {
			return err
		}
		if ok && e.Name() == "HEAD" {
			v.headSeen, v.head = true, l.value.Target
			if err := v.visitLoose(&l, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// sharedRefs tells of a refs folder that lies outside the repository: whoever else has it, a
// repair here changes what they see.
func (v *visit) sharedRefs() error {
	st, err := v.place.root.Lstat("refs")
	if err != nil || st.Mode()&fs.ModeSymlink == 0 {
		return nil // an absent one is told of when it is listed
	}
	real, err := filepath.EvalSymlinks(v.place.root.Path("refs"))
	if err != nil {
		return v.cantRead("refs", err)
	}
	root, err := filepath.EvalSymlinks(v.place.root.Root())
	if err != nil {
		return v.cantRead("refs", err)
	}
	if strings.HasPrefix(real, root+string(os.PathSeparator)) {
		return nil
	}
	return v.report(finding.New(finding.RefsDirShared, finding.Pos{File: v.place.label("refs")}, "is a symbolic link that leads out of the repository, to %s", real))
}

// folder reads the loose refs in a folder below refs/ and in those below it.
func (v *visit) folder(dir string, refs *[]looseRef) error {
	if err := v.ctx.Err(); err != nil {
		return err
	}
	list, err := v.place.root.ReadDir(dir)
	switch {
	case vfs.Missing(err) && (dir != "refs" || !v.place.main):
		return nil // gone since its parent was listed; or a worktree without refs of its own
	case err != nil:
		return v.cantRead(dir, err)
	}
	for _, e := range list {
		name := dir + "/" + e.Name()
		if e.IsDir() {
			if err := v.folder(name, refs); err != nil {
				return err
			}
			continue
		}
		if loose.IsLock(e.Name()) {
			continue
		}
		l, ok, err := v.readLoose(name, false)
		if err != nil {
			return err
		}
		switch {
		case !ok:
		case refname.Valid([]byte(l.name), 0):
			*refs = append(*refs, l)
		default:
			if err := v.misnamed(&l); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxLoose is more than any ref needs: the longest names that systems allow are shorter.
const maxLoose = 1 << 20

// readLoose reads and judges one loose ref; false where there is none any more.
func (v *visit) readLoose(name string, root bool) (looseRef, bool, error) {
	stat := v.place.root.Lstat
	if root {
		stat = v.place.root.Stat
	}
	st, err := stat(name)
	if vfs.Missing(err) && !root {
		return looseRef{}, false, nil
	}
	link, linked := v.rootLink(name, root)
	if vfs.Missing(err) && linked {
		return looseRef{name: v.place.prefix + name, value: link, pos: finding.Pos{File: v.place.label(name)}}, true, nil
	}
	if err != nil {
		return looseRef{}, false, v.cantRead(name, err)
	}
	file := loose.File{Name: v.place.prefix + name, Mode: st.Mode()}
	if st.Mode()&fs.ModeSymlink != 0 {
		if file.Link, err = v.place.root.Readlink(name); err != nil {
			return looseRef{}, false, v.cantRead(name, err)
		}
		file.Referent = v.referent(name, file.Link)
	}
	unread := !root && st.Mode()&fs.ModeSymlink != 0 && v.leadsToNone(name)
	content, err := v.place.root.ReadFile(name, maxLoose)
	switch {
	case err == nil:
		file.Content = content
	case unread || errors.Is(err, vfs.ErrNotRegular):
		unread = true
	case vfs.Missing(err):
		return looseRef{}, false, nil
	default:
		return looseRef{}, false, v.cantRead(name, err)
	}
	value, err := loose.Verify(file, v.repo.Format, loose.Options{Severity: v.o.Severity}, v.report)
	if linked {
		value = link
	}
	return looseRef{name: file.Name, value: value, unread: unread, pos: finding.Pos{File: v.place.label(name), Line: 1, Length: int64(len(file.Content)), Placed: true}}, true, err
}

// leadsToNone tells whether a symbolic link leads to no file. Of a folder behind one git lists the files as refs.
func (v *visit) leadsToNone(name string) bool {
	st, err := v.place.root.Stat(name)
	if err != nil {
		return !errors.Is(err, fs.ErrPermission)
	}
	if st.IsDir() {
		v.sum.unread(v.place.label(name) + " is a symbolic link to a folder, which is not followed: git lists the files there as refs")
	}
	return !st.Mode().IsRegular()
}

// rootLink is what a root ref stands for that is a symbolic link (core.preferSymlinkRefs): git takes it from the text of the
// link, also where no file has that name, since the ref is packed or unborn. git's checks look at the file behind it alone.
func (v *visit) rootLink(name string, root bool) (value loose.Value, ok bool) {
	if !root {
		return value, false
	}
	text, err := v.place.root.Readlink(name)
	if err != nil {
		return value, false // no link
	}
	return loose.ParseLink(text)
}

// referent is what a symbolic link leads to, as git names it: below the git dir through which the
// repository was opened, whichever worktree has the link.
func (v *visit) referent(name, link string) string {
	path := link
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(v.place.root.Path(name)), filepath.FromSlash(link))
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	return loose.Referent(v.repo.GitDir, path)
}

// overlay goes through the sorted loose refs beside the names of packed-refs.
type overlay struct {
	loose    []looseRef
	at       int
	prev     []byte
	unsorted bool                 // packed-refs is: what comes is looked up by name
	byName   map[string]*looseRef // of loose, then
}

// next takes the next packed name and gives the loose ref that hides it, nil if none does; pass gets the loose refs that sort before it.
func (o *overlay) next(name []byte, pass func(*looseRef) error) (hider *looseRef, err error) {
	if !o.unsorted && bytes.Compare(name, o.prev) < 0 {
		o.unsorted, o.byName = true, make(map[string]*looseRef, len(o.loose))
		for i := range o.loose {
			o.byName[o.loose[i].name] = &o.loose[i]
		}
	}
	if o.unsorted {
		return o.byName[string(name)], nil
	}
	if len(o.loose) > 0 {
		o.prev = append(o.prev[:0], name...)
	}
	for ; o.at < len(o.loose); o.at++ {
		l := &o.loose[o.at]
		if l.name == string(name) {
			return l, nil
		}
		if l.name > string(name) {
			return nil, nil
		}
		if err := pass(l); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (o *overlay) rest(pass func(*looseRef) error) error {
	if o.unsorted {
		return nil
	}
	for ; o.at < len(o.loose); o.at++ {
		if err := pass(&o.loose[o.at]); err != nil {
			return err
		}
	}
	return nil
}
