package finding

// The ids of `git refs verify`. git 2.39 has no such command; 2.47 has it, and looks at the
// type and the name of loose refs alone.
func explainGit() map[ID]Explanation {
	return map[ID]Explanation{
		BadHeadTarget: {
			Means: "HEAD, of the repository or of a worktree, is a symbolic ref to a name outside refs/heads/.",
			Comes: "`git symbolic-ref HEAD refs/tags/v1` does it, or a program that writes HEAD itself.",
			Seen: "A clone checks out what HEAD names, detached where that is a tag. `git commit` above an annotated tag fails with " +
				"'cannot lock ref'. If the name lies outside refs/, git says 'not a git repository'.",
			Fix:   "Leaves it: HEAD is a value, not a cache.",
			Short: "clones start on what is no branch, and commits there fail",
			Mend:  "git -C REPO symbolic-ref HEAD refs/heads/main   (or the branch that is meant)",
		},
		BadPackedRefEntry: {
			Means: "A line of packed-refs is neither `<object id> <name>` nor a peel line `^<object id>` below one: the id is short, no hex " +
				"or of the other object format, the space is missing, something follows the id, or the name has a NUL in it.",
			Comes: "Bytes were lost or overwritten (a power cut, a full disk, a fault of the file system), a merge tool or a text filter " +
				"edited the file, or extensions.objectFormat was lost. A `^` line without a ref is peelOrphan, and has this id in git.",
			Seen: "git reads up to the line and dies with 'unexpected line': listing, clone, fetch, gc and pack-refs fail. Looking up one " +
				"name may still work, because that reads only a few lines. Most of these faults make JGit and libgit2 refuse the whole file.",
			Fix: "Drops `^` lines that belong to no ref. A line that has lost bytes is refused and the file left as it is: a ref was lost, " +
				"and which one the file doesn't say.",
			Short: "listing, clone, fetch and gc die at this line with 'unexpected line'",
			Mend:  "put the line right from a backup, a replica or the reflog; for a stray ^ line: refaudit fix REPO",
		},
		BadPackedRefHeader: {
			Means: "The first line of packed-refs begins with `#` and is not `# pack-refs with: ` with the space at its end.",
			Comes: "Somebody edited the file, or a program wrote a comment of its own.",
			Seen: "git can use no packed ref at all: every command that reads one, and creating a new ref too, dies with 'unexpected line'. " +
				"JGit, libgit2 and go-git take the line for a comment and read on.",
			Fix:   "Writes the full modern header, of which every word is true of the file, if the rest of the file is sound.",
			Short: "git dies with 'unexpected line' whenever it needs a packed ref; JGit and libgit2 read on",
			Mend:  "refaudit fix REPO",
		},
		BadRefContent: {
			Means: "The file of a loose ref holds neither an object id nor `ref: <name>`: it is empty, full of NULs, cut, or text.",
			Comes: "A power cut after a write that was not synced, a full disk, or an editor.",
			Seen: "git warns 'ignoring broken ref' and doesn't fall back to the packed value. Servers advertise the ref with a zero id, so a " +
				"clone of everything fails with 'not our ref'; gc fails with 'bad object'; the ref can't be updated.",
			Fix:   "Leaves it, and says which packed value the file hides: the value of a ref is no cache.",
			Short: "clone fails with 'not our ref 000…', gc fails, and the packed value is not used instead",
			Mend:  "write the right object id into the file, or remove the file where the packed value below it is right",
		},
		BadRefFiletype: {
			Means: "A ref is neither a regular file nor a symbolic link but a FIFO, a socket or a device; or packed-refs is a symbolic link.",
			Comes: "A backup tool or a script made it; packed-refs is linked to share refs between work directories (git new-workdir).",
			Seen: "Looking up a FIFO hangs in every git, and in git 2.39 listing does too; newer gits leave it out. A link to packed-refs works, and " +
				"git writes through it; where it dangles, all packed refs are gone and git's exit code is 0.",
			Fix:   "Leaves the file. A packed-refs behind a link is mended where the link leads, under the lock that git takes there, and the link stays.",
			Short: "a FIFO makes git hang; a dangling packed-refs link makes all packed refs vanish silently",
			Mend:  "remove what is no file; replace a packed-refs link by the file it leads to, if nobody else uses it",
		},
		BadRefName: {
			Means: "A ref has a name that git's rules forbid: `..`, a component that begins with a dot or ends in .lock, a space, a control byte, " +
				"one of ~^:?*[\\, `@{`, or nothing between two slashes.",
			Comes: "The file was put there by a program that is not git (a synchroniser's 'conflicted copy', a Finder's .DS_Store), or a bit flipped.",
			Seen: "git warns 'ignoring ref with broken name', doesn't list or pack it, and advertises it all the same; clients say 'Ignoring funny ref'. " +
				"Files that begin with a dot are passed over silently. A packed name that would lead out of the folder ('dangerous') makes git die.",
			Fix:   "Leaves it: a ref is never renamed or removed.",
			Short: "git ignores the ref, and clients are told of a 'funny ref' that they can't have",
			Mend:  "git -C REPO update-ref -d REF",
		},
		BadRefOid: {
			Means: "A ref has the object id of zeros, which names nothing.",
			Comes: "A power cut: the block of the file was allocated and its bytes never written.",
			Seen: "`git rev-parse` prints zeros. A loose one is 'ignored as broken'; a packed one is listed. Both are advertised, so a clone of " +
				"everything fails with 'not our ref', and gc with 'bad object'. git checks loose refs and reftables for it, not packed-refs.",
			Fix:   "Leaves it: the value of a ref is no cache, and its reflog may tell what it was.",
			Short: "clone fails with 'not our ref 000…', gc fails with 'bad object'",
			Mend:  "git -C REPO update-ref REF ID   (from the reflog or a replica), or git -C REPO update-ref -d REF",
		},
		BadReferentName: {
			Means: "A symbolic ref leads to a name that git's rules forbid.",
			Comes: "A program wrote the file itself, or a bit flipped.",
			Seen: "The ref counts as dangling: git doesn't list it, doesn't advertise it and can't resolve it. Behind a symbolic link that leads to " +
				"no file git lists and advertises what is packed under its name.",
			Fix:   "Leaves it: the target of a symbolic ref is a value.",
			Short: "the symbolic ref leads nowhere: nothing but a value packed under its name is listed or served",
			Mend:  "git -C REPO symbolic-ref REF refs/heads/main   (or the ref that is meant)",
		},
		BadReftableTableName: {
			Means: "A table in reftable/tables.list has a name that is not 0x<min>-0x<max>-<random>.ref or .log.",
			Comes: "A program other than git wrote or renamed it.",
			Seen:  "git reads the table as any other, and only `git refs verify` warns.",
			Fix:   "Leaves it: the content counts, and a name that left the list is never listed again.",
			Short: "none: git reads the table all the same",
			Mend:  "git -C REPO pack-refs --all   (writes one table with a proper name in place of several)",
		},
		EmptyPackedRefsFile: {
			Means: "packed-refs is there and has no byte in it.",
			Comes: "A full disk or a power cut cut the file off; git writes at least a header, and only very old ones left it empty.",
			Seen: "Every ref that was in it is gone, and git says nothing: listing is empty, a clone is of 'an empty repository', exit code 0. " +
				"`git gc --prune=now` then deletes the objects.",
			Fix:   "Leaves it: there is nothing in it to mend from.",
			Short: "refs that were packed are gone without a word, and gc deletes their objects",
			Mend:  "keep gc away and restore packed-refs from a backup or a replica; if no ref is missing, remove the empty file",
		},
		PackedRefEntryNotTerminated: {
			Means: "The last line of packed-refs doesn't end with a newline.",
			Comes: "The file was cut off, or an editor or a script wrote it.",
			Seen: "git dies with 'unexpected line' on every command that reads a packed ref, and on creating one; the message names the last " +
				"ref, not its peel line. libgit2 reads a file that ends in a peel line; JGit and go-git read any.",
			Fix: "Ends the line, if it is a whole one; a tag also gets the peel line that was cut off. Where an id or a name lost bytes, a ref was " +
				"lost: the file is refused and left as it is.",
			Short: "git dies with 'unexpected line' whenever it needs a packed ref",
			Mend:  "refaudit fix REPO",
		},
		PackedRefUnsorted: {
			Means: "The header of packed-refs says `sorted`, and a name is not above the one before it: it is lower, or the same name again.",
			Comes: "Lines were added or moved by hand or by a program that left the header as it was.",
			Seen: "git bisects the file and misses refs that it lists: `git rev-parse` fails for them, and deleting them does nothing, with exit " +
				"code 0. `git pack-refs` carries the disorder on.",
			Fix:   "Sorts the file, before anything else is mended.",
			Short: "some refs are listed and can't be looked up or deleted: git bisects a file that is not sorted",
			Mend:  "refaudit fix REPO",
		},
		RefMissingNewline: {
			Means: "The file of a loose ref doesn't end with a newline.",
			Comes: "A script or an editor wrote it; git always ends the line.",
			Seen:  "Every git reads the value. git may refuse such files one day.",
			Fix:   "Leaves it.",
			Short: "none: git reads the value",
			Mend:  "git -C REPO pack-refs --all",
		},
		SymlinkRef: {
			Means: "A ref is a symbolic link where git now writes a file with `ref: <name>`.",
			Comes: "core.preferSymlinkRefs was set, or a very old git or a script made it.",
			Seen: "git follows a link whose text begins with refs/ as a symbolic ref, and any other as a file: such a ref shows the value of the " +
				"file, is not symbolic, and the next update puts a file in its place.",
			Fix:   "Leaves it: what a ref points to is a value.",
			Short: "git follows it for now; copies and archives may turn it into a plain file",
			Mend:  "git -C REPO symbolic-ref REF refs/heads/main   (what the link leads to)",
		},
		SymrefTargetIsNotARef: {
			Means: "A symbolic ref leads to a name that is neither below refs/ or worktrees/ nor one of git's root refs, such as HEAD.",
			Comes: "`git symbolic-ref` allows it for refs other than HEAD.",
			Seen:  "git follows it where the file is there, else the ref counts as dangling and isn't listed. git may forbid it one day.",
			Fix:   "Leaves it: the target of a symbolic ref is a value.",
			Short: "git follows it for now; other readers may not",
			Mend:  "git -C REPO symbolic-ref REF refs/heads/main   (or the ref that is meant)",
		},
		TrailingRefContent: {
			Means: "The file of a loose ref has something behind its value: spaces, more newlines, or text.",
			Comes: "A script or an editor wrote it, or a shorter value was written over a longer one.",
			Seen:  "Every git reads the value and passes over the rest; the next update drops it. git may refuse such files one day.",
			Fix:   "Leaves it.",
			Short: "none: git reads the value and passes over the rest",
			Mend:  "git -C REPO pack-refs --all",
		},
	}
}
