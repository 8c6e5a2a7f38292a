package filter

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// Digest identifies a list of texts in the store, to gateways of other versions too.
func Digest(parts ...string) string {
	text := make([]byte, 0, 512)
	for _, p := range parts {
		text = append(strconv.AppendInt(text, int64(len(p)), 10), ' ')
		text = append(text, p...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
