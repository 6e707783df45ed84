package journal

import (
	"errors"
	"fmt"
	"time"
)

// A repair that is made under another user's id can't write the journal: it asks the process that
// started it, by Requests. Answer and Client are the two ends; how the messages travel is the caller's affair.

// Request is one question.
type Request struct {
	Op    string `json:"op"` // begin, settle, load, list, sync
	ID    string `json:"id,omitempty"`
	From  State  `json:"from,omitempty"`
	To    State  `json:"to,omitempty"`
	Entry []byte `json:"entry,omitempty"` // as in the file
}

// Reply is the answer.
type Reply struct {
	Error   string   `json:"error,omitempty"`
	Unknown bool     `json:"unknown,omitempty"` // the error is ErrUnknown
	Entry   []byte   `json:"entry,omitempty"`
	State   State    `json:"state,omitempty"`
	IDs     []string `json:"ids,omitempty"`
}

// Answer answers a question about entries of one repository; about others it says nothing.
func (j *Journal) Answer(q Request, gitDir string) Reply {
	r, err := j.answer(q, gitDir)
	if err != nil {
		return Reply{Error: err.Error(), Unknown: errors.Is(err, ErrUnknown)}
	}
	return r
}

func (j *Journal) answer(q Request, gitDir string) (r Reply, err error) {
	switch q.Op {
	case "begin":
		e, err := Decode(q.Entry)
		if err != nil {
			return r, err
		}
		if e.GitDir != gitDir {
			return r, fmt.Errorf("an entry about %q, not %q", e.GitDir, gitDir)
		}
		if _, _, err := j.Load(e.ID); !errors.Is(err, ErrUnknown) {
			return r, errors.Join(fmt.Errorf("entry %s is there already", e.ID), err)
		}
		return r, j.begin(e)
	case "settle":
		if _, err := j.loadOf(q.ID, gitDir, &r); err != nil {
			return r, err
		}
		return Reply{}, j.Settle(q.ID, q.From, q.To)
	case "load":
		_, err := j.loadOf(q.ID, gitDir, &r)
		return r, err
	case "list":
		return j.listOf(q.From, gitDir)
	case "sync":
		return r, j.Sync()
	}
	return r, fmt.Errorf("unknown request %q", q.Op)
}

func (j *Journal) loadOf(id, gitDir string, r *Reply) (*Entry, error) {
	e, state, err := j.Load(id)
	if err != nil {
		return nil, err
	}
	if e.GitDir != gitDir {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, id)
	}
	r.Entry, r.State = e.encode(), state
	return e, nil
}

func (j *Journal) listOf(s State, gitDir string) (r Reply, err error) {
	ids, err := j.List(s)
	if err != nil {
		return r, err
	}
	for _, id := range ids {
		e, _, err := j.Load(id)
		switch {
		case err == nil && e.GitDir == gitDir:
			r.IDs = append(r.IDs, id)
		case err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnknown):
			return r, err
		}
	}
	return r, nil
}

// Client is a journal that another process keeps.
type Client struct {
	Ask func(Request) (Reply, error)
}

func (c *Client) ask(q Request) (Reply, error) {
	r, err := c.Ask(q)
	switch {
	case err != nil:
		return r, fmt.Errorf("journal: %w", err)
	case r.Unknown:
		return r, fmt.Errorf("%w: %s", ErrUnknown, r.Error)
	case r.Error != "":
		return r, fmt.Errorf("journal: %s", r.Error)
	}
	return r, nil
}

// Begin is Journal.Begin.
func (c *Client) Begin(e *Entry) error {
	e.Time = time.Now().UTC().Truncate(time.Millisecond)
	e.ID = NewID(e.Time)
	_, err := c.ask(Request{Op: "begin", Entry: e.encode()})
	return err
}

// Settle is Journal.Settle.
func (c *Client) Settle(id string, from, to State) error {
	_, err := c.ask(Request{Op: "settle", ID: id, From: from, To: to})
	return err
}

// Load is Journal.Load.
func (c *Client) Load(id string) (*Entry, State, error) {
	r, err := c.ask(Request{Op: "load", ID: id})
	if err != nil {
		return nil, "", err
	}
	e, err := Decode(r.Entry)
	return e, r.State, err
}

// List is Journal.List.
func (c *Client) List(s State) ([]string, error) {
	r, err := c.ask(Request{Op: "list", From: s})
	return r.IDs, err
}

// Sync is Journal.Sync. A journal that was never begun has nothing to sync.
func (c *Client) Sync() error {
	_, err := c.ask(Request{Op: "sync"})
	return err
}
