package journal

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

	"refaudit/internal/crashfs"
)

// over makes a client whose messages travel as JSON, as they do between processes.
func over(j *Journal, gitDir string) *Client {
	return &Client{Ask: func(q Request) (r Reply, err error) {
		b, err := json.Marshal(q)
		if err != nil {
			return r, err
		}
		q = Request{}
		if err := json.Unmarshal(b, &q); err != nil {
			return r, err
		}
		if b, err = json.Marshal(j.Answer(q, gitDir)); err != nil {
			return r, err
		}
		return r, json.Unmarshal(b, &r)
	}}
}

func TestAJournalKeptByAnother(t *testing.T) {
	j := New(crashfs.New(), "/j")
	e := entry()
	c := over(j, e.GitDir)
	if ids, err := c.List(Open); err != nil || ids != nil {
		t.Errorf("%v %v", ids, err)
	}
	if err := c.Begin(e); err != nil {
		t.Fatal(err)
	}
	got, state, err := c.Load(e.ID)
	if err != nil || state != Open || !reflect.DeepEqual(got, e) {
		t.Errorf("%v %v\n%+v\n%+v", state, err, got, e)
	}
	if err := errors.Join(c.Settle(e.ID, Open, Done), c.Sync()); err != nil {
		t.Error(err)
	}
	if ids, err := c.List(Done); err != nil || !slices.Equal(ids, []string{e.ID}) {
		t.Errorf("%v %v", ids, err)
	}
	if _, _, err := c.Load("20250101T000000Z-0000000000"); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
	if r := j.Answer(Request{Op: "begin", Entry: e.encode()}, e.GitDir); r.Error == "" {
		t.Error("an entry was written over")
	}
}

func TestNothingIsSaidOfOtherRepositories(t *testing.T) {
	j := New(crashfs.New(), "/j")
	e := entry()
	if err := j.Begin(e); err != nil {
		t.Fatal(err)
	}
	c := over(j, "/srv/other.git")
	if _, _, err := c.Load(e.ID); !errors.Is(err, ErrUnknown) {
		t.Errorf("load: %v", err)
	}
	if err := c.Settle(e.ID, Open, Void); !errors.Is(err, ErrUnknown) {
		t.Errorf("settle: %v", err)
	}
	if ids, err := c.List(Open); err != nil || ids != nil {
		t.Errorf("list: %v %v", ids, err)
	}
	if err := c.Begin(entry()); err == nil {
		t.Error("begin")
	}
	for _, q := range []Request{{}, {Op: "begin"}, {Op: "nonsense"}, {Op: "begin", Entry: []byte("{}\n")}} {
		if r := j.Answer(q, e.GitDir); r.Error == "" {
			t.Errorf("%+v", q)
		}
	}
}
