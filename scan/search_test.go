package scan_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refaudit/finding"
	"refaudit/internal/gittest"
	"refaudit/reftable"
	"refaudit/scan"
)

// manyBlocks is a repository with one table of many blocks, and an index.
func manyBlocks(t *testing.T) (r *gittest.Repo, table string, data []byte) {
	t.Helper()
	r = gittest.New(t, gittest.Options{RefFormat: gittest.Reftable})
	var in strings.Builder
	for i := range 500 {
		fmt.Fprintf(&in, "create refs/tags/t%03d %s\n", i, r.V1)
	}
	r.GitIn(in.String(), "update-ref", "--stdin")
	r.Git("pack-refs", "--all")
	table = r.Tables()[0]
	data, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	return r, table, data
}

// One bit of the ref index, and git lists no ref at all and exits 0, for its listing begins with a search: that has to
// be told at every level.
func TestAnIndexThatHidesAllRefs(t *testing.T) {
	r, table, data := manyBlocks(t)
	at := int64(-1)
	if err := reftable.Dump(bytes.NewReader(data), int64(len(data)), "t", func(p *reftable.Part) error {
		if p.Kind == reftable.PartIndex && at < 0 {
			at = p.Offset
		}
		return nil
	}); err != nil || at < 0 {
		t.Fatal(at, err)
	}
	at += int64(bytes.Index(data[at:], []byte("refs/tags/t")) + len("refs/tags/t000"))
	data[at] ^= 0x01 // where the first block begins, behind its last name: at 1, not 0
	r.WriteFile("reftable/"+filepath.Base(table), data)
	out, _, code := r.Try("for-each-ref")
	t.Logf("git lists %d refs, exit code %d", strings.Count(out, "\n"), code)
	for _, level := range []scan.Level{scan.Quick, scan.Standard, scan.Deep} {
		res, found := audit(t, r.Path, level)
		told := 0
		for i := range found {
			if found[i].ID == finding.ReftableIndexMismatch {
				told++
			}
		}
		if told == 0 || res.State == scan.Clean {
			t.Errorf("level %v: %v, %v", level, res.State, found)
		}
	}
}

// What stood in a block that can't be read is not known, whatever is wrong with it: then the audit is incomplete.
func TestABlockThatIsLost(t *testing.T) {
	r, table, data := manyBlocks(t)
	data[4096+1] = 0xff // the length of the second block
	r.WriteFile("reftable/"+filepath.Base(table), data)
	for _, level := range []scan.Level{scan.Quick, scan.Standard, scan.Deep} {
		res, found := audit(t, r.Path, level)
		if res.State != scan.Incomplete || len(res.Unread) == 0 || len(found) == 0 {
			t.Errorf("level %v: %+v, %v", level, res, found)
		}
	}
}
