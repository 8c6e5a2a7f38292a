package filter

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// Digest returns the first 16 bytes of a SHA-256 hash of parts, in hexadecimal. Stored keys and fingerprints contain digests, so the result
// for the same parts must stay the same across versions.
func Digest(parts ...string) string {
	text := make([]byte, 0, 512)
	for _, p := range parts {
		text = append(strconv.AppendInt(text, int64(len(p)), 10), ' ')
		text = append(text, p...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
