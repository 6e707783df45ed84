package finding

func explainAlternates() map[ID]Explanation {
	return map[ID]Explanation{
		AlternateMissing: {
			Means: "A folder that objects/info/alternates or the environment names is not there, or can't be opened.",
			Comes: "The pool was deleted or moved, or its disk is not mounted; a relative path is taken from the real folder of the file that it stands in.",
			Seen:  "git prints an error and goes on without it. If objects are borrowed from it, clone, fetch and gc fail; if none is missing, all works with exit code 0.",
			Fix:   "Leaves it, and every peel that it makes unknowable: tags that look corrupt may only have their targets there.",
			Short: "objects borrowed from it are missing: clone and gc fail if any is needed",
			Mend:  "mount or restore the folder, or put its path right in REPO/objects/info/alternates",
		},
		AlternateRefsUnreadable: {
			Means: "The refs of a repository that objects are borrowed from can't be read.",
			Comes: "Its packed-refs or reftable is damaged, it is an object folder without a repository, or core.alternateRefsCommand fails.",
			Seen: "The objects are still borrowed. `git rev-list --not --alternate-refs` excludes nothing, so that what is borrowed counts as the fork's own, with exit " +
				"code 0; a push negotiates without these refs and sends more.",
			Fix:   "Leaves it: the other repository is not this one.",
			Short: "git counts borrowed objects as the fork's own, with exit code 0",
			Mend:  "scan and mend the repository that the objects are borrowed from",
		},
		AlternateSyntax: {
			Means: "A line of objects/info/alternates can't be understood: a quoted path whose quotes don't close, or a path that can't be resolved.",
			Comes: "The file was edited by hand, or a path with odd bytes was written without quotes.",
			Seen:  "git takes the line for a path as it stands, prints 'object directory … does not exist', and goes on without it.",
			Fix:   "Leaves it.",
			Short: "git goes on without this line; objects borrowed by it are missing",
			Mend:  "write one path a line into REPO/objects/info/alternates, in C quotes where it begins with a quote",
		},
		AlternateCycle: {
			Means: "Following alternates leads back to a folder that was met before.",
			Comes: "Two repositories were made to borrow from each other.",
			Seen:  "git passes over the second meeting without a word. A gc in either may delete objects that only the other refers to.",
			Fix:   "Leaves it.",
			Short: "git says nothing; a gc in one may delete what the other needs",
			Mend:  "let one of the two copy what it needs (git -C REPO repack -a -d), then remove its alternates line",
		},
		AlternateSelf: {
			Means: "An alternate is the repository's own object folder, perhaps by another name.",
			Comes: "A script wrote the file, or a link leads back.",
			Seen:  "git passes over the line without a word.",
			Fix:   "Leaves it.",
			Short: "none: git passes over the line",
			Mend:  "remove the line from REPO/objects/info/alternates",
		},
		AlternateExclusionEmpty: {
			Means: "The refs of the alternates are to be excluded, the pool has refs, and core.alternateRefsCommand printed none with exit code 0, or " +
				"core.alternateRefsPrefixes matches none.",
			Comes: "A command that always succeeds and prints nothing (`exit 0 #`), or prefixes that the pool doesn't use.",
			Seen:  "Excluding is a silent no-op: what is borrowed counts as the fork's own, in git too.",
			Fix:   "Leaves it: it is a setting. `refaudit size` gives no number for what is the repository's own.",
			Short: "excluding the pool is a silent no-op: borrowed objects count as the fork's own",
			Mend:  "git config --show-origin --get-regexp '^core.alternaterefs', and put the setting right",
		},
		BitmapUnusable: {
			Means: "A bitmap, a .rev file or a multi-pack-index fails its checksum, is cut, or doesn't fit its pack.",
			Comes: "Bits flipped, or the file was copied or replaced without its pack.",
			Seen:  "git doesn't check the checksum when it uses one: it may crash, fall back to walking, or print a wrong size with exit code 0. fsck finds it.",
			Fix:   "Leaves it. `refaudit size` walks instead, and says so.",
			Short: "git may crash on it or give wrong counts and sizes with exit code 0",
			Mend:  "git -C REPO repack -a -d -b   (for a multi-pack-index: git -C REPO multi-pack-index write --bitmap)",
		},
	}
}

func explainAudit() map[ID]Explanation {
	return map[ID]Explanation{
		AuditSkipped: {
			Means: "A check could not be made, and what it would have found is not known. The message says which and why.",
			Comes: "A file can't be read, something is unsupported, a limit or a time was reached, or a server doesn't hand out the object.",
			Seen:  "Nothing: this is about the audit, not the repository. The exit code says that the audit is incomplete (3, or 7 with findings).",
			Fix:   "Leaves what it could not look at.",
			Short: "none: the audit has a gap here",
			Mend:  "put right what the message names, and scan again",
		},
	}
}
