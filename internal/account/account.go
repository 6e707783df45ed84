// Package account looks up users of the machine.
//
// os/user does the same through the C library where it can: every start of a program that imports it
// loads that library and its threads, for a question that one run in thousands asks. Here the user
// database is read, and getent and id are asked for those that are not in it, such as LDAP's.
package account

import "errors"

// A User is one account.
type User struct {
	Name string
	Home string // its home folder
}

// ErrUnknown says that nobody has the name or the id.
var ErrUnknown = errors.New("no such user")
