package fleet

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"refaudit/internal/state"
)

// Run is how the last scan that remembered anything has ended. Its file holds numbers alone, and everyone may read it.
type Run struct {
	Version int       `json:"refaudit-run"`
	End     time.Time `json:"end"`
	Exit    int       `json:"exit"`
	Signal  string    `json:"signal,omitempty"`
	Stopped string    `json:"stopped,omitempty"`
}

const runFile = "last-scan.json"

// SaveRun notes the end of a scan.
func SaveRun(folder *state.Folder, r Run) error {
	r.Version = 1
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return folder.Write(runFile, state.Public, func(w io.Writer) error { _, err := w.Write(append(b, '\n')); return err })
}

// LastRun is the last scan; an error of fs.ErrNotExist if there was none.
func LastRun(folder *state.Folder) (r Run, err error) {
	b, err := folder.Read(runFile, 1<<16)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err == nil && r.Version != 1 {
		err = fmt.Errorf("version %d is not known", r.Version)
	}
	if err != nil {
		return Run{}, fmt.Errorf("the last scan: %w", err)
	}
	return r, nil
}
