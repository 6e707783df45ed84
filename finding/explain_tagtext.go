package finding

// textFault explains a fault of a tag's text that git reads over, and its strict check refuses.
func textFault(means, comes string) Explanation {
	return Explanation{
		Means: means,
		Comes: comes,
		Seen: "Every git reads, peels and serves the tag. `git fsck` reports it with exit code 1, and a server or client with fsckObjects set refuses " +
			"to receive it; by default neither checks.",
		Fix:   "Leaves it: a tag is an object, and its peel is right.",
		Short: "git serves the tag; receivers that check objects (fsckObjects) refuse it",
		Mend:  "make the tag anew; for an old one that must stay, set fsck.<msg-id> or name it in refaudit.skipList",
	}
}

// fatalFault explains a fault of a tag's text whose severity no setting lowers.
func fatalFault(means string) Explanation {
	e := textFault(means+" git calls this fatal: no setting lowers it.", handmade)
	e.Mend = "make the tag anew"
	return e
}

// unparsable explains a fault that git can't read over.
func unparsable(means string) Explanation {
	return Explanation{
		Means: means,
		Comes: "The tag was made by hand or by a conversion tool, and written without a check (`git hash-object --literally`).",
		Seen: "git can't parse the tag: it has no peel, a clone of everything dies with 'not our ref', `git for-each-ref` stops at it, and `git fsck` says " +
			"'object could not be parsed' without this id. Receiving it is refused by fsckObjects.",
		Fix:   "Leaves the tag and its ref; a peel stored beside it is dropped. Asked to, it deletes the ref and keeps ref and tag in the journal for undo.",
		Short: "git can't parse the tag: clone dies with 'not our ref', git for-each-ref stops at it",
		Mend:  "make the tag anew, or: " + dropTags,
	}
}

// harmless explains what git's strict check only warns of.
func harmless(means, comes, seen string) Explanation {
	return Explanation{
		Means: means,
		Comes: comes,
		Seen:  seen,
		Fix:   "Leaves it: a tag is an object, and its peel is right.",
		Short: "git serves the tag, also to receivers that check objects",
		Mend:  "nothing to do",
	}
}

const (
	handmade   = "The tag was made by hand or by a conversion tool, and written without a check (`git hash-object --literally`)."
	conversion = "A conversion from another version control system, or a tool that made the line itself."
	overflow   = "A conversion from another version control system, or a clock gone wrong."
)

func explainTagText() map[ID]Explanation {
	return map[ID]Explanation{
		NulInHeader:        fatalFault("The header of the tag, before the blank line, has a NUL in it."),
		UnterminatedHeader: fatalFault("The header of the tag ends neither in a blank line nor with a newline."),
		BadDate:            textFault("The date in the `tagger` line is no number.", conversion),
		BadDateOverflow:    textFault("The date in the `tagger` line is too large for git's time.", overflow),
		BadEmail:           textFault("The e-mail address in the `tagger` line has no closing `>`, or another `<` in it.", conversion),
		BadGpgsig:          textFault("The `gpgsig` line of the tag doesn't end. git's check of the whole header comes first, so that git says unterminatedHeader.", handmade),
		BadHeaderContinuation: textFault("A line that continues the tag's `gpgsig` doesn't end. git's check of the whole header comes first, so that git says unterminatedHeader.",
			handmade),
		BadName:                 textFault("The name in the `tagger` line has a `>` in it.", conversion),
		BadObjectSha1:           unparsable("The `object` line of the tag holds no object id, or something follows the id."),
		BadTimezone:             textFault("The time zone in the `tagger` line is not a sign and four digits, or something follows it.", conversion),
		BadType:                 unparsable("The `type` line of the tag names none of commit, tree, blob and tag."),
		MissingEmail:            textFault("The `tagger` line has no e-mail address.", conversion),
		MissingNameBeforeEmail:  textFault("The `tagger` line begins with the e-mail address: there is no name.", conversion),
		MissingObject:           unparsable("The tag doesn't begin with an `object` line."),
		MissingSpaceBeforeDate:  textFault("There is no space between the e-mail address and the date of the `tagger` line.", conversion),
		MissingSpaceBeforeEmail: textFault("There is no space between the name and the e-mail address of the `tagger` line.", conversion),
		MissingTag:              unparsable("The `tag` line of the tag doesn't end."),
		MissingTagEntry:         unparsable("There is no `tag` line after the `type` line of the tag."),
		MissingType:             unparsable("The `type` line of the tag doesn't end."),
		MissingTypeEntry:        unparsable("There is no `type` line after the `object` line of the tag."),
		ZeroPaddedDate:          textFault("The date in the `tagger` line begins with a 0.", conversion),
		BadTagName: harmless("The name in the tag's `tag` line could not be the name of a ref below refs/tags/.",
			"A conversion, a CR at the end of the line, or a name that an old git allowed.",
			"Every git reads, peels and serves the tag. `git fsck` and receivers that check objects print a warning and accept it."),
		MissingTaggerEntry: harmless("The tag has no `tagger` line.",
			"Tags of 2005 have none (v2.6.13-rc1 of the Linux kernel), and some tools leave it out.",
			"Every git reads, peels and serves the tag. `git fsck` and receivers that check objects print a warning and accept it; some other parsers refuse it."),
		ExtraHeaderEntry: harmless("The header of the tag has a line after `tagger` that git doesn't know.",
			"A tool keeps data of its own there.",
			"Every git reads, peels and serves the tag, and says nothing unless fsck.extraHeaderEntry is set; `git mktag` refuses to make one."),
	}
}
