package archtest

// An arrow lets one package use others of ours, outside its tests.
type arrow struct {
	from string
	to   string // names, separated by blanks
	why  string
}

// From what decides to what knows:
//
//	cmd -> front ends -> scan, repair, alternates/usage -> internal/refstore -> repo, odb, codecs, peel, alternates -> finding, oid
var arrows = []arrow{
	// the shared vocabulary
	{"oid", "", "imports nothing of ours"},
	{"finding", "oid", "a finding names objects"},

	// bytes and names
	{"internal/binread", "finding", "the first failure of a cursor is a finding"},
	{"internal/inflate", "", "zlib streams, nothing else"},
	{"internal/delta", "", "deltas between objects, nothing else"},
	{"internal/wildmatch", "", "git's patterns, nothing else"},
	{"internal/logging", "", "lines for operators, nothing else"},
	{"internal/child", "", "programs that may hang, ended with all that they have started"},
	{"internal/account", "internal/child", "users of the machine, nothing else; getent may hang"},
	{"internal/refname", "internal/wildmatch", "git's rules for names, and patterns of them"},

	// files
	{"internal/vfs", "", "the one door to the file system"},
	{"internal/crashfs", "internal/vfs", "a vfs.FS that fails and crashes, for tests"},
	{"internal/lockfile", "internal/vfs", "git's lock protocol, over vfs.FS"},
	{"internal/state", "internal/vfs", "what is remembered from one run to the next, outside of every repository"},
	{"internal/journal", "finding oid internal/vfs", "what a repair is about to change, kept outside the repository"},

	// the rules
	{"peel", "finding oid", "asks for objects through an interface of its own"},

	// codecs: bytes in, records out, and back
	{"packed", "finding oid internal/binread internal/refname", "packed-refs"},
	{"loose", "finding oid internal/binread internal/refname", "ref files, HEAD"},
	{"reftable", "finding oid internal/binread internal/inflate internal/refname", "tables; log blocks are deflated"},
	{"internal/bitmap", "finding oid internal/binread", ".bitmap and .rev files"},
	{"internal/commitgraph", "finding oid internal/binread", "commit-graph files"},
	{"internal/gitconfig", "finding oid internal/wildmatch", "config syntax; conditional includes are patterns"},

	{"internal/tagtext", "finding oid internal/refname", "what git fsck says of a tag's text"},

	// a repository
	{"alternates", "finding oid internal/vfs", "the info/alternates chain"},
	{"odb", "finding oid alternates internal/binread internal/delta internal/inflate internal/vfs", "objects, through packs, loose files and alternates"},
	{"repo", "finding oid internal/account internal/gitconfig internal/refname internal/vfs internal/wildmatch", "git dir, worktrees, config"},
	{"internal/refstore", "finding oid peel odb alternates packed loose reftable repo internal/refname internal/vfs", "the refs of a repository, whatever its format"},

	// what is done with it
	{"scan", "finding oid peel packed loose reftable odb repo alternates internal/refstore internal/refname internal/tagtext internal/vfs internal/wildmatch internal/gitconfig", "one audit from start to end"},
	{"repair", "finding oid peel packed reftable odb repo alternates scan internal/refstore internal/refname internal/vfs internal/lockfile internal/journal internal/wildmatch", "plans from what a scan finds, writes under git's locks"},
	{"alternates/usage", "finding oid odb repo alternates internal/child internal/refstore internal/bitmap internal/commitgraph internal/binread internal/delta internal/inflate internal/refname internal/vfs internal/wildmatch", "disk usage; --exclude and alternateRefsPrefixes are patterns of names"},
	{"reports", "finding oid alternates/usage", "renders findings and usage"},

	// front ends
	{"internal/fleet", "finding oid peel alternates repo scan internal/refname internal/refstore internal/state internal/vfs", "many repositories in one run: which of them, and what earlier runs saw; names and peels for guard and fingerprint come from the stores"},
	{"internal/hook", "finding oid peel odb repo scan internal/gitconfig internal/refname internal/tagtext internal/vfs", "pre-receive"},
	{"internal/remote", "finding oid odb scan internal/gitconfig internal/refname internal/vfs", "one server's repository, over git's own transport; judged by scan in a scratch repository"},
	{"internal/remotehelper", "finding oid odb scan repo internal/remote internal/lockfile internal/logging internal/vfs", "git-remote-refaudit; the file shallow changes under git's lock"},
	{"cmd/refaudit", "finding oid scan repair alternates/usage reports repo packed reftable internal/fleet internal/state internal/refname internal/hook internal/remote internal/remotehelper internal/account internal/gitconfig internal/logging internal/vfs internal/wildmatch", "the command line; dump prints what the codecs read"},

	// for tests
	{"internal/gittest", "finding oid", "says which findings a scan has to give"},
	{"internal/archtest", "", "reads source"},
}

// testOnly are packages that no program of ours contains.
var testOnly = map[string]bool{"internal/gittest": true, "internal/archtest": true, "internal/crashfs": true}

// A use lets packages import something that is not ours.
type use struct {
	what  string // an import path; "…/..." stands for it and everything below
	by    string // names, separated by blanks
	tests string // names of packages that may in their tests; "*": all
	why   string
}

// uses are the modules of others, and those parts of the standard library that reach outside.
// What is in no row is free if it is of the standard library, else forbidden.
var uses = []use{
	{"github.com/urfave/cli/v2", "cmd/refaudit", "", "commands and flags"},
	{"golang.org/x/term", "cmd/refaudit", "", "is this a terminal, and how wide"},
	{"go.uber.org/zap/zapcore", "internal/logging", "", "logs for operators; package zap brings net/http into every start"},
	{"golang.org/x/sys/...", "internal/vfs internal/lockfile", "internal/vfs internal/lockfile repo repair cmd/refaudit", "system calls that os lacks"},
	{"github.com/go-git/go-git/v5/plumbing/object", "", "peel odb", "DecodeTag as a second opinion"},
	{"github.com/go-git/...", "", "*", "fixtures in tests; never an object or a ref of a user's repository"},

	{"os/exec", "alternates/usage internal/account internal/child internal/remote internal/gittest cmd/refaudit repair", "*", "core.alternateRefsCommand, users that are not in the machine's own database, the helper's inner git, a child with another owner's id"},
	{"os/user", "internal/account", "internal/account", "where it does without the C library"},
	{"syscall", "repo internal/vfs internal/lockfile internal/child internal/gittest internal/remote cmd/refaudit repair", "*", "signals and process groups; access(2) and devices in the discovery of a repository"},
	{"unsafe", "internal/vfs", "", "a mapping on Windows"},
	{"C", "", "", "the program is pure Go"},
	{"net/url", "internal/remote reports", "*", "the syntax of URLs, nothing else"},
	{"net/...", "internal/gittest", "*", "git talks to servers, we do not; a web server for tests"},
	{"log", "", "", "internal/logging does this"},
	{"log/slog", "", "", "internal/logging does this"},
	{"os", "alternates alternates/usage odb internal/account internal/refstore repo scan repair internal/vfs internal/lockfile internal/journal internal/crashfs internal/gitconfig internal/fleet internal/hook internal/remote internal/remotehelper internal/gittest internal/archtest cmd/refaudit", "*", "codecs and rules open no files"},
}

// writers are the functions of os that change a file system, or open a file such that one can.
const writers = "Chmod Chown Chtimes CopyFS Create CreateTemp Lchown Link Mkdir MkdirAll MkdirTemp OpenFile OpenRoot Remove RemoveAll Rename Root Symlink Truncate WriteFile"

// A leave lets a package spell some of the writers, or of vfs's write side.
type leave struct {
	by   string // a package, or one file of it
	what string // "*": all
	why  string
}

var leaves = []leave{
	{"internal/vfs", "*", "the one door"},
	{"internal/crashfs", "*", "puts what survived a crash on a disk, for git to look at; tests only"},
	{"internal/gittest", "*", "makes repositories; tests only"},
	{"internal/hook/install.go", "Chmod CreateTemp Link Mkdir MkdirAll Remove Rename Symlink", "a hook is a script of the owner's, put beside the repository on his order; it is no part of the refs"},
	{"internal/hook/former.go", "Remove Rename Symlink", "takes back what install.go once wrote"},
	{"cmd/refaudit/common.go", "CreateTemp Rename Remove OpenFile", "-o FILE is the user's own file: written beside its place, then renamed; a device or a pipe is written to"},
}

// vfsWriters are the names of vfs that can write, and who may say them.
const vfsWriters = "FS OS File Hold"

var vfsWriting = []leave{
	{"internal/lockfile", "*", "takes and commits locks"},
	{"internal/state", "*", "writes its files, outside of any repository"},
	{"internal/journal", "*", "writes its entries, outside of any repository"},
	{"internal/crashfs", "*", "is one"},
	{"repair", "*", "the only package that changes a repository"},
	{"internal/remote", "*", "scratch repositories, in TMPDIR or in a quarantine"},
	{"internal/remotehelper", "*", "moves judged objects from a quarantine into the client, as git's own transports do"},
	{"cmd/refaudit", "OS", "hands the real one to repair"},
	{"internal/hook", "OS", "makes the names of hooks durable"},
}
