package finding

func explainPacked() map[ID]Explanation {
	return map[ID]Explanation{
		PackedRefShadowed: {
			Means: "Something is wrong with an entry of packed-refs that a loose ref hides, or with a record of a table that a newer one or a deletion hides; the message " +
				"says what. Or the loose ref that hides an entry has lost its value: this is the last one that is known.",
			Comes: "An update writes a loose ref, or a newer table, and leaves the old entry until the next pack-refs. Its object may be pruned meanwhile.",
			Seen:  "Nobody is served the hidden value. It comes back to life if the loose file is deleted by other means than git.",
			Fix:   "Leaves it.",
			Short: "none: another value of the ref hides this one",
			Mend:  "nothing to do; git -C REPO pack-refs --all tidies up (where the loose ref is broken, see badRefContent first)",
		},
		PackedRefStyle: {
			Means: "An entry of packed-refs is written as git reads it and never writes it: upper-case hex, a TAB or another white byte for the space, " +
				"or a name outside refs/.",
			Comes: "A program or a text filter wrote the file.",
			Seen:  "git reads it, and git refs verify says nothing. JGit, libgit2 and go-git refuse a TAB; gitoxide takes lower-case hex only.",
			Fix:   "Is not a reason to rewrite the file.",
			Short: "git reads the entry; other implementations may refuse the file",
			Mend:  "git -C REPO pack-refs --all",
		},
		PackedRefDuplicate: {
			Means: "The same name stands more than once in packed-refs.",
			Comes: "Lines were merged or added by hand or by a program.",
			Seen: "Listing prints the name as often as it stands there; looking it up takes the one on which a bisection lands. A clone dies with 'multiple " +
				"updates for ref'. pack-refs keeps all copies; without the header word `sorted` git refs verify says nothing.",
			Fix:   "Merges copies that are equal. Copies that differ are refused: which value is right is for a person to say.",
			Short: "clone dies with 'multiple updates for ref'; which value a look-up finds depends on the file's length",
			Mend:  "refaudit fix REPO; if the values differ: git -C REPO update-ref -d REF, then git -C REPO update-ref REF ID",
		},
		HeaderTraitFalse: {
			Means: "The header of packed-refs claims `sorted` or `fully-peeled`, and it is not true of the whole file.",
			Comes: "git since 2.53 writes both words on every rewrite and copies records that never had a peel; or the file was edited under its header.",
			Seen:  "Readers trust the words: a name out of order is not found, and a tag without its peel is no annotated tag to git before 2.53 and to JGit.",
			Fix:   "Makes the words true: sorts the file and adds the peels. A word is written only when it is true of the whole file.",
			Short: "readers trust the header: refs out of order aren't found, tags without a peel look lightweight",
			Mend:  "refaudit fix REPO",
		},
		HeaderMissing: {
			Means: "packed-refs has no `# pack-refs with:` line.",
			Comes: "A very old git or another program wrote it (dumb copies, go-git).",
			Seen:  "Readers find everything, and more slowly: git reads and sorts the whole file each time, and looks at each tag that has no peel stored.",
			Fix:   "Writes the full modern header, after adding every peel and sorting, so that each of its words is true.",
			Short: "none but speed: git sorts the file and looks at tags on each read",
			Mend:  "refaudit fix REPO, or git -C REPO pack-refs --all",
		},
		RefNameConflict: {
			Means: "Two refs can't stand beside each other as files: one name is a folder of the other (a and a/b). As a warning: two names differ in case only.",
			Comes: "A program wrote packed-refs, a table or a file without looking at the other refs; reftables allow names that differ in case.",
			Seen: "git lists both. A clone by 2.39 and 2.47 dies with 'cannot process … at the same time', and updating one of the two fails. Names that differ in case " +
				"overwrite each other in a clone on a disk that ignores case.",
			Fix:   "Leaves them: which of the two should go is for a person to say.",
			Short: "older gits can't clone it, and one of the two refs can't be updated",
			Mend:  "git -C REPO update-ref -d REF   (the one that should not be)",
		},
		RefsDirShared: {
			Means: "REPO/refs, or a folder in it, is a symbolic link that leads out of the repository.",
			Comes: "Two repositories were made to share their refs by a link.",
			Seen: "git follows it. `git pack-refs`, so also gc, packs the loose refs into this repository's packed-refs and deletes the files, and every other " +
				"repository that shares the folder has lost them. git refs verify can't open a linked refs folder.",
			Fix:   "Refuses the repository: it writes nothing outside of it.",
			Short: "gc in one repository deletes the loose refs of all that share the folder",
			Mend:  "stop gc, and replace the link by a copy of the folder: cp -a",
		},
		WorktreeHeadMissing: {
			Means: "The HEAD of a linked worktree names an object that is not there, or the worktree has no HEAD at all.",
			Comes: "The worktree's folder was deleted without `git worktree remove`, and its commit was pruned.",
			Seen: "`git rev-list --all`, gc and fsck of the whole repository fail with 'bad object worktrees/…/HEAD'. Clones and listing are not affected. " +
				"Without a HEAD no git says anything, and gc deletes the commit that it stood at.",
			Fix:   "Leaves it. `refaudit size --ignore-dead-worktrees` leaves its HEAD out.",
			Short: "gc and rev-list --all fail with 'bad object worktrees/…/HEAD'",
			Mend:  "git -C REPO worktree prune   (where its folder is gone), else check something out in the worktree",
		},
	}
}
