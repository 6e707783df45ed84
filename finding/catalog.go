package finding

import (
	"strings"
	"sync"
)

// The ids, grouped as docs/msg-ids.md lists them.
const (
	// git's own: ids, severities and wording are git's

	BadHeadTarget               ID = "badHeadTarget"
	BadPackedRefEntry           ID = "badPackedRefEntry"
	BadPackedRefHeader          ID = "badPackedRefHeader"
	BadRefContent               ID = "badRefContent"
	BadRefFiletype              ID = "badRefFiletype"
	BadRefName                  ID = "badRefName"
	BadRefOid                   ID = "badRefOid"
	BadReferentName             ID = "badReferentName"
	BadReftableTableName        ID = "badReftableTableName"
	EmptyPackedRefsFile         ID = "emptyPackedRefsFile"
	PackedRefEntryNotTerminated ID = "packedRefEntryNotTerminated"
	PackedRefUnsorted           ID = "packedRefUnsorted"
	RefMissingNewline           ID = "refMissingNewline"
	SymlinkRef                  ID = "symlinkRef"
	SymrefTargetIsNotARef       ID = "symrefTargetIsNotARef"
	TrailingRefContent          ID = "trailingRefContent"

	// peels

	PeelMismatch     ID = "peelMismatch"
	PeelUnexpected   ID = "peelUnexpected"
	PeelPartial      ID = "peelPartial"
	PeelOrphan       ID = "peelOrphan"
	PeelOfCorruptTag ID = "peelOfCorruptTag"
	PeelMissing      ID = "peelMissing"
	PeelUnverifiable ID = "peelUnverifiable"

	// tags and objects

	TagTypeMismatch   ID = "tagTypeMismatch"
	TagTargetMissing  ID = "tagTargetMissing"
	TagUnreadable     ID = "tagUnreadable"
	TagNameMismatch   ID = "tagNameMismatch"
	RefTargetMissing  ID = "refTargetMissing"
	RefTypeNotAllowed ID = "refTypeNotAllowed"

	// packed-refs and ref names

	PackedRefShadowed   ID = "packedRefShadowed"
	PackedRefStyle      ID = "packedRefStyle"
	PackedRefDuplicate  ID = "packedRefDuplicate"
	HeaderTraitFalse    ID = "headerTraitFalse"
	HeaderMissing       ID = "headerMissing"
	RefNameConflict     ID = "refNameConflict"
	RefsDirShared       ID = "refsDirShared"
	WorktreeHeadMissing ID = "worktreeHeadMissing"

	// reftables

	ReftableUnreadable    ID = "reftableUnreadable"
	ReftableCrc           ID = "reftableCrc"
	ReftableMissingTable  ID = "reftableMissingTable"
	ReftableListBad       ID = "reftableListBad"
	ReftableBlockOrder    ID = "reftableBlockOrder"
	ReftableRestart       ID = "reftableRestart"
	ReftableIndexMismatch ID = "reftableIndexMismatch"
	ReftableUpdateIndex   ID = "reftableUpdateIndex"
	ReftableHashMismatch  ID = "reftableHashMismatch"
	ReftableRecord        ID = "reftableRecord"
	ReftableLog           ID = "reftableLog"
	ReftableDuplicate     ID = "reftableDuplicate"
	ReftableObjIndexStale ID = "reftableObjIndexStale"
	ReftableOrphanTable   ID = "reftableOrphanTable"
	ReftableOrder         ID = "reftableOrder"

	// files beside the refs

	LockLeftover   ID = "lockLeftover"
	StaleLock      ID = "staleLock"
	PermissionMode ID = "permissionMode"
	ServerInfoPeel ID = "serverInfoPeel"

	// alternates and usage

	AlternateMissing        ID = "alternateMissing"
	AlternateRefsUnreadable ID = "alternateRefsUnreadable"
	AlternateSyntax         ID = "alternateSyntax"
	AlternateCycle          ID = "alternateCycle"
	AlternateSelf           ID = "alternateSelf"
	AlternateExclusionEmpty ID = "alternateExclusionEmpty"
	BitmapUnusable          ID = "bitmapUnusable"

	// about the audit itself

	AuditSkipped ID = "auditSkipped"

	// git fsck's: what it says of a tag's text

	NulInHeader             ID = "nulInHeader"
	UnterminatedHeader      ID = "unterminatedHeader"
	BadDate                 ID = "badDate"
	BadDateOverflow         ID = "badDateOverflow"
	BadEmail                ID = "badEmail"
	BadGpgsig               ID = "badGpgsig"
	BadHeaderContinuation   ID = "badHeaderContinuation"
	BadName                 ID = "badName"
	BadObjectSha1           ID = "badObjectSha1"
	BadTimezone             ID = "badTimezone"
	BadType                 ID = "badType"
	MissingEmail            ID = "missingEmail"
	MissingNameBeforeEmail  ID = "missingNameBeforeEmail"
	MissingObject           ID = "missingObject"
	MissingSpaceBeforeDate  ID = "missingSpaceBeforeDate"
	MissingSpaceBeforeEmail ID = "missingSpaceBeforeEmail"
	MissingTag              ID = "missingTag"
	MissingTagEntry         ID = "missingTagEntry"
	MissingType             ID = "missingType"
	MissingTypeEntry        ID = "missingTypeEntry"
	ZeroPaddedDate          ID = "zeroPaddedDate"
	BadTagName              ID = "badTagName"
	MissingTaggerEntry      ID = "missingTaggerEntry"
	ExtraHeaderEntry        ID = "extraHeaderEntry"
)

// Entry is one row of the catalogue.
type Entry struct {
	ID      ID
	Default Severity
	Floor   Severity // no setting lowers it below this
	Summary string   // one line, without a full stop
	Git     bool     // one of git's ids: fsck.<msg-id> counts, and --strict raises only a default warn
}

// Catalog is every id there is, in the order of docs/msg-ids.md.
var Catalog = []Entry{
	{ID: BadHeadTarget, Default: Error, Summary: "HEAD points outside refs/heads/", Git: true},
	{ID: BadPackedRefEntry, Default: Error, Summary: "a line of packed-refs that is no entry", Git: true},
	{ID: BadPackedRefHeader, Default: Error, Summary: "a header of packed-refs that git does not know", Git: true},
	{ID: BadRefContent, Default: Error, Summary: "a ref file that holds neither an object id nor a symref", Git: true},
	{ID: BadRefFiletype, Default: Error, Summary: "a ref that is neither a regular file nor a symbolic link", Git: true},
	{ID: BadRefName, Default: Error, Summary: "a ref name that git refuses", Git: true},
	{ID: BadRefOid, Default: Error, Summary: "a ref that holds no usable object id", Git: true},
	{ID: BadReferentName, Default: Error, Summary: "a symref whose target has a name that git refuses", Git: true},
	{ID: BadReftableTableName, Default: Warn, Summary: "a table whose file name is not git's", Git: true},
	{ID: EmptyPackedRefsFile, Default: Info, Summary: "packed-refs is empty", Git: true},
	{ID: PackedRefEntryNotTerminated, Default: Error, Summary: "the last line of packed-refs has no newline", Git: true},
	{ID: PackedRefUnsorted, Default: Error, Summary: "packed-refs is not in the order that its header promises", Git: true},
	{ID: RefMissingNewline, Default: Info, Summary: "a ref file without a newline at its end", Git: true},
	{ID: SymlinkRef, Default: Info, Summary: "a symbolic link used as a symref", Git: true},
	{ID: SymrefTargetIsNotARef, Default: Info, Summary: "a symref whose target lies outside refs/", Git: true},
	{ID: TrailingRefContent, Default: Info, Summary: "a ref file with something after its value", Git: true},
	{ID: PeelMismatch, Default: Error, Summary: "a cached peel that is another object than the tag leads to"},
	{ID: PeelUnexpected, Default: Error, Summary: "a cached peel at a ref that is no tag"},
	{ID: PeelPartial, Default: Error, Summary: "a cached peel that is a tag further up the same chain"},
	{ID: PeelOrphan, Default: Error, Summary: "a ^ line that belongs to no ref"},
	{ID: PeelOfCorruptTag, Default: Error, Summary: "a cached peel of a tag that is corrupt"},
	{ID: PeelMissing, Default: Warn, Summary: "no cached peel where the file promises one"},
	{ID: PeelUnverifiable, Default: Info, Summary: "a peel whose truth can't be known here"},
	{ID: TagTypeMismatch, Default: Error, Summary: "a tag that claims another type than its target has"},
	{ID: TagTargetMissing, Default: Error, Summary: "a tag whose target is absent"},
	{ID: TagUnreadable, Default: Error, Summary: "a tag that can't be read, parsed or does not hash to its name"},
	{ID: TagNameMismatch, Default: Ignore, Summary: "a tag served under another name than its own"},
	{ID: RefTargetMissing, Default: Error, Summary: "a ref whose object is absent"},
	{ID: RefTypeNotAllowed, Default: Error, Summary: "a branch that is no commit"},
	{ID: PackedRefShadowed, Default: Info, Summary: "a packed entry that a loose ref hides"},
	{ID: PackedRefStyle, Default: Info, Summary: "an entry that git reads and other readers may not"},
	{ID: PackedRefDuplicate, Default: Error, Summary: "a name that stands more than once in packed-refs"},
	{ID: HeaderTraitFalse, Default: Error, Summary: "a header that claims sorted or fully-peeled, untruly"},
	{ID: HeaderMissing, Default: Info, Summary: "a packed-refs file without a header"},
	{ID: RefNameConflict, Default: Error, Summary: "names that can't stand beside each other"},
	{ID: RefsDirShared, Default: Error, Summary: "a refs folder that lies outside the repository"},
	{ID: WorktreeHeadMissing, Default: Error, Summary: "a worktree whose HEAD names an absent object"},
	{ID: ReftableUnreadable, Default: Error, Summary: "a stack or table that can't be read", Floor: Warn},
	{ID: ReftableCrc, Default: Error, Summary: "a table whose header or footer fails its checksum", Floor: Warn},
	{ID: ReftableMissingTable, Default: Error, Summary: "a table that tables.list names and that is gone", Floor: Warn},
	{ID: ReftableListBad, Default: Error, Summary: "a tables.list that can't be believed", Floor: Warn},
	{ID: ReftableBlockOrder, Default: Error, Summary: "blocks or keys out of order"},
	{ID: ReftableRestart, Default: Error, Summary: "a restart point that leads nowhere"},
	{ID: ReftableIndexMismatch, Default: Error, Summary: "an index that disagrees with its blocks"},
	{ID: ReftableUpdateIndex, Default: Error, Summary: "an update index outside its range"},
	{ID: ReftableHashMismatch, Default: Error, Summary: "a table of another object format than the repository"},
	{ID: ReftableRecord, Default: Error, Summary: "a record that can't be decoded or is impossible"},
	{ID: ReftableLog, Default: Error, Summary: "a log block or record that is damaged"},
	{ID: ReftableDuplicate, Default: Error, Summary: "a name that stands twice in one table"},
	{ID: ReftableObjIndexStale, Default: Warn, Summary: "an object index that disagrees with the refs"},
	{ID: ReftableOrphanTable, Default: Warn, Summary: "a table that tables.list does not name"},
	{ID: ReftableOrder, Default: Warn, Summary: "a name for which git and JGit read different records"},
	{ID: LockLeftover, Default: Warn, Summary: "a temporary file that a writer left behind"},
	{ID: StaleLock, Default: Warn, Summary: "a lock file that has stood for long"},
	{ID: PermissionMode, Default: Warn, Summary: "a file that the repository's other readers can't open"},
	{ID: ServerInfoPeel, Default: Warn, Summary: "info/refs differs from the refs"},
	{ID: AlternateMissing, Default: Error, Summary: "an alternate that is not there"},
	{ID: AlternateRefsUnreadable, Default: Error, Summary: "an alternate whose refs can't be read"},
	{ID: AlternateSyntax, Default: Warn, Summary: "a line of info/alternates that can't be understood"},
	{ID: AlternateCycle, Default: Warn, Summary: "alternates that lead back to where they came from"},
	{ID: AlternateSelf, Default: Warn, Summary: "an alternate that is the object folder itself"},
	{ID: AlternateExclusionEmpty, Default: Error, Summary: "an exclusion of alternates that excludes nothing"},
	{ID: BitmapUnusable, Default: Warn, Summary: "a bitmap, .rev or multi-pack-index that can't be believed"},
	{ID: AuditSkipped, Default: Warn, Summary: "a check that could not be made"},
	{ID: NulInHeader, Default: Fatal, Summary: "a NUL in the header of a tag", Floor: Fatal, Git: true},
	{ID: UnterminatedHeader, Default: Fatal, Summary: "a header that does not end", Floor: Fatal, Git: true},
	{ID: BadDate, Default: Error, Summary: "a tagger line with a date that is no number", Git: true},
	{ID: BadDateOverflow, Default: Error, Summary: "a tagger line with a date that is too large", Git: true},
	{ID: BadEmail, Default: Error, Summary: "a tagger line with a bad e-mail address", Git: true},
	{ID: BadGpgsig, Default: Error, Summary: "a gpgsig header that is malformed", Git: true},
	{ID: BadHeaderContinuation, Default: Error, Summary: "a header line that continues nothing", Git: true},
	{ID: BadName, Default: Error, Summary: "a tagger line with a bad name", Git: true},
	{ID: BadObjectSha1, Default: Error, Summary: "an object line that holds no object id", Git: true},
	{ID: BadTimezone, Default: Error, Summary: "a tagger line with a bad time zone", Git: true},
	{ID: BadType, Default: Error, Summary: "a type line that names no type", Git: true},
	{ID: MissingEmail, Default: Error, Summary: "a tagger line without an e-mail address", Git: true},
	{ID: MissingNameBeforeEmail, Default: Error, Summary: "a tagger line without a name", Git: true},
	{ID: MissingObject, Default: Error, Summary: "a tag without an object line", Git: true},
	{ID: MissingSpaceBeforeDate, Default: Error, Summary: "a tagger line without a space before its date", Git: true},
	{ID: MissingSpaceBeforeEmail, Default: Error, Summary: "a tagger line without a space before its e-mail address", Git: true},
	{ID: MissingTag, Default: Error, Summary: "a tag whose tag line has no end", Git: true},
	{ID: MissingTagEntry, Default: Error, Summary: "a tag without a tag line", Git: true},
	{ID: MissingType, Default: Error, Summary: "a tag whose type line has no end", Git: true},
	{ID: MissingTypeEntry, Default: Error, Summary: "a tag without a type line", Git: true},
	{ID: ZeroPaddedDate, Default: Error, Summary: "a tagger line with a date that begins with 0", Git: true},
	{ID: BadTagName, Default: Info, Summary: "a tag whose own name is no ref name", Git: true},
	{ID: MissingTaggerEntry, Default: Info, Summary: "a tag without a tagger line", Git: true},
	{ID: ExtraHeaderEntry, Default: Ignore, Summary: "a header line that git does not know", Git: true},
}

// names finds entries by id, and by id in lower case. Most runs find nothing, and need neither.
var names = sync.OnceValues(func() (byID map[ID]*Entry, byLower map[string]*Entry) {
	byID, byLower = make(map[ID]*Entry, len(Catalog)), make(map[string]*Entry, len(Catalog))
	for i := range Catalog {
		e := &Catalog[i]
		byID[e.ID] = e
		byLower[strings.ToLower(string(e.ID))] = e
	}
	return byID, byLower
})

// Lookup finds the entry of an id; nil for an unknown one.
func Lookup(id ID) *Entry {
	byID, _ := names()
	return byID[id]
}

// ParseID reads an id in any case, as the keys of git config come.
func ParseID(word string) (ID, bool) {
	_, byLower := names()
	if e := byLower[strings.ToLower(word)]; e != nil {
		return e.ID, true
	}
	return "", false
}

// Default is the severity of an id where nothing is configured.
func Default(id ID) Severity {
	if e := Lookup(id); e != nil {
		return e.Default
	}
	return Error
}
