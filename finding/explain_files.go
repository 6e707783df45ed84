package finding

func explainFiles() map[ID]Explanation {
	return map[ID]Explanation{
		LockLeftover: {
			Means: "A temporary file of a writer is still there: packed-refs.new, or a temporary table in reftable/.",
			Comes: "The writer was killed or the machine went down. git makes these files anew each time and never clears one that is there.",
			Seen: "packed-refs.new blocks every rewrite: `git pack-refs` and gc fail with 'File exists', and deleting a packed ref fails, though nobody holds a lock. " +
				"Reading works. A temporary table only takes room.",
			Fix:   "Removes a packed-refs.new once it holds the lock: then nobody can be writing it. The rest it leaves.",
			Short: "a packed-refs.new makes deleting packed refs, git pack-refs and gc fail; reading works",
			Mend:  "refaudit fix REPO",
		},
		StaleLock: {
			Means: "A lock file has stood for long. Its size says nothing: git's lock of packed-refs is always empty, because the data goes to packed-refs.new.",
			Comes: "The process that held it was killed, or it is still at work. The finding names age and, where core.lockfilePid is set, the holder.",
			Seen: "Reading works. With packed-refs.lock, deleting a packed ref and pack-refs fail after core.packedRefsTimeout (1 s); with tables.list.lock, every " +
				"update after reftable.lockTimeout (0.1 s); with a table's own lock, compaction, so that the stack grows.",
			Fix:   "Waits for a lock and ends with code 5 if it stays. It removes another's lock only when asked by --stale-locks with an age, after seeing it unchanged twice.",
			Short: "reading works; deleting refs, updates of a reftable, pack-refs or gc fail until it is gone",
			Mend:  "make sure that no git is at work, then: refaudit fix --stale-locks --older-than=1h REPO",
		},
		PermissionMode: {
			Means: "A file of the ref store can't be opened by the repository's other readers, by what core.sharedRepository or the mode of its neighbours says.",
			Comes: "A program ran as root or with another umask and replaced the file.",
			Seen: "The owner sees nothing. Other users can't read refs: with packed-refs git dies with 'Permission denied'; with a table or tables.list the repository " +
				"looks empty to them, and the finding is an error.",
			Fix:   "Leaves the mode of a file that it doesn't replace; what it writes is readable for everyone who could read it before.",
			Short: "other users can't read the refs; a reftable that they can't open looks empty to them",
			Mend:  "chmod and chown the file as its neighbours are",
		},
		ServerInfoPeel: {
			Means: "info/refs, the list of refs and peels for dumb HTTP, differs from the refs: it gives a wrong peel for a value that the ref still has, or, told once and as info only, " +
				"it is older than the refs.",
			Comes: "It is written by `git update-server-info` alone, run by gc, repack and the post-update hook: a ref changed since. A wrong peel comes from refs/replace/, as in packed-refs, or " +
				"from a git that peeled a tag of a false type.",
			Seen:  "Clients of dumb HTTP are served the values and peels of that file; ssh, git:// and smart HTTP don't use it.",
			Fix:   "Leaves it.",
			Short: "clients of dumb HTTP get old values and peels; other protocols don't use the file",
			Mend:  "git -C REPO update-server-info, or remove info/refs if nobody serves it",
		},
	}
}
