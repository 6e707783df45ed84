//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refaudit/internal/gittest"
)

// `git gc --auto` asks its hook, and does nothing where a table is gone. Once it is back, gc runs.
func TestGuardStopsGc(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := gittest.New(t, gittest.Options{RefFormat: gittest.Reftable})
	r.ExtraEnv = append(r.ExtraEnv, "REFAUDIT_TEST_MAIN=1")
	if err := os.MkdirAll(r.File("hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	hook := fmt.Sprintf("#!/bin/sh\nexec %s guard --quiet --state=%s\n", shellWord(self), shellWord(t.TempDir()))
	if err := os.WriteFile(r.File("hooks/pre-auto-gc"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	// gc guesses how many objects are loose from those in objects/17.
	for i := 0; ; i++ {
		r.WriteObject("blob", fmt.Appendf(nil, "blob %d", i))
		if list, _ := filepath.Glob(r.File("objects/17/*")); len(list) > 1 {
			break
		}
	}
	gc := func() (stderr string, packs int) {
		_, stderr, _ = r.Try("-c", "gc.auto=1", "gc", "--auto", "--no-detach")
		list, _ := filepath.Glob(r.File("objects/pack/*.pack"))
		return stderr, len(list)
	}
	table := r.Tables()[0]
	if err := os.Rename(table, table+".away"); err != nil {
		t.Fatal(err)
	}
	if said, packs := gc(); packs != 0 || !strings.Contains(said, "it is gone") {
		t.Errorf("gc ran, and made %d packs: %s", packs, said)
	}
	if err := os.Rename(table+".away", table); err != nil {
		t.Fatal(err)
	}
	if said, packs := gc(); packs == 0 {
		t.Errorf("gc did not run: %s", said)
	}
}
