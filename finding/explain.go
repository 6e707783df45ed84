package finding

import (
	"maps"
	"sync"
)

// Explanation says in plain words what an id is about. What it claims of git was seen with
// 2.39, 2.47 and 2.55; what it claims of other readers is in their sources.
//
// In Seen, Fix and Mend, REPO stands for the path of the repository, REF for the full name of
// the ref, and ID for an object id.
type Explanation struct {
	Means string // what is wrong
	Comes string // how it comes about
	Seen  string // what readers of the repository see
	Fix   string // what `refaudit fix` does about it
	Short string // Seen in one line of at most ShortMax bytes, for reports
	Mend  string // the command or the action that mends it, in one line
}

// ShortMax is the longest Explanation.Short.
const ShortMax = 110

// Explain finds what there is to say of an id; ok is false for an unknown one.
func Explain(id ID) (e Explanation, ok bool) {
	e, ok = explanations()[id]
	return e, ok
}

// explainers have each id of the catalogue once. Most runs explain nothing, and need none of the texts.
var explainers = []func() map[ID]Explanation{
	explainGit, explainPeels, explainTags, explainPacked, explainReftable,
	explainFiles, explainAlternates, explainAudit, explainTagText,
}

var explanations = sync.OnceValue(func() map[ID]Explanation {
	all := make(map[ID]Explanation, len(Catalog))
	for _, part := range explainers {
		maps.Copy(all, part())
	}
	return all
})

// Group is a part of the catalogue that belongs together.
type Group struct {
	Title   string
	Entries []Entry
}

// groupTitles gives the first id of each group, in the order of the catalogue.
var groupTitles = []struct {
	first ID
	title string
}{
	{BadHeadTarget, "git's checks of references"},
	{PeelMismatch, "Cached peels"},
	{TagTypeMismatch, "Tags and the objects of references"},
	{PackedRefShadowed, "packed-refs and reference names"},
	{ReftableUnreadable, "Reftables"},
	{LockLeftover, "Files beside the references"},
	{AlternateMissing, "Alternates and disk usage"},
	{AuditSkipped, "The audit itself"},
	{NulInHeader, "git's checks of a tag's text"},
}

// Groups cuts the catalogue into its parts.
func Groups() []Group {
	var groups []Group
	for i := range Catalog {
		if n := len(groups); n < len(groupTitles) && Catalog[i].ID == groupTitles[n].first {
			groups = append(groups, Group{Title: groupTitles[n].title})
		}
		last := &groups[len(groups)-1]
		last.Entries = append(last.Entries, Catalog[i])
	}
	return groups
}
