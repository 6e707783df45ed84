package finding

const dropTags = "refaudit fix --drop-corrupt-tags REPO"

func explainTags() map[ID]Explanation {
	return map[ID]Explanation{
		TagTypeMismatch: {
			Means: "A tag, perhaps one further down a chain, says in its `type` line what its target is, and the target is of another type.",
			Comes: "The tag was made by hand or by a conversion tool, and written without a check (`git hash-object --literally`). A push to git is refused.",
			Seen: "Each clone, and each fetch that wants the tag, dies with 'bad object' and 'aborting due to possible repository corruption'; the message " +
				"names no ref. `git for-each-ref` of 2.55, asked for %(*objectname), stops with 'bad tag'. fsck of 2.55 blames the target, which is sound.",
			Fix: "Leaves the tag, which is an object, and its ref; a peel stored beside it is dropped. Asked to, it deletes the ref so that the repository can " +
				"be cloned again, and keeps ref and tag in the journal for undo.",
			Short: "clone dies with 'bad object' and names no ref; fsck blames the tag's innocent target",
			Mend:  dropTags,
		},
		TagTargetMissing: {
			Means: "The object that a tag, perhaps one further down a chain, points to is in none of the repository's object folders.",
			Comes: "Objects were lost (a pool or a pack deleted, a gc that could not see all refs), or the tag was copied without its target.",
			Seen: "Each clone, and each fetch that wants the tag, dies with 'bad object <target>' and names no ref; ls-remote advertises the absent object " +
				"as REF^{}. `git for-each-ref` asked for %(*objectname) stops with an error. fsck says 'broken link'.",
			Fix: "Leaves the tag and its ref; a peel stored beside it is dropped. Asked to, it deletes the ref and keeps ref and tag in the journal for undo. " +
				"If many tags have lost their target at once it refuses: that looks like a pool that is not mounted.",
			Short: "clone dies with 'bad object' and names no ref; ls-remote advertises an absent object",
			Mend:  "bring the object back from another clone or a backup; if it is lost: " + dropTags,
		},
		TagUnreadable: {
			Means: "A tag, perhaps one further down a chain, can't be read or inflated, doesn't hash to its name, or has no `object`, `type` and `tag` line " +
				"that git can parse. Or a ref's object can't be read so far that its type is known.",
			Comes: "A disk fault in a loose object or a pack, or a tag that was made by hand: CR before the newline, lines swapped, an unknown type.",
			Seen: "A clone dies with 'not our ref' (the tag can't be parsed) or with an error about the object; `git for-each-ref` stops at the ref, and " +
				"2.55 can't pack it. fsck says 'object could not be parsed' or 'hash mismatch'.",
			Fix:   "Leaves the tag and its ref; a peel stored beside it is dropped. Asked to, it deletes the ref and keeps ref and tag in the journal for undo.",
			Short: "clone dies with 'not our ref' or an object error; git for-each-ref stops at the ref",
			Mend:  "put a sound copy of the object in from another clone; if the tag is bad itself: " + dropTags,
		},
		TagNameMismatch: {
			Means: "Under refs/tags/, the name in the tag's `tag` line is not the name of the ref.",
			Comes: "A ref was renamed or made with `git update-ref`, perhaps to pass an old signed tag off as another release. A policy, not damage: ignored " +
				"unless configured.",
			Seen: "`git describe` prints the tag's own name, with the warning 'externally known as'. A signature is still good, since it covers the tag's text " +
				"and not the ref. ls-remote and fetch show the ref's name.",
			Fix:   "Leaves it.",
			Short: "git describe prints the tag's own name; a signature is good under either name",
			Mend:  "git -C REPO update-ref -d REF   (if the ref should not be), then tag anew",
		},
		RefTargetMissing: {
			Means: "The object that a ref points to is in none of the repository's object folders, and is not promised by a remote either.",
			Comes: "Objects were lost: a pool or a pack deleted, a gc that could not see all refs, or a power cut that kept the ref and not the object.",
			Seen: "A clone of everything dies with 'not our ref', `git rev-list --all` and gc with 'bad object'; fsck says 'invalid sha1 pointer'. " +
				"ls-remote and listing without types still show the ref, and git refs verify says nothing.",
			Fix:   "Leaves the ref, and the peel beside it as it is: what it should be isn't known. That is said.",
			Short: "clone dies with 'not our ref', gc and rev-list --all with 'bad object'",
			Mend:  "bring the object back from another clone or a backup; if it is lost: git -C REPO update-ref -d REF",
		},
		RefTypeNotAllowed: {
			Means: "A ref below refs/heads/ points to a tag, a tree or a blob. Branches are commits.",
			Comes: "A program wrote the ref itself: `git update-ref` refuses this.",
			Seen:  "git lists and serves the ref, and clones copy it; checking it out as a branch and committing fail. `git fsck` says 'not a commit'.",
			Fix:   "Leaves it: the value of a ref is no cache.",
			Short: "git serves it as a branch, and nobody can commit on it; fsck says 'not a commit'",
			Mend:  "give the object a name under refs/tags/, then: git -C REPO update-ref -d REF",
		},
	}
}
