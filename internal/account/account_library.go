//go:build !unix || darwin

package account

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
)

// ByName finds a user by name. The error is ErrUnknown, or says what could not be asked.
func ByName(name string) (User, error) { return known(user.Lookup(name)) }

// ByID finds a user by id. The error is ErrUnknown, or says what could not be asked.
func ByID(uid uint32) (User, error) {
	return known(user.LookupId(strconv.FormatUint(uint64(uid), 10)))
}

func known(u *user.User, err error) (User, error) {
	if err != nil {
		return User{}, errors.Join(ErrUnknown, err)
	}
	return User{Name: u.Username, Home: u.HomeDir}, nil
}

// Groups are the ids of all groups that a user is in, as at a login.
func (u User) Groups() ([]uint32, error) {
	found, err := user.Lookup(u.Name)
	if err != nil {
		return nil, err
	}
	words, err := found.GroupIds()
	if err != nil {
		return nil, err
	}
	var ids []uint32
	for _, word := range words {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("groups of %q: %w", u.Name, err)
		}
		ids = append(ids, uint32(n))
	}
	return ids, nil
}
