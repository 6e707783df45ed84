//go:build unix

package repo

// systemConfig is git's, where it is installed below /usr.
const systemConfig = "/etc/gitconfig"
