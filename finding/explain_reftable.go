package finding

const (
	// What every git makes of a stack that it can't load.
	stackLooksEmpty = "git takes the repository for an empty one: listing and ls-remote print nothing with exit code 0, a clone is of 'an empty repository', " +
		"`git refs verify` of 2.55 crashes. `git gc --prune=now` deletes every object, and a plain gc puts them into a cruft pack that expires."
	stackShort  = "the repository looks empty with exit code 0, and git gc deletes its objects: run no gc"
	stackRefuse = "Refuses the stack."
	stackMend   = "stop gc and maintenance, copy REPO/reftable away, and restore the table from a backup or a replica"

	// What `fix` makes of a table whose inside is damaged.
	insideFix  = "Refuses the stack: no table is rewritten that can't be believed as a whole."
	insideMend = "restore the table from a backup or a replica (refaudit dump FILE shows what is readable)"
)

func explainReftable() map[ID]Explanation {
	return map[ID]Explanation{
		ReftableUnreadable: {
			Means: "A table that tables.list names is too short, begins with something else than REFT, has an unknown version, or can't be read.",
			Comes: "A power cut, a full disk, a disk fault, or a copy that was made while git wrote.",
			Seen:  stackLooksEmpty,
			Fix:   stackRefuse,
			Short: stackShort,
			Mend:  stackMend,
		},
		ReftableCrc: {
			Means: "The footer of a table fails its CRC-32, or isn't the header again: one of the two is damaged.",
			Comes: "Bits flipped or bytes were overwritten. The checksum covers header and footer alone, so the records may well be whole.",
			Seen:  stackLooksEmpty,
			Fix:   stackRefuse,
			Short: stackShort,
			Mend:  stackMend + " (refaudit dump FILE shows what is readable)",
		},
		ReftableMissingTable: {
			Means: "tables.list names a table that is not there, also after the list was read again.",
			Comes: "The file was deleted or not copied, or a file system lost it after a crash.",
			Seen:  stackLooksEmpty,
			Fix:   stackRefuse,
			Short: stackShort,
			Mend:  stackMend,
		},
		ReftableListBad: {
			Means: "reftable/tables.list is absent or empty beside tables, names a table twice, names something outside the folder, or is not a list of names.",
			Comes: "A power cut, a full disk, a copy that left it out, or a script. git never leaves it empty while there are refs.",
			Seen: "Where the list is absent or empty, git takes the repository for an empty one, says nothing, and gc deletes its objects; the next update starts " +
				"a new stack, and processes that still have the old tables open delete them. A table that is named twice is read twice, until a compaction " +
				"removes it and leaves one of the lines. A path to a table within the folder is followed.",
			Fix:   "Leaves it, unless asked to put a lost list together again from the tables' update indexes; it shows what that will read as, asks, and writes the list last.",
			Short: "git sees no refs, now or after an update (a mere path it follows): stop every git process first",
			Mend:  "stop every git process, copy REPO/reftable away, then: refaudit fix --rebuild-tables-list REPO",
		},
		ReftableBlockOrder: {
			Means: "A block stands where its kind doesn't belong, claims a length that doesn't fit, or a key is not above the one before it.",
			Comes: "Bytes were overwritten, or the program that wrote the table has a bug: blocks have no checksum.",
			Seen:  "A length that doesn't fit makes every command of git 2.55 crash. Where keys are out of order, git lists refs that it can't look up, and `git refs verify` says nothing.",
			Fix:   insideFix,
			Short: "git crashes on the block, or lists refs that it can't look up; git refs verify says nothing",
			Mend:  insideMend,
		},
		ReftableRestart: {
			Means: "A restart point of a block, from which a look-up starts, lies outside the records, is out of order, or doesn't lead to a whole key.",
			Comes: "Bytes were overwritten, or the program that wrote the table has a bug: blocks have no checksum.",
			Seen:  "A restart that lies outside makes every command of git 2.55 crash; one that leads into the middle of a record makes look-ups fail while listing works.",
			Fix:   insideFix,
			Short: "git crashes on the block, or misses refs that it lists",
			Mend:  insideMend,
		},
		ReftableIndexMismatch: {
			Means: "An index of a table, over refs, objects or logs, doesn't agree with the blocks: a last key is wrong, a block is not reached, or a position leads elsewhere.",
			Comes: "Bytes were overwritten, or the program that wrote the table has a bug. Or the index is one block, longer than the block size, as JGit writes it with " +
				"reftable.indexLevels: the format allows that, and git 2.50 and later can't search it.",
			Seen: "Looking a ref up goes through the index and may miss it. A listing finds its beginning through the index too: where the first position is wrong, " +
				"`git for-each-ref` prints nothing and exits 0, and `git gc --prune=now` deletes every object.",
			Fix:   insideFix,
			Short: "git may miss refs, or list none and exit 0: don't run gc before it is mended",
			Mend:  insideMend,
		},
		ReftableUpdateIndex: {
			Means: "An update index lies outside the range that the table's header gives, or the ranges don't rise through the stack.",
			Comes: "Bytes were overwritten, tables were listed out of order by hand, or the program that wrote the table has a bug.",
			Seen:  "git goes by the position in the stack and JGit by the update index, so the two may serve different values; a reflog may show entries twice or out of order.",
			Fix:   insideFix,
			Short: "git and JGit may serve different values for a ref",
			Mend:  insideMend,
		},
		ReftableHashMismatch: {
			Means: "A table is written for another object format than the repository is configured for.",
			Comes: "extensions.objectFormat was lost from the configuration, or the table comes from another repository.",
			Seen:  stackLooksEmpty,
			Fix:   stackRefuse,
			Short: stackShort,
			Mend:  "put extensions.objectFormat right in REPO/config; if it is right, restore the table from a backup",
		},
		ReftableRecord: {
			Means: "A record of a table can't be decoded: a length runs over its block, a type is reserved, a prefix is longer than the key before it.",
			Comes: "Bytes were overwritten, or the program that wrote the table has a bug: blocks have no checksum.",
			Seen:  "A reserved type makes every command of git 2.55 abort; other damage ends the listing early or crashes git.",
			Fix:   insideFix,
			Short: "git crashes or stops listing at the record",
			Mend:  insideMend,
		},
		ReftableLog: {
			Means: "A log block of a table can't be inflated, or a reflog record in it is damaged or out of order.",
			Comes: "Bytes were overwritten, or the program that wrote the table has a bug.",
			Seen: "Refs are read and written as before, since reading them reads no log block; `git reflog` ends early, with exit code 0. Compaction copies " +
				"the log and fails, so that the stack grows and `git pack-refs` and gc give an error.",
			Fix:   insideFix,
			Short: "git reflog ends early without an error, and git pack-refs and gc fail; refs are still read",
			Mend:  insideMend + "; without the reflogs: git -C REPO refs migrate --no-reflog --ref-format=files",
		},
		ReftableDuplicate: {
			Means: "A name stands twice in one table; the format forbids that.",
			Comes: "The program that wrote the table has a bug, or bytes were overwritten.",
			Seen:  "`git refs verify` says nothing. Which of the two a reader gets depends on how it looks.",
			Fix:   insideFix,
			Short: "which of the two values a reader gets depends on how it looks",
			Mend:  "git -C REPO update-ref -d REF, then git -C REPO update-ref REF ID   (newer records hide both)",
		},
		ReftableObjIndexStale: {
			Means: "The object index of a table, which leads from an object id to the refs that name it, lacks an id or leads to the wrong block.",
			Comes: "A peel or an id was changed in place by a program that didn't rewrite the index.",
			Seen:  "git doesn't use the index. JGit answers from it which refs point to an object, and may miss some.",
			Fix:   "Is not a reason to write; `fix --compact`, which rewrites tables that hold bad records, writes their index anew.",
			Short: "JGit may miss refs when it asks which point to an object; git doesn't use this index",
			Mend:  "git -C REPO pack-refs --all   (writes tables and indexes anew, if there are several)",
		},
		ReftableOrphanTable: {
			Means: "A table lies in reftable/ and tables.list doesn't name it. Reported if it is older than a minute and nobody holds the lock of the list, " +
				"since git renames a table into place before it lists it.",
			Comes: "A process died between writing a table and listing it, or between compacting and deleting; or the list was lost or overwritten.",
			Seen: "Nobody reads it. `git pack-refs`, so also gc, deletes unlisted tables whose update indexes are not above the stack's. Where tables.list is " +
				"empty or absent these files are all that is left of the refs, and the finding is an error.",
			Fix:   "Leaves it, and never lists it again.",
			Short: "nobody reads it; if tables.list is empty or absent, it is all that is left of the refs",
			Mend:  "nothing to do, git gc removes it; if tables.list is lost: copy REPO/reftable away and stop every git process first",
		},
		ReftableOrder: {
			Means: "Two tables have a record of this name, and the newer one by position in tables.list is not the newer one by update index.",
			Comes: "Tables were listed in another order than they were written, or written with an update index that was not the next one.",
			Seen: "git goes by the position and JGit by the update index: they serve different values or peels for the ref. git can't compact such a stack " +
				"('misuse of the reftable API'), and an update may end up below the older record for JGit.",
			Fix:   "Leaves it; which of the two is meant is for a person to say. A record that it writes for a wrong peel has an update index above all others.",
			Short: "git and JGit serve different records of this ref",
			Mend:  "if git's values are the right ones: git -C REPO refs migrate --ref-format=files, then back, then refaudit fix REPO",
		},
	}
}
