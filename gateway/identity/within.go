package identity

import (
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
)

// maxMarks is the maximum number of the characters - . _ ~ + / = in an unused key that ContainsKey finds between other
// key characters.
const maxMarks = 8

// ContainsKey reports whether text contains a key of a caller, whether or not the key is currently valid. Because only
// digests of keys are known, the position of the key matters:
//
//   - A key from NewKey, or one that a caller has used since the process started (see [UsedKeys]), such as the sender of
//     the request, is found anywhere.
//   - Any other key is found if no letter or digit precedes or follows it, and it has at most maxMarks marks or is
//     between characters that do not occur in keys.
//
// The time is linear in the length of the text, at most about 0.3 ms for each 1,000 bytes.
func (d *Directory) ContainsKey(text string) bool {
	if len(text) < minKey {
		return false
	}
	if containsGeneratedKey(text) {
		return true
	}
	for begin := 0; begin < len(text); begin++ {
		end := begin
		for end < len(text) && classes[text[end]] != other {
			end++
		}
		if end-begin >= minKey && d.runContainsKey(text[begin:end]) {
			return true
		}
		begin = end
	}
	return false
}

// runContainsKey is ContainsKey for a text that consists of key characters.
func (d *Directory) runContainsKey(run string) bool {
	if d.hasPart(run) {
		return true
	}
	for begin := range run {
		if begin > 0 && classes[run[begin-1]] == letter {
			continue
		}
		marks := 0
		for end := begin; end <= len(run) && end-begin <= maxKey; end++ {
			ends := end == len(run) || classes[run[end]] == mark
			if ends && end-begin < len(run) && d.hasPart(run[begin:end]) {
				return true
			}
			if ends {
				if marks++; marks > maxMarks {
					break
				}
			}
		}
	}
	return d.seen.containedIn(run, d)
}

// hasPart reports whether a part of a text is a key. It does not allocate.
func (d *Directory) hasPart(part string) bool {
	if len(part) < minKey || len(part) > maxKey {
		return false
	}
	var b [maxKey]byte
	return d.HasDigest(sha256.Sum256(b[:copy(b[:], part)]))
}

// Character classes: characters that do not occur in keys, letters and digits, and other characters of token68.
const (
	other = iota
	letter
	mark
)

//nolint:gochecknoglobals // a constant, in all but the language's sense
var classes = func() (t [256]uint8) {
	for c := range t {
		switch b := byte(c); {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9':
			t[c] = letter
		case strings.IndexByte("-._~+/=", b) >= 0:
			t[c] = mark
		}
	}
	return t
}()

// UsedKeys records keys that callers have used, so that they are found at any position in a text. It does not store the
// keys, but only their lengths and hashes with a random multiplier. The rolling hash (Rabin-Karp) selects candidates,
// whose digests are then compared. A UsedKeys is safe for concurrent use and outlives the Directories that use it. A nil
// UsedKeys is empty.
type UsedKeys struct {
	multiplier uint64

	mu      sync.RWMutex // guards the fields below
	digests map[Digest]bool
	lengths []*sameLength // ascending
}

// sameLength holds the keys of one length.
type sameLength struct {
	length int
	// top is the factor of the first character in a hash of this length.
	top    uint64
	hashes map[uint64]bool
	// sieve has a bit for each hash, so that most hashes of a text need no map lookup.
	sieve [64]uint64
}

// NewUsedKeys returns an empty UsedKeys.
func NewUsedKeys() *UsedKeys {
	return &UsedKeys{multiplier: rand.Uint64() | 1, digests: make(map[Digest]bool)}
}

// add records a key with its digest.
func (s *UsedKeys) add(key string, digest Digest) {
	if s == nil {
		return
	}
	s.mu.RLock()
	known := s.digests[digest]
	s.mu.RUnlock()
	if known {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.digests[digest] = true
	i, found := slices.BinarySearchFunc(s.lengths, len(key), func(l *sameLength, n int) int { return l.length - n })
	if !found {
		l := &sameLength{length: len(key), top: 1, hashes: make(map[uint64]bool)}
		for range len(key) - 1 {
			l.top *= s.multiplier
		}
		s.lengths = slices.Insert(s.lengths, i, l)
	}
	h := s.hash(key)
	s.lengths[i].hashes[h] = true
	word, bit := place(h)
	s.lengths[i].sieve[word] |= bit
}

// hash returns the hash of a text, whose characters are the digits of a number with the multiplier as its base.
func (s *UsedKeys) hash(text string) (h uint64) {
	for i := range len(text) {
		h = h*s.multiplier + uint64(text[i])
	}
	return h
}

// place returns the position of a hash in a sieve.
func place(h uint64) (word int, bit uint64) {
	h = h * 0x9E3779B97F4A7C15 >> 52 // the upper bits depend on all bits of h
	return int(h >> 6), 1 << (h & 63)
}

// containedIn reports whether text contains a recorded key that is in the Directory.
func (s *UsedKeys) containedIn(text string, d *Directory) bool {
	if s == nil {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, l := range s.lengths {
		if l.length > len(text) {
			return false
		}
		h := s.hash(text[:l.length])
		for end := l.length; ; end++ {
			if word, bit := place(h); l.sieve[word]&bit != 0 && l.hashes[h] && d.hasPart(text[end-l.length:end]) {
				return true
			}
			if end == len(text) {
				break
			}
			h = (h-uint64(text[end-l.length])*l.top)*s.multiplier + uint64(text[end])
		}
	}
	return false
}
