package repair

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"refaudit/internal/journal"
	"refaudit/internal/lockfile"
	"refaudit/internal/vfs"
)

// replace writes new content, enters the change in the journal, and publishes it.
func (h *packedHold) replace(ctx context.Context, src *source, changes []Change, undoes string, write func(io.Writer) error) error {
	after, err := h.stage(src, write)
	if err != nil {
		return err
	}
	e, err := h.flush(src, after, changes, undoes)
	if err != nil {
		return err
	}
	err = h.publish(ctx, src, after, e)
	if h.out.Journal != "" { // it is in place, whatever else went wrong
		h.out.Changes = append(h.out.Changes, changes...)
	}
	if err != nil {
		return err
	}
	if err := h.readBack(ctx, e, after, write); err != nil {
		return err
	}
	if err := h.Repo.close(e, journal.Done); err != nil {
		h.notice("the journal's entry %s stays open: %v", e.ID, err)
	}
	return nil
}

// stage writes new content to the staging file.
func (h *packedHold) stage(src *source, write func(io.Writer) error) (*written, error) {
	h.Repo.step("write")
	temp, _, err := h.lock.Stage()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.Label, err)
	}
	after := &written{temp: temp, hash: sha256.New(), keep: src.mem != nil}
	if after.keep {
		after.mem = make([]byte, 0, src.info.Size+src.info.Size/16+4096) // little is added, as a rule
	}
	if err := write(after); err != nil {
		return nil, h.refused(err)
	}
	return after, nil
}

// publish begins the entry and puts the flushed staging file in the file's place.
func (h *packedHold) publish(ctx context.Context, src *source, after *written, e *journal.Entry) error {
	if err := after.temp.Later(src.info.ModTime); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	h.Repo.step("journal")
	if err := h.Repo.Journal.Begin(e); err != nil {
		return err
	}
	h.Repo.step("publish")
	err := after.temp.Replace()
	if err != nil && !errors.Is(err, lockfile.ErrNotDurable) {
		return errors.Join(fmt.Errorf("%s: %w", h.Label, err), h.Repo.Journal.Settle(e.ID, journal.Open, journal.Void))
	}
	h.out.Journal = e.ID
	if err != nil {
		return fmt.Errorf("%s: %w", h.Label, err)
	}
	return nil
}

// written is new content on its way to the staging file.
type written struct {
	temp *lockfile.Temp
	hash interface {
		io.Writer
		Sum([]byte) []byte
	}
	size int64
	keep bool
	mem  []byte
}

func (w *written) Write(b []byte) (int, error) {
	n, err := w.temp.Write(b)
	w.size += int64(n)
	if w.keep {
		w.mem = append(w.mem, b[:n]...)
	} else {
		w.hash.Write(b[:n])
	}
	return n, err
}

func (w *written) whole() (out journal.Whole) {
	if w.keep {
		return journal.Whole{SHA256: sha256.Sum256(w.mem), Size: w.size}
	}
	w.hash.Sum(out.SHA256[:0])
	out.Size = w.size
	return out
}

// flush syncs the staging file, and at the same time works out how to get back.
func (h *packedHold) flush(src *source, after *written, changes []Change, undoes string) (*journal.Entry, error) {
	e := &journal.Entry{Kind: journal.PackedRefs, GitDir: h.Repo.GitDir, Store: h.path, Format: h.Repo.Format, Undoes: undoes, Made: []string{filepath.Base(h.staging())}}
	for _, c := range changes {
		if c.Ref != "" {
			e.Records = append(e.Records, journal.Record{Ref: c.Ref, ID: c.ID, OID: c.OID, Before: c.Before, After: c.After})
		}
	}
	synced, hashed := make(chan error, 1), make(chan journal.Whole, 1)
	go func() { synced <- after.temp.Flush() }()
	go func() { hashed <- after.whole() }()
	err := h.wayBack(e, src, after)
	e.After = <-hashed
	return e, errors.Join(<-synced, err)
}

func (h *packedHold) wayBack(e *journal.Entry, src *source, after *written) error {
	var now io.Reader = bytes.NewReader(after.mem)
	if !after.keep {
		r, err := h.Repo.FS.Open(h.staging())
		if err != nil {
			return err
		}
		defer r.Close()
		now = io.NewSectionReader(r, 0, after.size)
	}
	var err error
	e.Pieces, e.Before, err = wayBack(src.stream(), now)
	return err
}

// readBack reads the file again, as it is in its place now, and writes it once more should it be
// another than what was written.
func (h *packedHold) readBack(ctx context.Context, e *journal.Entry, after *written, write func(io.Writer) error) error {
	wrong := h.compare(e, after)
	if wrong == nil {
		return nil
	}
	h.notice("%s: read again after repair %s, it is not what was written: %v", h.Label, e.ID, wrong)
	temp, _, err := h.lock.Stage()
	if err == nil {
		after.temp, after.size, after.mem = temp, 0, nil
		after.hash = sha256.New()
		err = write(after)
	}
	if err == nil {
		err = temp.Flush()
	}
	if err == nil {
		err = temp.Replace()
	}
	if err == nil {
		err = h.compare(e, after)
	}
	if err != nil {
		return fmt.Errorf("%s: repair %s: %w; and it could not be mended: %w", h.Label, e.ID, wrong, err)
	}
	h.notice("%s: mended forward", h.Label)
	return ctx.Err()
}

func (h *packedHold) compare(e *journal.Entry, after *written) error {
	now, err := openSource(h.Repo.FS, h.path)
	if err != nil {
		return err
	}
	defer now.Close()
	same := now.info.Size == e.After.Size
	switch {
	case same && now.mem != nil && after.keep:
		same = bytes.Equal(now.mem, after.mem)
	case same:
		sum := sha256.New()
		if _, err := io.Copy(sum, now.stream()); err != nil {
			return err
		}
		same = bytes.Equal(sum.Sum(nil), e.After.SHA256[:])
	}
	if !same {
		return fmt.Errorf("%d bytes, other than the %d that were written", now.info.Size, e.After.Size)
	}
	return nil
}

// wholeOf tells one content of a file from all others.
func wholeOf(fsys vfs.FS, path string) (journal.Whole, error) {
	src, err := openSource(fsys, path)
	if err != nil {
		return journal.Whole{}, err
	}
	defer src.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, src.stream())
	w := journal.Whole{Size: n}
	sum.Sum(w.SHA256[:0])
	return w, err
}
