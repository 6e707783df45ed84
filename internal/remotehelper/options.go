package remotehelper

import (
	"slices"
	"strconv"
	"strings"

	"refaudit/internal/remote"
)

// options are what git has set, in force until it sets something else.
type options struct {
	objectFormat bool
	progress     bool
	verbosity    int

	cloning, updateShallow, refetch bool
	depth                           int
	deepenRelative                  bool
	deepenSince                     string
	deepenNot                       []string
	filter                          string
	family                          string

	dryRun, atomic, forceIfIncludes bool
	pushCert                        string
	leases, pushOptions             []string
}

// The answers to an option.
const (
	optionOK      = "ok"
	optionUnknown = "unsupported"
)

// set sets an option and gives the answer. Values may stand in C-style quotes.
func (o *options) set(name, value string) string {
	if strings.HasPrefix(value, `"`) {
		text, rest, err := remote.Unquote(value)
		if err != nil || rest != "" {
			return "error bad quotes"
		}
		value = text
	}
	if into, ok := o.flag(name); ok {
		return setFlag(into, value)
	}
	if strings.ContainsRune(value, 0) {
		return "error a NUL"
	}
	switch name {
	case "verbosity":
		return setNumber(&o.verbosity, value)
	case "depth":
		return setNumber(&o.depth, value)
	case "deepen-since":
		o.deepenSince = value
	case "deepen-not":
		o.deepenNot = append(o.deepenNot, value)
	case "filter":
		o.filter = value
	case "family":
		return setWord(&o.family, value, "ipv4", "ipv6")
	case "pushcert":
		return setWord(&o.pushCert, value, "true", "if-asked")
	case "cas":
		o.leases = append(o.leases, value)
	case "push-option":
		o.pushOptions = append(o.pushOptions, value)
	default:
		return optionUnknown
	}
	return optionOK
}

// flag is where a boolean is kept. Some ask for what happens anyway: the client's own configuration says
// who promised objects, and tags that are to follow are asked for in a batch of their own.
func (o *options) flag(name string) (into *bool, ok bool) {
	var ignored bool
	switch name {
	case "object-format":
		return &o.objectFormat, true
	case "progress":
		return &o.progress, true
	case "cloning":
		return &o.cloning, true
	case "update-shallow":
		return &o.updateShallow, true
	case "refetch":
		return &o.refetch, true
	case "deepen-relative":
		return &o.deepenRelative, true
	case "dry-run":
		return &o.dryRun, true
	case "atomic":
		return &o.atomic, true
	case "force-if-includes":
		return &o.forceIfIncludes, true
	case "followtags", "from-promisor", "no-dependents":
		return &ignored, true
	}
	return nil, false
}

// setFlag reads true or false; git also sends 1, and a value of its own where something is simply set.
func setFlag(into *bool, value string) string {
	*into = value != "false"
	return optionOK
}

func setNumber(into *int, value string) string {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 0 {
		return "error not a number"
	}
	*into = int(n)
	return optionOK
}

func setWord(into *string, value string, words ...string) string {
	if !slices.Contains(words, value) {
		return "error takes " + strings.Join(words, " or ")
	}
	*into = value
	return optionOK
}

// endPush forgets what was meant for one push.
func (o *options) endPush() { o.leases, o.pushOptions = nil, nil }

// fetchOptions are the options for the fetch behind ours.
func (o *options) fetchOptions() remote.FetchOptions {
	f := remote.FetchOptions{ShallowSince: o.deepenSince, ShallowExclude: o.deepenNot, UpdateShallow: o.updateShallow || o.cloning,
		Refetch: o.refetch, KeepPack: o.cloning, Filter: o.filter, Family: o.family, Progress: o.progress, Verbosity: o.verbosity}
	if o.deepenRelative {
		f.Deepen = o.depth
	} else {
		f.Depth = o.depth
	}
	return f
}
