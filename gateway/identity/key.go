package identity

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
)

// A key of ours is keyPrefix, keyLength random characters of base 32 (RFC 4648,
// section 6), 260 bits, and the CRC-32 (IEEE) of all that in the same alphabet: so
// scanners find one that was published, and one that was mistyped is told from one
// that is not known.
const (
	keyPrefix   = "tg_"
	keyLength   = 52
	checkLength = 7
)

// NewKey returns a random key.
func NewKey() string {
	body := keyPrefix + rand.Text() + rand.Text()
	return body + check(body)
}

// check returns the checksum of the part of a key before it.
func check(body string) string {
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(body)))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum)
}

// ContainsGeneratedKey reports whether a text has a key as NewKey makes it in it.
func ContainsGeneratedKey(text string) bool {
	for {
		i := strings.Index(text, keyPrefix)
		if i < 0 || len(text)-i < len(keyPrefix)+keyLength+checkLength {
			return false
		}
		body := text[i : i+len(keyPrefix)+keyLength]
		if strings.HasPrefix(text[i+len(body):], check(body)) {
			return true
		}
		text = text[i+len(keyPrefix):]
	}
}

// HasWrongChecksum reports whether a key is meant for one of NewKey, by its prefix and its
// length, and is none. Keys without a checksum, as earlier versions made, are
// shorter; keys of other origin are not judged.
func HasWrongChecksum(key string) bool {
	if !strings.HasPrefix(key, keyPrefix) || len(key) != len(keyPrefix)+keyLength+checkLength {
		return false
	}
	body := key[:len(keyPrefix)+keyLength]
	return key != body+check(body)
}

// errChecksum is an [ErrUnknown], told apart for the log.
var errChecksum = fmt.Errorf("%w: its checksum is wrong, so it was mistyped or altered", ErrUnknown)
