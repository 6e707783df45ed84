package fleet

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"refaudit/scan"
)

// Rules is a hash of all settings that have a say in an audit: the configuration, what is made of it, and
// which program it is.
func Rules(t *scan.Target, p *scan.Policy, program string) string {
	h := sha256.New()
	part := func(s string) {
		var n [4]byte
		binary.LittleEndian.PutUint32(n[:], uint32(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	part(program)
	policy := p.Digest()
	part(string(policy[:]))
	for v := range t.Repo.Config.Values() {
		part(v.Key)
		part(v.Text)
		if v.NoValue {
			part("no value")
		}
	}
	for _, err := range t.Repo.Config.Refused {
		part(err.Error())
	}
	return hex.EncodeToString(h.Sum(nil))
}
