package finding

func explainPeels() map[ID]Explanation {
	return map[ID]Explanation{
		PeelMismatch: {
			Means: "The tag is sound, and the peel that is stored beside it is another object than the tag leads to.",
			Comes: "`git pack-refs` ran while the tag was under refs/replace/ and stored the replacement's target (both backends, every git); " +
				"go-git deleted a packed tag and its peel line fell to the tag above; a text filter paired the wrong lines; or bits flipped: " +
				"neither packed-refs nor the ref blocks of a reftable have a checksum.",
			Seen: "ls-remote, fetch and clone are told the wrong object as REF^{}, and a build that pins a version by that line builds something else. " +
				"fetch and `clone --single-branch` miss the tag, and `git describe` names another distance or none; a clone of everything has the right " +
				"peel again. `git refs verify` and fsck say nothing, and pack-refs, gc and compaction carry the value on.",
			Fix: "Writes the right peel: the `^` line of packed-refs, or a new record in a new table. If the tag is still under refs/replace/, it says that " +
				"the next pack-refs brings the wrong value back.",
			Short: "ls-remote and fetch serve the wrong object as REF^{}; git refs verify and fsck say nothing",
			Mend:  "refaudit fix REPO",
		},
		PeelUnexpected: {
			Means: "A ref that points to a commit, a tree or a blob has a peel stored beside it, and such an object has none.",
			Comes: "go-git deleted the packed tag below and left its peel line, which now belongs to this ref; or a bit flipped.",
			Seen: "ls-remote, show-ref -d, fetch and clone are told of REF^{}, as if the ref were an annotated tag. `git for-each-ref` passes over it. " +
				"pack-refs and compaction keep it; git refs verify and fsck say nothing.",
			Fix:   "Drops the peel and keeps the ref.",
			Short: "ls-remote serves REF^{} for a ref that is no tag, and git pack-refs keeps it",
			Mend:  "refaudit fix REPO",
		},
		PeelPartial: {
			Means: "The tag leads to another tag, and the stored peel is a tag of that chain instead of the object at its end.",
			Comes: "libgit2 stores the direct target of a tag when it packs refs, also where that is a tag itself.",
			Seen: "ls-remote, fetch and clone are told a tag as REF^{}, where they expect a commit, tree or blob; `git for-each-ref` of 2.55 gives " +
				"`tag` as the type of the peeled object.",
			Fix:   "Writes the object at the end of the chain.",
			Short: "ls-remote and fetch serve another tag as REF^{}, where an object that is no tag belongs",
			Mend:  "refaudit fix REPO",
		},
		PeelOrphan: {
			Means: "A `^` line of packed-refs follows another `^` line, or the header, or stands first: it belongs to no ref.",
			Comes: "go-git deletes a packed tag and keeps its peel line, which then follows the peel line of the tag above.",
			Seen: "git reads up to the line and dies with 'unexpected line': listing, clone, fetch, gc, pack-refs and deleting a packed ref fail; looking up " +
				"one name and creating a ref still work. libgit2 refuses the file; JGit takes the last of two peels and refuses a first line; go-git reads on.",
			Fix: "Drops the lines that belong to no ref; of several below one ref the right one stays, and none below a ref that is no tag. " +
				"The order of the names is checked again afterwards, since git looks at it only in a file without errors.",
			Short: "listing, clone, fetch and gc die at this line with 'unexpected line'",
			Mend:  "refaudit fix REPO",
		},
		PeelOfCorruptTag: {
			Means: "The tag is corrupt (tagTypeMismatch, tagTargetMissing or tagUnreadable), so it has no peel, and one is stored beside it.",
			Comes: "git before 2.53 stored a peel without looking at the target. git 2.55 still does when `git reflog delete --updateref` or " +
				"`git reflog expire --updateref` rewrites a ref in a reftable.",
			Seen: "Listing and ls-remote look healthy, because the stored peel hides the fault; a clone dies with 'bad object' and names no ref. " +
				"`git fsck` 2.55 blames the tag's innocent target; git refs verify says nothing, and pack-refs and gc keep the value.",
			Fix: "Drops the peel and keeps the ref; the corrupt tag remains a finding. From then on `git for-each-ref` of 2.55 shows the fault too: " +
				"asked for %(*objectname) it stops there with 'bad tag'.",
			Short: "the stored peel makes a corrupt tag look healthy; clone dies with 'bad object' all the same",
			Mend:  "refaudit fix REPO",
		},
		PeelMissing: {
			Means: "The tag is sound and has no peel stored, where its place promises one: in packed-refs under the header word fully-peeled, " +
				"or peeled for refs/tags/, and in a reftable always.",
			Comes: "`git refs migrate` of 2.55 forgets the peels, in both directions. Since 2.53 git writes fully-peeled on every rewrite and copies " +
				"records that never had a peel. Or a line was lost.",
			Seen: "git 2.39 and 2.47 take the ref for no annotated tag: ls-remote has no REF^{}, `git describe` finds no tag, fetch and `clone --single-branch` " +
				"miss it. git 2.55 looks at the tag itself. JGit answers from the record: not a tag. No git ever adds the peel later.",
			Fix:   "Adds the peel.",
			Short: "git before 2.53 and JGit take the ref for no annotated tag: no REF^{}, and describe misses it",
			Mend:  "refaudit fix REPO",
		},
		PeelUnverifiable: {
			Means: "What the peel should be can't be known here: the target of the tag, or the ref's own object, is promised by a remote (partial clone), " +
				"lies beyond a shallow boundary, or in an alternate that is missing.",
			Comes: "It is how partial and shallow clones are; or the pool of objects is not mounted.",
			Seen:  "Readers are served the stored value as it is. Nobody can check it here, and refaudit fetches nothing to find out.",
			Fix:   "Leaves the peel as it is, neither adds nor drops one.",
			Short: "readers get the stored value; here it can be neither confirmed nor refuted",
			Mend:  "scan the repository that has the objects, or bring the missing alternate back and scan again",
		},
	}
}
