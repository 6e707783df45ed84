package reftable

import "refaudit/finding"

// VerifyForGit tells where git can't find its way through an index that the format allows. git 2.50 and later look for
// another block of an index's root wherever they search, one block size behind where the block at hand begins. A root of
// one long block, which the format permits and JGit writes where it is told how many levels there may be, goes on there:
// git takes that for damage, and a listing of refs prints nothing and exits 0. Whether the index is right Verify and
// VerifySearch tell. The log's index is looked at if logs is set; object blocks git does not read. The error is report's.
func VerifyForGit(t *Table, logs bool, report func(finding.Finding) error) error {
	w := t.window(t.end, t.seekStep())
	if bad := t.gitStumbles(&w, t.RefIndex, finding.ReftableIndexMismatch,
		"in every search: git for-each-ref lists no ref of the stack and exits 0; don't run gc, `git gc --prune=now` would delete every object"); bad != nil {
		if err := report(bad.Finding()); err != nil {
			return err
		}
	}
	if !logs {
		return nil
	}
	if bad := t.gitStumbles(&w, t.LogIndex, finding.ReftableLog, "in every search for a reflog: git reflog prints nothing and exits 0, and git can't compact the stack"); bad != nil {
		return report(bad.Finding())
	}
	return nil
}

// gitWayOut is what writes a table anew that git can't read and refaudit can.
const gitWayOut = "git 2.45 to 2.49 read the table: `git pack-refs --all` of one of these, after any update, writes it anew"

// gitStumbles goes through the blocks of an index's root as git does, and tells of the first behind which git takes
// something for a block that is none. Damage of the blocks themselves is for others to tell.
func (t *Table) gitStumbles(w *window, root int64, id finding.ID, effect string) *finding.Corrupt {
	for off := root; off != 0 && off < t.end; {
		kind, length, bad := t.blockAt(w, off)
		if bad != nil || kind != kindIndex || length < minBlock || int64(length) > t.end-off {
			return nil
		}
		next, bad := t.gitNext(w, off, length)
		if bad != nil || next >= t.end {
			return nil
		}
		kind, _, bad = t.blockAt(w, next)
		inside := next < off+int64(length)
		switch {
		case bad != nil:
			return nil
		case inside && kind == kindIndex:
			return t.corrupt(id, off, off, int64(length), "index block has %d bytes, more than the block size, %d; the format allows that, but git takes what stands inside it at %d for another block, "+
				"finds no ref or crashes; don't run gc", length, t.BlockSize, next)
		case inside && !isKind(kind):
			return t.corrupt(id, off, off, int64(length), "index block has %d bytes, more than the block size, %d; the format allows that, but git 2.50 and later go on at %d, inside it, %s; %s",
				length, t.BlockSize, next, effect, gitWayOut)
		case !isKind(kind):
			return t.corrupt(id, off, off, int64(length), "git goes on behind this index block at %d, where no block begins, %s", next, effect)
		case kind != kindIndex:
			return nil // what git takes for the end of the index, if only by chance
		}
		off = next
	}
	return nil
}

// gitNext is where git looks for the block behind one that is none of logs.
func (t *Table) gitNext(w *window, off int64, length int) (int64, *finding.Corrupt) {
	switch {
	case t.BlockSize == 0:
		return off + int64(length), nil
	case length < t.BlockSize:
		b, bad := w.at(off, length+1)
		if bad != nil {
			return 0, bad
		}
		if len(b) > length && b[length] != 0 {
			return off + int64(length), nil
		}
	}
	return off + int64(t.BlockSize), nil
}

// inflatable holds a log block, which could be inflated, against what git reads of it: as many bytes as its inflated
// length says or, if that is more, as the block size does. Of data that doesn't shrink the stream is longer.
func (v *verifier) inflatable(b *block) {
	least := v.t.BlockSize
	if least == 0 {
		least = DefaultBlockSize
	}
	if length, most := b.next-b.off, int64(max(least, len(b.data))); length > most {
		v.block(finding.ReftableLog, b.off, b.off, length, "log block takes %d bytes, and git reads %d of it, the longer of its inflated length and the block size: "+
			"to git it is damaged, git reflog ends before it without an error, and git can't compact the stack", length, most)
	}
}
